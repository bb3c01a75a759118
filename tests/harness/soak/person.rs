//! A person in a soak: says something, follows what comes of it, answers questions and decides approvals as they come, now and then
//! twice at once.

use super::{
    Scene,
    chance::Chance,
    doors::Visitor,
    play::Part,
    tally::{Count, Tally},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};

/// How long a turn may take in all; a dispatch has five minutes, and there are a few.
const PATIENCE: Duration = Duration::from_mins(12);
/// Before what was not heard is said again.
const SAY_AGAIN: Duration = Duration::from_secs(2);
/// Before events that broke off are asked for again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long nothing may come before it is asked again: keep-alives come more often.
const SILENCE: Duration = Duration::from_secs(40);

/// Somebody in a turn.
pub(super) struct InTurn<'a> {
    /// Everything there is.
    pub(super) scene: &'a Scene,
    /// Who it is.
    pub(super) visitor: &'a Visitor,
    /// What is said.
    pub(super) part: Part,
}

impl InTurn<'_> {
    /// Begins the turn in a thread and sees it through; what was found wrong is told.
    pub(super) async fn live(&self, thread: &str) {
        let mut chance = self.chance("begins");
        let lived = async {
            let turn = self.begin(thread, &mut chance).await?;
            self.follow(&turn, &mut chance).await
        };
        let lived = timeout(PATIENCE, lived).await;
        if let Err(wrong) = lived.unwrap_or_else(|_| Err("it has not ended".to_owned())) {
            self.tally().find(format!("turn {}: {wrong}", self.part.number));
        }
    }

    const fn tally(&self) -> &Tally {
        &self.scene.tally
    }

    fn chance(&self, what: &str) -> Chance {
        Chance::of(self.scene.plan.seed, &format!("turn {} {what}", self.part.number))
    }

    /// Begins the turn once: whether one was heard whose answer was lost, its thread says.
    async fn begin(&self, thread: &str, chance: &mut Chance) -> Result<String, String> {
        let (doors, begun) = (&self.scene.doors, Instant::now());
        let message = self.part.message();
        let body = json!({"message": message});
        loop {
            let said = self
                .visitor
                .once(doors, chance, &format!("/v1/threads/{thread}/turns"), Some(&body))
                .await;
            match said {
                Some((StatusCode::ACCEPTED, turn)) => {
                    return turn["id"].as_str().map(str::to_owned).ok_or("it has no id".to_owned());
                }
                Some((status, problem)) if status.is_client_error() && status != StatusCode::CONFLICT => {
                    return Err(format!("it is refused: {status} {problem}"));
                }
                _ if begun.elapsed() > PATIENCE => return Err("nobody takes it".to_owned()),
                _ => sleep(SAY_AGAIN).await,
            }
            self.scene.doors.tried_again();
            let known = self
                .visitor
                .get(doors, chance, &format!("/v1/threads/{thread}"))
                .await?;
            let turns = known.body["turns"].as_array().cloned().unwrap_or_default();
            // one that could not be passed on has failed by now, and is said again
            let is_it = |turn: &&Value| turn["message"] == message.as_str() && turn["status"] != "failed";
            if let Some(turn) = turns.iter().find(is_it) {
                return turn["id"].as_str().map(str::to_owned).ok_or("it has no id".to_owned());
            }
        }
    }

    /// Reads its events to its end, each once, however often they break off, and reacts to what asks for it.
    async fn follow(&self, turn: &str, chance: &mut Chance) -> Result<(), String> {
        let mut last: Option<String> = None;
        // a run that goes on for a lost one asks again what is still open
        let mut heard = BTreeSet::new();
        let reactions = FuturesUnordered::new();
        let mut reactions = std::pin::pin!(reactions);
        loop {
            let response = self
                .visitor
                .follow(&self.scene.doors, chance, turn, last.as_deref())
                .await;
            let Some(mut response) = response.filter(|response| response.status() == StatusCode::OK) else {
                sleep(PAUSE).await;
                continue;
            };
            let mut text = String::new();
            loop {
                let chunk = tokio::select! {
                    chunk = timeout(SILENCE, response.chunk()) => chunk,
                    Some(reacted) = reactions.next() => { let () = reacted?; continue }
                };
                let Ok(Ok(Some(chunk))) = chunk else { break };
                text.push_str(&String::from_utf8_lossy(&chunk));
                while let Some((block, rest)) = text.split_once("\n\n") {
                    let event = event_of(block);
                    text = rest.to_owned();
                    let Some((id, kind, event)) = event else { continue };
                    if last.as_deref().map(place_of) >= Some(place_of(&id)) {
                        return Err(format!("event {id} comes after {last:?}"));
                    }
                    last = Some(id);
                    if kind == "ended" {
                        return Ok(());
                    }
                    if heard.insert(format!("{kind} {}", event["toolCallId"])) {
                        reactions.push(self.react(turn, kind, event));
                    }
                }
            }
            self.tally().count(Count::StreamsResumed);
            sleep(PAUSE).await;
        }
    }

    async fn react(&self, turn: &str, kind: String, event: Value) -> Result<(), String> {
        let call = event["toolCallId"].as_str().unwrap_or_default();
        let mut chance = self.chance(call);
        match kind.as_str() {
            "asked" => {
                sleep(chance.millis(0, 1500)).await;
                self.answer(turn, call, &event, &mut chance).await
            }
            "approval_asked" => {
                sleep(chance.millis(0, 1500)).await;
                self.decide(turn, call, &event, &mut chance).await
            }
            "delegated" => {
                self.tally().count(Count::Delegations);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Answers a question, now and then twice at once.
    async fn answer(&self, turn: &str, call: &str, event: &Value, chance: &mut Chance) -> Result<(), String> {
        self.tally().count(Count::Questions);
        let choice = |at: usize| event["choices"][at].as_str().unwrap_or("Here").to_owned();
        let say = |words: String, mut chance: Chance| async move {
            let body = json!({"toolCallId": call, "answer": words});
            let path = format!("/v1/turns/{turn}/answers");
            self.visitor.post(&self.scene.doors, &mut chance, &path, &body).await
        };
        let twice = chance.percent(25);
        let first = say(choice(0), self.chance(&format!("{call} first")));
        let answers = if twice {
            let second = say(choice(1), self.chance(&format!("{call} second")));
            let (first, second) = tokio::join!(first, second);
            vec![first?, second?]
        } else {
            vec![first.await?]
        };
        self.counts_once("answer", call, &answers, StatusCode::ACCEPTED)
    }

    /// Decides an approval, and whatever it becomes, until nothing is to be decided of that call.
    async fn decide(&self, turn: &str, call: &str, event: &Value, chance: &mut Chance) -> Result<(), String> {
        self.tally().count(Count::Approvals);
        let id = event
            .pointer("/approvalId")
            .or_else(|| event.pointer("/pending/approvalId"));
        let id = id.and_then(Value::as_str);
        let mut waits = id.map(str::to_owned).ok_or(format!("it names no approval: {event}"))?;
        let mut edits = chance.percent(15);
        for round in 0.. {
            let ruling = if std::mem::take(&mut edits) {
                self.tally().count(Count::Edits);
                self.edited()
            } else if chance.percent(35) {
                self.tally().count(Count::Rejections);
                json!({"decision": "reject", "reason": "Not today."})
            } else {
                json!({"decision": "approve"})
            };
            let say = |ruling: Value, mut chance: Chance| {
                let path = format!("/v1/approvals/{waits}/decision");
                async move { self.visitor.post(&self.scene.doors, &mut chance, &path, &ruling).await }
            };
            let first = say(ruling, self.chance(&format!("{call} first {round}")));
            let answers = if chance.percent(25) {
                let second = json!({"decision": "reject"});
                let second = say(second, self.chance(&format!("{call} second {round}")));
                let (first, second) = tokio::join!(first, second);
                vec![first?, second?]
            } else {
                vec![first.await?]
            };
            self.counts_once("decision", call, &answers, StatusCode::OK)?;
            let open = self.visitor.get(&self.scene.doors, chance, "/v1/approvals").await?;
            let open = open.body.as_array().cloned().unwrap_or_default();
            let next = open
                .iter()
                .find(|open| open["turnId"] == turn && open["toolCallId"] == call && open["status"] == "pending");
            match next.and_then(|next| next["id"].as_str()) {
                Some(next) => next.clone_into(&mut waits),
                None => break,
            }
        }
        Ok(())
    }

    /// Other words for the announcement that is asked for.
    fn edited(&self) -> Value {
        let mut arguments = self.part.announcement();
        arguments["body"] = json!("We meet at five.");
        json!({"decision": "edit", "arguments": arguments})
    }

    /// Of what was said at once, one counts; each other is a conflict. What was said again may have been heard before.
    fn counts_once(
        &self,
        what: &str,
        call: &str,
        answers: &[super::doors::Answered],
        taken: StatusCode,
    ) -> Result<(), String> {
        let is_odd = |status: StatusCode| status != taken && status != StatusCode::CONFLICT;
        if let Some(odd) = answers.iter().find(|answer| is_odd(answer.status)) {
            return Err(format!("a {what} about {call}: {} {}", odd.status, odd.body));
        }
        let counted = answers.iter().filter(|answer| answer.status == taken).count();
        if answers.len() > 1 {
            self.tally().count(Count::TwiceAtOnce);
        }
        if counted > 1 || (counted == 0 && answers.iter().all(|answer| answer.first)) {
            return Err(format!("{counted} of {} count of a {what} about {call}", answers.len()));
        }
        Ok(())
    }
}

/// The id of an event, its kind, and what it says.
fn event_of(block: &str) -> Option<(String, String, Value)> {
    let field = |name: &str| {
        block
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let data = serde_json::from_str(field("data")?).ok()?;
    Some((field("id")?.to_owned(), field("event")?.to_owned(), data))
}

/// An event's place among those of its turn.
fn place_of(id: &str) -> Option<(u32, u32)> {
    let (attempt, place) = id.split_once('.')?;
    Some((attempt.parse().ok()?, place.parse().ok()?))
}
