//! The script of a soak: what each turn does, what the model answers at which point of it, and whether a provider would have taken what
//! the model was sent.

use super::chance::Chance;
use crate::{
    fixtures::{HILLTOP, RIVERSIDE, School},
    stage::now_ms,
};
use scripted_model::Reply;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

/// What may be done in a turn, and how often in a hundred turns. The last needs a class teacher, who has an agent for their stream.
const DEEDS: [(&str, u64); 7] = [
    ("read", 50),
    ("write", 60),
    ("ask", 35),
    ("publish", 30),
    ("more", 30),
    ("again", 12),
    ("delegate", 45),
];

/// A turn of the script: its number, its school, and what is done in it.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Which turn.
    pub(super) number: usize,
    school: School,
    deeds: Vec<&'static str>,
}

impl Part {
    /// The part of a turn, for somebody who has specialists or none.
    #[must_use]
    pub(super) fn drawn(seed: u64, number: usize, school: School, delegates: bool) -> Self {
        let mut chance = Chance::of(seed, &format!("part {number}"));
        let drawn = DEEDS.iter().filter(|(_, often)| chance.percent(*often));
        let mut deeds: Vec<_> = drawn.map(|(deed, _)| *deed).collect();
        let publishes = deeds.contains(&"publish");
        deeds.retain(|deed| (delegates || *deed != "delegate") && (publishes || *deed != "again"));
        Self { number, school, deeds }
    }

    /// One that only reads: to see that the thread goes on.
    #[must_use]
    pub(super) fn closing(number: usize, school: School) -> Self {
        let deeds = vec!["read"];
        Self { number, school, deeds }
    }

    /// What its person says.
    #[must_use]
    pub(super) fn message(&self) -> String {
        format!("Soak {} in {}: {}", self.number, self.school.slug, self.deeds.join(" "))
    }

    /// What it ends with.
    #[must_use]
    pub(super) fn answer(&self) -> String {
        format!("All done, {}.", self.number)
    }

    /// The departments that it makes, by the call that makes them.
    #[must_use]
    pub(super) fn departments(&self) -> Vec<(&'static str, String)> {
        let made = ["write", "more"].into_iter().filter(|deed| self.deeds.contains(deed));
        made.map(|deed| (deed, self.department(deed))).collect()
    }

    /// What the announcement that it asks for says.
    #[must_use]
    pub(super) fn announcement(&self) -> Value {
        let campus = self.school.campus(self.school.first_campus);
        json!({"title": format!("Soak {}", self.number), "body": "We meet at four.", "audience": "campus", "campusId": campus})
    }

    fn department(&self, deed: &str) -> String {
        format!("Soak {}, {deed}", self.number)
    }

    /// Reads it from what its person said.
    #[must_use]
    pub(super) fn of(message: &str) -> Option<Self> {
        let (head, said) = message.strip_prefix("Soak ")?.split_once(':')?;
        let (number, slug) = head.split_once(" in ")?;
        let known = DEEDS.iter().map(|(deed, _)| *deed);
        Some(Self {
            number: number.parse().ok()?,
            school: if slug == HILLTOP.slug { HILLTOP } else { RIVERSIDE },
            deeds: known.filter(|deed| said.split(' ').any(|said| said == *deed)).collect(),
        })
    }

    /// The call that comes of a deed at a step of the supervisor's: its id, the tool and the arguments.
    fn call(&self, deed: &str, step: usize) -> Option<(&'static str, &'static str, Value)> {
        let campus = self.school.campus(self.school.first_campus);
        let department = json!({"name": self.department(deed), "campusId": campus});
        Some(match (deed, step) {
            ("read", 1) => ("read", "list_announcements", json!({})),
            ("write", 1) => ("write", "create_department", department),
            ("ask", 1) => ("ask", "ask_user", json!({"question": "Where?"})),
            ("publish", 1) => ("publish", "publish_announcement", self.announcement()),
            ("delegate", 1) => ("task", "task", json!({"agent": "Angie", "task": self.message()})),
            ("more", 2) => ("more", "create_department", department),
            ("again", 2) => ("again", "publish_announcement", self.announcement()),
            _ => return None,
        })
    }

    /// What the supervisor answers at a step.
    fn supervised(&self, step: usize) -> Reply {
        let mut calls: Vec<_> = self.deeds.iter().filter_map(|deed| self.call(deed, step)).collect();
        if calls.is_empty() && step == 1 {
            calls.push(("look", "list_departments", json!({})));
        }
        if calls.is_empty() {
            return Reply::text(self.answer());
        }
        let with = |reply: Reply, (id, tool, arguments): (&str, &str, Value)| {
            reply.and_call(Some(id), tool, arguments.to_string())
        };
        calls.into_iter().fold(Reply::nothing(), with)
    }

