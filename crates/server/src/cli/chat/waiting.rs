//! What a turn waits for, as it is asked at the terminal: one after the other, in the order in which it was asked.

use super::{
    door::{Door, Refused},
    show, text,
};
use crate::cli::{harmless, print};
use serde_json::{Map, Value, json};

/// The most of a preview that a prompt repeats; the whole of it stands above.
const MAX_REPEATED_CHARS: usize = 200;
const HOW_TO_DECIDE: &str = "Answer approve or reject (a reason may follow).";
const HOW_TO_LEAVE: &str = "An empty line asks again; Ctrl-C stops the turn, Ctrl-D leaves it waiting.";

/// What a turn waits for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    open: Vec<Asked>,
    /// Whether the turn does nothing else before it has what it waits for.
    has_begun: bool,
    /// Whether the first that is open stands on the screen as a prompt.
    is_asking: bool,
    /// Whether something is for somebody else to decide.
    is_for_others: bool,
}

impl Waiting {
    /// Takes note of an event.
    pub(super) fn note(&mut self, event: &Value) {
        let call = text(event, "toolCallId");
        match text(event, "type") {
            "asked" => self.add(Asked::question(event)),
            "approval_asked" => self.add(Asked::approval(event)),
            "answered" => self.open.retain(|asked| asked.call != call),
            "decided" => {
                let id = text(event, "approvalId");
                self.open.retain(|asked| asked.approval_id() != Some(id));
            }
            "waiting" => self.has_begun = true,
            "started" => {
                self.has_begun = false;
                self.is_for_others = false;
            }
            _ => {}
        }
    }

    /// Whether a prompt stood on the screen, which is to be shown again after whatever is shown now.
    pub(super) fn interrupt(&mut self) -> bool {
        std::mem::take(&mut self.is_asking)
    }

    /// Asks for the first that is open and this person's to say, if there is one.
    pub(super) async fn ask(&mut self, door: &Door) -> anyhow::Result<()> {
        while self.has_begun && !self.is_asking {
            let Some(asked) = self.open.first_mut() else { break };
            if let Some(prompt) = asked.prompt(door).await? {
                show(&harmless(&prompt))?;
                self.is_asking = true;
            } else {
                self.is_for_others |= asked.is_for_others;
                self.open.remove(0);
            }
        }
        Ok(())
    }

    /// Whether what is typed is for the turn: also where somebody else has to answer, since it must not be the next message.
    pub(super) const fn listens(&self) -> bool {
        self.is_asking || self.is_for_others
    }

    /// Passes on what was said to the prompt.
    pub(super) async fn said(&mut self, line: &str, door: &Door, turn: &str) -> anyhow::Result<()> {
        if !std::mem::take(&mut self.is_asking) {
            return print(
                "  That was not sent: somebody else must decide. Ctrl-C gives it up, Ctrl-D leaves it waiting.",
            );
        }
        let Some(asked) = self.open.first_mut() else {
            return Ok(());
        };
        let body = match asked.body(line) {
            Ok(body) => body,
            Err("") => return Ok(()),
            Err(hint) => return print(&harmless(hint)),
        };
        match door.post(&asked.path(turn), &body).await {
            Ok(settled) => {
                if !asked.is_asked_anew(&settled) {
                    self.open.remove(0);
                }
                Ok(())
            }
            Err(error) => {
                let is_final = error
                    .downcast_ref()
                    .is_some_and(|refused: &Refused| !refused.may_be_mended());
                print(&format!("{error:#}"))?;
                // of an approval its row is asked what it has become
                if is_final && asked.approval_id().is_none() {
                    self.open.remove(0);
                    print("Waiting for what the turn does next.")?;
                }
                Ok(())
            }
        }
    }

    /// A call waits for one thing at a time: what is asked anew of it stands where it stood.
    fn add(&mut self, asked: Asked) {
        match self.open.iter_mut().find(|other| other.call == asked.call) {
            Some(other) => *other = asked,
            None => self.open.push(asked),
        }
    }

    /// How to answer, where there is something to be answered.
    pub(super) fn introduction(&self) -> Option<String> {
        let what = match self.open.len() {
            0 => return None,
            1 => "It waits for an answer.".to_owned(),
            several => format!("It waits for {several} answers, one after the other."),
        };
        Some(format!("  {what} {HOW_TO_LEAVE}"))
    }
}

/// One of the things that a turn waits for.
#[derive(Debug)]
struct Asked {
    call: String,
    what: What,
    is_for_others: bool,
}

