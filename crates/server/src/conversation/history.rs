//! What a new turn is told of the turns before it: the newest, whole, within a budget.

use crate::{
    approval::REVOKED,
    db::conversation::{ToldApproval, ToldTurn},
};
use contract::{
    AgentToolResult,
    tools::tool_for_event,
    turn::{JournalEntry, PastTurn, ThreadHistory},
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The most turns that are told.
pub(super) const MAX_TURNS: i64 = 50;
/// The most that they may hold, in bytes of JSON: about 12,000 tokens, of which a model of 32,000 has room left for its work.
const MAX_BYTES: usize = 48 * 1024;

/// What is told of a call that is being carried out.
const EXECUTING: &str = "This was approved and is being carried out; what comes of it is not known yet.";
/// What is told of the call by which a specialist was asked, before what its own calls came to.
const SPECIALIST_INTERRUPTED: &str = "This was interrupted before it was answered. What it asked approval for:";

/// The newest turns that fit, oldest first. A turn is told whole or not at all: half of one would hold calls without results.
pub(super) fn within_budget(newest_first: Vec<ToldTurn>) -> ThreadHistory {
    let all = newest_first.first().map_or(0, |turn| turn.of);
    let mut left = MAX_BYTES;
    let mut turns = Vec::new();
    for turn in newest_first {
        let turn = past(turn);
        let size = turn.message.len() + serde_json::to_vec(&turn.messages).map_or(MAX_BYTES, |json| json.len());
        let Some(rest) = left.checked_sub(size) else { break };
        left = rest;
        turns.push(turn);
    }
    turns.reverse();
    let told = i64::try_from(turns.len()).unwrap_or(all);
    ThreadHistory {
        turns,
        left_out: u32::try_from(all - told).unwrap_or_default(),
    }
}

/// A turn that ended without an answer says so, or the model would take its request for one that is still to be done.
fn past(turn: ToldTurn) -> PastTurn {
    let mut messages = said(turn.kept, turn.approvals);
    if turn.status != "answered" || messages.is_empty() {
        messages.push(json!({"role": "assistant", "content": turn.outcome}));
    }
    PastTurn {
        message: turn.message,
        messages,
    }
}

/// The supervisor's conversation in its order: each answer, and the results of its calls behind it.
fn said(kept: Vec<JournalEntry>, approvals: Vec<ToldApproval>) -> Vec<Value> {
    let (mut answers, mut results) = (Vec::new(), HashMap::new());
    for entry in kept {
        match entry {
            JournalEntry::Answer { step, message, .. } => answers.push((step, message)),
            JournalEntry::Result {
                tool_call_id, content, ..
            } => {
                results.insert(tool_call_id, content);
            }
        }
    }
    fill_in(&mut results, approvals);
    answers.sort_by_key(|(step, _)| *step);
    let mut messages = Vec::new();
    for (_, message) in answers {
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let ids = calls.into_iter().flatten().filter_map(|call| call.get("id")?.as_str());
        let of_calls: Vec<Value> = ids
            .filter_map(|id| Some(json!({"role": "tool", "tool_call_id": id, "content": results.get(id)?})))
            .collect();
        messages.push(message);
        messages.extend(of_calls);
    }
    messages
}

/// A turn can end while its calls wait, and what became of them is then no result that was kept. A specialist's call is told as the
/// result of the call that it worked for.
fn fill_in(results: &mut HashMap<String, String>, approvals: Vec<ToldApproval>) {
    let mut within: BTreeMap<String, String> = BTreeMap::new();
    for approval in approvals {
        let result = became(&approval);
        if let Some((task, _)) = approval.tool_call_id.split_once('/') {
            let tool = tool_for_event(&approval.event).map_or(approval.event.as_str(), |tool| tool.definition.name);
            let told = within
                .entry(task.to_owned())
                .or_insert_with(|| SPECIALIST_INTERRUPTED.to_owned());
            told.extend([" ", tool, ": ", &result.to_string()]);
        } else {
            results
                .entry(approval.tool_call_id)
                .or_insert_with(|| result.to_string());
        }
    }
    for (task, text) in within {
        results
            .entry(task)
            .or_insert_with(|| json!(AgentToolResult::error(text)).to_string());
    }
}

/// What became of a call that waited, as a model reads it. Nobody can decide any more about what still waits: its turn has ended.
fn became(approval: &ToldApproval) -> Value {
    let text = if approval.status == "executing" {
        EXECUTING
    } else {
        REVOKED
    };
    let result = approval.result.clone();
    result.unwrap_or_else(|| json!(AgentToolResult::error(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(step: u32, message: &Value) -> JournalEntry {
        JournalEntry::Answer {
            within: String::new(),
            step,
            message: message.clone(),
            tokens: 0,
        }
    }

    /// fault 31
    #[test]
    fn results_stand_behind_the_calls_that_they_are_of() {
        let calls = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]});
        let last = json!({"role": "assistant", "content": "Done."});
        let result = |id: &str| JournalEntry::Result {
            tool_call_id: id.into(),
            content: format!("of {id}"),
            succeeded: true,
        };
        let kept = vec![answer(2, &last), result("b"), answer(1, &calls), result("a")];
        let of = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": format!("of {id}")});
        assert_eq!(said(kept, Vec::new()), [calls, of("a"), of("b"), last]);
    }

    #[test]
    fn what_waited_is_told_as_what_became_of_it() {
        let calls = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "t"}]});
        let approval = |call: &str, status: &str, result: Option<Value>| ToldApproval {
            tool_call_id: call.into(),
            event: "delete.department".into(),
            status: status.into(),
            result,
        };
        let kept = JournalEntry::Result {
            tool_call_id: "c".into(),
            content: "kept".into(),
            succeeded: true,
        };
        let done = json!({"data": {}, "scopeContext": "All."});
        let approvals = vec![
            approval("a", "pending", None),
            approval("b", "executing", None),
            approval("c", "executed", Some(done.clone())),
            approval("t/x", "executed", Some(done.clone())),
            approval("t/y", "revoked", Some(json!({"error": REVOKED}))),
        ];
        let told = said(vec![answer(1, &calls), kept], approvals);
        let result = |place: usize| told[place]["content"].as_str().unwrap().to_owned();
        assert_eq!(result(1), json!({"error": REVOKED}).to_string());
        assert_eq!(result(2), json!({"error": EXECUTING}).to_string());
        assert_eq!(result(3), "kept");
        let specialist: Value = serde_json::from_str(&result(4)).unwrap();
        let told = specialist["error"].as_str().unwrap();
        let (done, revoked) = (
            format!("delete_department: {done}"),
            format!("delete_department: {{\"error\":\"{REVOKED}\"}}"),
        );
        assert!(
            told.starts_with(SPECIALIST_INTERRUPTED) && told.contains(&done) && told.ends_with(&revoked),
            "{told}"
        );
    }

    fn turn(number: usize, bytes: usize, of: i64) -> ToldTurn {
        ToldTurn {
            message: number.to_string(),
            status: "answered".into(),
            outcome: "Done.".into(),
            kept: vec![answer(1, &json!({"role": "assistant", "content": "x".repeat(bytes)}))],
            approvals: Vec::new(),
            of,
        }
    }

    #[test]
    fn the_newest_turns_are_told_oldest_first() {
        let history = within_budget(vec![turn(3, 10, 3), turn(2, 10, 3), turn(1, 10, 3)]);
        let told: Vec<_> = history.turns.iter().map(|turn| turn.message.as_str()).collect();
        assert_eq!((told, history.left_out), (vec!["1", "2", "3"], 0));
        assert_eq!(within_budget(Vec::new()), ThreadHistory::default());
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole_and_counted() {
        let history = within_budget(vec![
            turn(9, 20_000, 9),
            turn(8, 20_000, 9),
            turn(7, 20_000, 9),
            turn(6, 1, 9),
        ]);
        let told: Vec<_> = history.turns.iter().map(|turn| turn.message.as_str()).collect();
        assert_eq!(
            (told, history.left_out),
            (vec!["8", "9"], 7),
            "no older turn slips in past one that is left out"
        );
    }

    #[test]
    fn a_turn_without_an_answer_says_how_it_ended() {
        let mut failed = turn(1, 1, 1);
        failed.status = "failed".into();
        failed.kept.clear();
        let history = within_budget(vec![failed]);
        assert_eq!(
            history.turns[0].messages,
            [json!({"role": "assistant", "content": "Done."})]
        );
    }
}