    /// What the specialist answers at a step. It asks its person in every other turn.
    fn delegated(&self, step: usize) -> Reply {
        if step > 1 {
            return Reply::text("One stream.");
        }
        let reply = Reply::nothing().and_call(Some("mine"), "list_my_classrooms", "{}");
        if self.number.is_multiple_of(2) {
            return reply;
        }
        let question = json!({"question": "Which stream?", "choices": ["The first", "The second"]});
        reply.and_call(Some("which"), "ask_user", question.to_string())
    }
}

/// A point of a turn at which the model is asked: the turn's number, and the name that its answer is kept under.
pub(super) type Point = (usize, String);

/// What the model was asked.
#[derive(Debug)]
pub(super) struct Play {
    seed: u64,
    asked: Mutex<BTreeMap<Point, Vec<i64>>>,
    refused: Mutex<BTreeSet<String>>,
}

impl Play {
    /// A play of a seed.
    #[must_use]
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            seed,
            asked: Mutex::new(BTreeMap::new()),
            refused: Mutex::new(BTreeSet::new()),
        }
    }

    /// When each point was asked for, in milliseconds.
    #[must_use]
    pub(super) fn asked(&self) -> BTreeMap<Point, Vec<i64>> {
        self.asked.lock().expect("nobody panicked here").clone()
    }

    /// What was refused, as a provider would.
    #[must_use]
    pub(super) fn refused(&self) -> BTreeSet<String> {
        self.refused.lock().expect("nobody panicked here").clone()
    }

    /// The model's answer to a request.
    pub(super) fn reply(&self, request: &Value) -> Reply {
        let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let last = messages.iter().rposition(|message| message["role"] == "user");
        let said = last.and_then(|last| messages[last]["content"].as_str());
        let Some((part, last)) = said.and_then(Part::of).zip(last) else {
            return self.refuse(format!("nobody said this: {said:?}"));
        };
        if let Err(invalid) = validate(messages) {
            return self.refuse(format!("turn {}: {invalid}", part.number));
        }
        let is_answer = |message: &&Value| message["role"] == "assistant";
        let step = messages[last..].iter().filter(is_answer).count() + 1;
        let prompt = messages[0]["content"].as_str().unwrap_or_default();
        let (within, reply) = if prompt.starts_with("You are Rover") {
            ("", part.supervised(step))
        } else {
            ("task", part.delegated(step))
        };
        let point = (part.number, format!("{within}#{step}"));
        let mut chance = Chance::of(self.seed, &format!("{point:?}"));
        let mut asked = self.asked.lock().expect("nobody panicked here");
        asked.entry(point).or_default().push(now_ms());
        reply.after(chance.millis(20, 400))
    }

    fn refuse(&self, why: String) -> Reply {
        let reply = Reply::status(400, json!({"error": {"message": why}}).to_string());
        self.refused.lock().expect("nobody panicked here").insert(why);
        reply
    }
}

/// What a provider holds a conversation to: a prompt, people and answers in turn, and for every call its one result right after it.
fn validate(messages: &[Value]) -> Result<(), String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut before = "";
    for (place, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let call = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(call) {
                return Err(format!("message {place}: a result of no call, or its second: {call:?}"));
            }
            if message["content"].as_str().is_none_or(str::is_empty) {
                return Err(format!("message {place}: a result without words"));
            }
            before = role;
            continue;
        }
        if !open.is_empty() {
            return Err(format!("message {place}: {open:?} have no result"));
        }
        match (place, before, role) {
            (0, "", "system") | (_, "system" | "assistant", "user") | (_, "user" | "tool", "assistant") => {}
            _ => return Err(format!("message {place}: {role:?} after {before:?}")),
        }
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        if calls.is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
            return Err(format!("message {place}: neither words nor calls"));
        }
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|arguments| arguments.is_object()) {
                return Err(format!("message {place}: arguments that are no object: {arguments:?}"));
            }
            if !open.insert(call["id"].as_str().unwrap_or_default()) {
                return Err(format!("message {place}: two calls of one id"));
            }
        }
        before = role;
    }
    match before {
        "user" | "tool" if open.is_empty() => Ok(()),
        _ => Err(format!("ends with {before:?}, and without results of {open:?}")),
    }
}