#[derive(Debug)]
enum What {
    Question { question: String, choices: Vec<String> },
    Approval { id: String, tool: String, preview: Value },
}

impl Asked {
    fn question(event: &Value) -> Self {
        let what = What::Question {
            question: text(event, "question").to_owned(),
            choices: choices(event),
        };
        Self::of(event, what)
    }

    fn approval(event: &Value) -> Self {
        let what = What::Approval {
            id: text(event, "approvalId").to_owned(),
            tool: text(event, "tool").to_owned(),
            preview: event.get("preview").cloned().unwrap_or_default(),
        };
        Self::of(event, what)
    }

    fn of(event: &Value, what: What) -> Self {
        let call = text(event, "toolCallId").to_owned();
        Self {
            call,
            what,
            is_for_others: false,
        }
    }

    fn approval_id(&self) -> Option<&str> {
        match &self.what {
            What::Question { .. } => None,
            What::Approval { id, .. } => Some(id),
        }
    }

    /// What to show before the answer, which names what is asked; none where it is not, or no more, for this person to say.
    async fn prompt(&mut self, door: &Door) -> anyhow::Result<Option<String>> {
        let (id, tool, preview) = match &mut self.what {
            What::Question { question, choices } => return Ok(Some(format!("{question}{}: ", among(choices)))),
            What::Approval { id, tool, preview } => (id, tool, preview),
        };
        let approval = match door.get(&format!("/v1/approvals/{id}")).await {
            Err(error) if error.is::<Refused>() => {
                print(&format!("  {tool}: {error:#}"))?;
                return Ok(None);
            }
            approval => approval?,
        };
        if approval.get("mayDecide") != Some(&Value::Bool(true)) {
            self.is_for_others = text(&approval, "status") == "pending";
            print(&harmless(&match text(&approval, "status") {
                "pending" => format!(
                    "  {tool}: somebody else must decide this, who may {}; Ctrl-C gives it up, Ctrl-D leaves it waiting.",
                    text(&approval, "approver")
                ),
                status => format!(
                    "  {tool}: this can no longer be decided, it is {status}. Waiting for what the turn does next."
                ),
            }))?;
            return Ok(None);
        }
        let now = approval.get("preview").cloned().unwrap_or_default();
        if now != *preview {
            print(&harmless(&format!("  By now it would do this: {now}")))?;
            *preview = now;
        }
        Ok(Some(format!("{tool} {}: approve or reject? ", subject(preview))))
    }

    fn path(&self, turn: &str) -> String {
        match &self.what {
            What::Question { .. } => format!("/v1/turns/{turn}/answers"),
            What::Approval { id, .. } => format!("/v1/approvals/{id}/decision"),
        }
    }

    /// What was said, as the door takes it; or else how to say it, where it was anything at all.
    fn body(&self, line: &str) -> Result<Value, &'static str> {
        let said = line.trim();
        if said.is_empty() {
            return Err("");
        }
        match &self.what {
            What::Question { choices, .. } => {
                let answer = choices.iter().find(|choice| choice.eq_ignore_ascii_case(said));
                let answer = answer.map_or(said, String::as_str);
                if !choices.is_empty() && !choices.iter().any(|choice| choice == answer) {
                    return Err("Answer with one of the choices.");
                }
                Ok(json!({"toolCallId": self.call, "answer": answer}))
            }
            What::Approval { .. } => Ok(decision(said).ok_or(HOW_TO_DECIDE)?.into()),
        }
    }

    /// Whether the same is to be decided again, by what the door answered to a yes: it would by now do something else.
    fn is_asked_anew(&mut self, settled: &Value) -> bool {
        let What::Approval { id, .. } = &mut self.what else {
            return false;
        };
        let approval = settled.get("approval").unwrap_or(&Value::Null);
        let is_anew = text(approval, "status") == "pending";
        if is_anew {
            text(approval, "id").clone_into(id);
        }
        is_anew
    }
}

/// What an event offers to choose from.
pub(super) fn choices(event: &Value) -> Vec<String> {
    let choices = event.get("choices").and_then(Value::as_array);
    let choices = choices.into_iter().flatten().filter_map(Value::as_str);
    choices.map(str::to_owned).collect()
}

/// The choices, as they follow their question.
pub(super) fn among(choices: &[String]) -> String {
    if choices.is_empty() {
        String::new()
    } else {
        format!(" ({})", choices.join(" / "))
    }
}

