//! The fakes around a turn that is killed: its model, its tools, the books, and the person.

use super::*;
use crate::{
    caller::AgentToolCaller,
    model::{Completion, ToolCall, Usage},
};
use contract::{
    envelope::PendingApproval,
    turn::{JournalEntry, idempotency_key, result_name},
};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use tokio::sync::Notify;

/// How far the books are behind what a run tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storing {
    /// Not at all.
    AtOnce,
    /// They have only what the run waits for.
    Late,
}

/// A call by its id, name and arguments.
type Call = (&'static str, &'static str, &'static str);

/// What is said in each step of each conversation: calls, a text, or both.
const SCRIPT: &[(&str, &[Call], &str)] = &[
    (
        "#1",
        &[
            ("list", "list_departments", "{}"),
            ("create", "create_department", r#"{"name": "Drama"}"#),
            ("t", TASK, r#"{"agent": "Angie", "task": "Who is in the stream?"}"#),
            (
                "where",
                ASK_USER,
                r#"{"question": "Which campus?", "choices": ["Main", "Lakeside"]}"#,
            ),
        ],
        "Let me see.",
    ),
    (
        "t#1",
        &[
            ("mine", "list_my_classrooms", "{}"),
            ("which", ASK_USER, r#"{"question": "Which stream?"}"#),
            ("drop", "drop_table", "{}"),
        ],
        "",
    ),
    ("t#2", &[("roster", "list_stream_roster", r#"{"limit": 7}"#)], ""),
    ("t#3", &[], "Forty students."),
    (
        "#2",
        &[
            ("delete", "delete_department", r#"{"departmentId": "x"}"#),
            ("map", "get_agent_map", "{}"),
        ],
        "",
    ),
    ("#3", &[], "All done."),
];

/// One turn and all that it meets.
pub(super) struct World {
    storing: Storing,
    state: Mutex<State>,
    killed: Notify,
}

#[derive(Default)]
struct State {
    /// At which point it is killed, counted from the beginning or from the kill before.
    kills: Vec<usize>,
    killed: usize,
    runs: usize,
    points: usize,
    is_dead: bool,
    /// What a run has told that the books do not have yet.
    on_its_way: Vec<Told>,
    events: Vec<TurnEvent>,
    journal: Vec<JournalEntry>,
    effects: Vec<String>,
    read: BTreeMap<String, Value>,
}

enum Told {
    Event(TurnEvent),
    Entry(JournalEntry),
}

impl World {
    pub(super) fn new(storing: Storing, kills: Vec<usize>) -> Arc<Self> {
        let state = State {
            kills,
            ..State::default()
        };
        Arc::new(Self {
            storing,
            state: Mutex::new(state),
            killed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn stored(&self) -> Vec<JournalEntry> {
        self.state().journal.clone()
    }

    pub(super) fn effects(&self) -> Vec<String> {
        self.state().effects.clone()
    }

    pub(super) fn read(&self) -> Vec<(String, Value)> {
        self.state().read.clone().into_iter().collect()
    }

    pub(super) fn runs(&self) -> usize {
        self.state().runs
    }

    pub(super) fn kills(&self) -> usize {
        self.state().killed
    }

    /// The events about calls, as their kinds and ids.
    pub(super) fn told(&self) -> Vec<String> {
        let word = |event: &Value, member: &str| Some(event[member].as_str()?.to_owned());
        let events = self.state().events.clone();
        let events = events.iter().map(|event| serde_json::to_value(event).unwrap());
        events
            .filter_map(|event| Some(format!("{} {}", word(&event, "type")?, word(&event, "toolCallId")?)))
            .collect()
    }

    /// A moment at which a run waits, and can be killed.
    async fn point(&self) {
        tokio::task::yield_now().await;
        let dead = {
            let mut state = self.state();
            state.points += 1;
            if state.kills.first() == Some(&state.points) {
                state.is_dead = true;
                self.killed.notify_one();
            }
            state.is_dead
        };
        if dead {
            std::future::pending::<()>().await;
        }
    }

    /// The books take what is on its way.
    fn store(&self) {
        let mut state = self.state();
        for told in std::mem::take(&mut state.on_its_way) {
            match told {
                Told::Event(event) => state.events.push(event),
                Told::Entry(entry) => state.journal.push(entry),
            }
        }
    }

    fn tell(&self, told: Told) {
        let mut state = self.state();
        assert!(!state.is_dead, "the dead tell nothing");
        state.on_its_way.push(told);
        drop(state);
        if self.storing == Storing::AtOnce {
            self.store();
        }
    }

    fn has(&self, name: &str) -> bool {
        self.state().journal.iter().any(|entry| entry.name() == name)
    }

    /// Runs the turn until it has ended, answering what it asks whenever it waits.
    pub(super) async fn finish(self: &Arc<Self>) -> String {
        for _ in 0..50 {
            match self.run().await {
                None => {}
                Some(None) => self.answer_all(),
                Some(Some(answer)) => {
                    let TurnOutcome::Answer(text) = answer.outcome else {
                        unreachable!("{answer:?}")
                    };
                    return text;
                }
            }
        }
        unreachable!("the turn comes to no end")
    }

    /// One run of the turn; none where it is killed.
    pub(super) async fn run(self: &Arc<Self>) -> Option<Option<TurnAnswer>> {
        let mut message = message("Go", Duration::from_secs(20));
        message.dispatch = 1;
        message.context.capabilities.is_class_teacher = true;
        self.state().runs += 1;
        let world = self.clone();
        let tools = InProcessToolCaller::new(move |event, _, ticket| {
            let world = world.clone();
            async move { world.call(event, &ticket.idempotency_key).await }
        });
        let tools: Arc<dyn AgentToolCaller> = Arc::new(tools);
        let runner = TurnRunner::new(FakeModel(self.clone()), tools);
        let run = async {
            let journal = Journal::of(self.stored());
            let reporter = Arc::new(Books(self.clone()));
            let ended = runner.run(&message, journal, reporter, Cancellation::never()).await;
            self.point().await;
            self.store();
            self.point().await;
            ended
        };
        let ended = tokio::select! {
            biased;
            () = self.killed.notified() => None,
            ended = run => Some(ended),
        };
        let mut state = self.state();
        state.on_its_way.clear();
        if ended.is_none() {
            (state.points, state.is_dead) = (0, false);
            state.killed += 1;
            state.kills.remove(0);
        }
        ended
    }

    /// The tools: each write is done once for its key, and a deletion waits for an approval.
    async fn call(&self, event: Event, key: &str) -> AgentToolResult {
        let (_, id) = key.split_once(':').unwrap();
        assert!(!self.has(&result_name(id)), "{id} is not run again");
        let its_answer = id
            .split_once('/')
            .map_or("#1", |(_, id)| if id == "roster" { "t#2" } else { "t#1" });
        let its_answer = if id == "delete" { "#2" } else { its_answer };
        assert!(self.has(its_answer), "{its_answer} is kept before {id} is run");
        self.point().await;
        if event.as_str() == "delete.department" {
            return pending();
        }
        if event.is_mutating() {
            self.effect(key);
        }
        self.point().await;
        done(key)
    }

    fn effect(&self, key: &str) {
        let mut state = self.state();
        if !state.effects.iter().any(|done| done == key) {
            state.effects.push(key.to_owned());
        }
    }

    /// What the books know as asked, and not yet answered or decided, by its call.
    pub(super) fn open(&self) -> Vec<String> {
        let asked = self.state().events.clone().into_iter().filter_map(|event| {
            let (TurnEvent::Asked { tool_call_id: id, .. } | TurnEvent::ApprovalAsked { tool_call_id: id, .. }) = event
            else {
                return None;
            };
            (!self.has(&result_name(&id))).then_some(id)
        });
        let asked: BTreeSet<String> = asked.collect();
        asked.into_iter().collect()
    }

    fn answer_all(&self) {
        let open = self.open();
        assert!(!open.is_empty(), "it waits for nobody");
        for id in &open {
            self.answer(id);
        }
    }

    /// The person answers a question, or approves of a call, which is then done.
    pub(super) fn answer(&self, id: &str) {
        if id == "delete" {
            self.effect(&idempotency_key(Uuid::from_u128(9), id));
        }
        self.state().journal.push(JournalEntry::Result {
            tool_call_id: id.to_owned(),
            content: json!({"data": {"answer": id}, "scopeContext": "The person."}).to_string(),
            succeeded: true,
        });
    }
}

fn done(key: &str) -> AgentToolResult {
    AgentToolResult::Data {
        data: json!({"key": key}),
        scope_context: "All.".into(),
    }
}

fn pending() -> AgentToolResult {
    AgentToolResult::Pending {
        pending: PendingApproval {
            approval_id: Uuid::from_u128(5),
            preview: json!({"name": "Drama"}),
            expires_at: chrono::DateTime::UNIX_EPOCH,
        },
        scope_context: "One department.".into(),
    }
}

struct FakeModel(Arc<World>);

impl FakeModel {
    async fn answer(&self, messages: &[Value]) -> Completion {
        let is_rover = messages[0]["content"].as_str().unwrap().starts_with("You are Rover");
        let said = messages.iter().filter(|message| message["role"] == "assistant").count();
        let name = format!("{}#{}", if is_rover { "" } else { "t" }, said + 1);
        assert!(!self.0.has(&name), "{name} was kept, and is not asked for again");
        let read = Value::from(&messages[1..]);
        let before = self.0.state().read.insert(name.clone(), read.clone());
        assert!(
            before.is_none_or(|before| before == read),
            "{name} reads the same: {read}"
        );
        self.0.point().await;
        let (_, calls, text) = SCRIPT.iter().find(|(step, ..)| *step == name).unwrap();
        let call = |(id, name, arguments): &Call| ToolCall {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        Completion {
            text: (!text.is_empty()).then(|| (*text).to_owned()),
            calls: calls.iter().map(call).collect(),
            usage: Some(Usage {
                input_tokens: 10,
                output_tokens: 1,
            }),
            ..Completion::default()
        }
    }
}

impl ChatModel for FakeModel {
    fn ask<'a>(
        &'a self,
        messages: &'a [Value],
        _tools: &'a [Value],
        _deadline_ms: i64,
        _on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<Completion, ModelError>> {
        Box::pin(async { Ok(self.answer(messages).await) })
    }
}

struct Books(Arc<World>);

impl Reporter for Books {
    fn event(&self, event: TurnEvent) {
        self.0.tell(Told::Event(event));
    }

    fn keep(&self, entry: JournalEntry) {
        self.0.tell(Told::Entry(entry));
    }

    fn all_taken(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.0.point().await;
            self.0.store();
            self.0.point().await;
        })
    }
}