/// A yes or a no, in a person's words. A yes with anything behind it may mean something else.
fn decision(said: &str) -> Option<Map<String, Value>> {
    let (word, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
    let is_mark = |character: char| ",.:;!".contains(character);
    let decision = match word.trim_end_matches(is_mark).to_lowercase().as_str() {
        "approve" | "yes" | "y" if rest.is_empty() => "approve",
        "reject" | "no" | "n" => "reject",
        _ => return None,
    };
    let mut body = Map::from_iter([("decision".to_owned(), json!(decision))]);
    let reason = rest.trim();
    if !reason.is_empty() {
        body.insert("reason".to_owned(), json!(reason));
    }
    Some(body)
}

/// What a call is about: what that is called, or as much of the preview as one reads at a glance.
fn subject(preview: &Value) -> String {
    let members = ["name", "title", "fullName"].map(|member| text(preview, member));
    let name = members.into_iter().find(|name| !name.is_empty());
    shortened(&name.map_or_else(|| preview.to_string(), |name| format!("\"{name}\"")))
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_REPEATED_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('\u{2026}');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(call: &str, choices: &[&str]) -> Value {
        json!({"type": "asked", "toolCallId": call, "question": "Where?", "choices": choices})
    }

    fn approval_asked(call: &str, id: &str) -> Value {
        json!({"type": "approval_asked", "toolCallId": call, "approvalId": id, "tool": "delete_department", "preview": {}})
    }

    fn open(waiting: &Waiting) -> Vec<&str> {
        let open = waiting.open.iter();
        open.map(|asked| asked.approval_id().unwrap_or(&asked.call)).collect()
    }

    #[test]
    fn a_decision_is_said_in_several_ways() {
        let said = |said: &str| decision(said).map(Value::Object);
        for yes in ["approve", "Approve", "YES", "y", "Yes."] {
            assert_eq!(said(yes), Some(json!({"decision": "approve"})), "{yes}");
        }
        for no in ["reject", "No", "n", "no!"] {
            assert_eq!(said(no), Some(json!({"decision": "reject"})), "{no}");
        }
        let reason = Some(json!({"decision": "reject", "reason": "It is still used."}));
        assert_eq!(said("reject It is still used."), reason);
        assert_eq!(said("No, It is still used."), reason);
        for neither in ["yes but only the first", "approve all", "Main", "approved", "?", "nope"] {
            assert_eq!(said(neither), None, "{neither}");
        }
    }

    #[test]
    fn what_is_said_is_for_what_was_asked() {
        let question = Asked::question(&asked("a", &["Main", "Lakeside"]));
        assert_eq!(
            question.body(" lakeside\n"),
            Ok(json!({"toolCallId": "a", "answer": "Lakeside"}))
        );
        assert_eq!(question.body("approve"), Err("Answer with one of the choices."));
        let free = Asked::question(&asked("a", &[]));
        assert_eq!(
            free.body("Anything"),
            Ok(json!({"toolCallId": "a", "answer": "Anything"}))
        );
        let approval = Asked::approval(&approval_asked("b", "1"));
        assert_eq!(approval.body("lakeside"), Err(HOW_TO_DECIDE));
        assert_eq!(approval.body("YES"), Ok(json!({"decision": "approve"})));
        for empty in [question, free, approval] {
            assert_eq!(empty.body(" \n"), Err(""));
        }
    }

    #[test]
    fn a_prompt_names_what_it_is_about() {
        let department = json!({"campusName": "Main", "description": "x".repeat(300), "name": "Drama"});
        assert_eq!(subject(&department), "\"Drama\"");
        assert_eq!(subject(&json!({"roleId": 7})), r#"{"roleId":7}"#);
        assert_eq!(
            subject(&json!(["x".repeat(300)])).chars().count(),
            MAX_REPEATED_CHARS + 1
        );
    }

    #[test]
    fn what_is_open_stays_in_its_order() {
        let mut waiting = Waiting::default();
        for event in [
            asked("a", &[]),
            approval_asked("b", "1"),
            asked("c", &[]),
            asked("a", &[]),
        ] {
            waiting.note(&event);
        }
        assert_eq!(open(&waiting), ["a", "1", "c"]);
        waiting.note(&approval_asked("b", "2"));
        waiting.note(&json!({"type": "decided", "toolCallId": "b", "approvalId": "1", "decision": "replaced"}));
        assert_eq!(
            open(&waiting),
            ["a", "2", "c"],
            "what is asked anew stands where it stood"
        );
        waiting.note(&json!({"type": "decided", "toolCallId": "b", "approvalId": "2", "decision": "rejected"}));
        waiting.note(&json!({"type": "answered", "toolCallId": "a", "answer": "x"}));
        assert_eq!(open(&waiting), ["c"]);
    }
}
