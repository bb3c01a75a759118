//! A stream of writes with retries: what the turns of workers do while something is killed under them, and what must have come of it.

use crate::{Person, Stage};
use contract::{AgentToolRequest, AgentToolResult, Event, tools::tool_for_name, turn::idempotency_key};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};
use uuid::Uuid;
use worker::{
    caller::{AgentToolCaller, CallTicket},
    config::BrokerUrl,
    rpc::AgentToolService,
};

/// How many writes are under way at once.
const IN_FLIGHT: usize = 32;
/// How long one try may take: less than a caller would wait, so that there are tries before, while and after something is away.
const TRY_LIMIT: Duration = Duration::from_secs(6);
/// How long a write is tried in all.
const PATIENCE: Duration = Duration::from_mins(3);
/// Before the next try.
const PAUSE: Duration = Duration::from_millis(50);

/// What may be said of a write that was not done, or of which nobody knows. Anything else would be about the write itself, and
/// wrong: a name that is taken already, for one, was taken by the same write.
const EXCUSES: [&str; 6] = [
    "infrastructure issue",
    "That action could not be completed.",
    "The time for this call has run out.",
    "The time for this call ran out while it was carried out.",
    "This action may or may not have been carried out.",
    "This call was tried several times and never ended.",
];

/// A caller of a worker, and somebody in a turn.
pub struct Writers {
    service: AgentToolService,
    person: Person,
    done: AtomicUsize,
    tries: AtomicUsize,
}

impl Writers {
    /// Connects as a worker does.
    #[must_use]
    pub fn start(stage: &Stage, person: Person) -> Self {
        let broker = &stage.config().broker;
        let service = AgentToolService::start(&BrokerUrl::new(broker.amqp.reveal()), broker.topology.clone());
        Self {
            service: service.expect("the broker's address is one"),
            person,
            done: AtomicUsize::new(0),
            tries: AtomicUsize::new(0),
        }
    }

    /// One call under a key of the turn, as a worker makes it.
    pub async fn call(&self, tool: &str, args: Value, call_id: &str, patience: Duration) -> AgentToolResult {
        let tool = tool_for_name(tool).expect("there is such a tool");
        self.call_event(tool.definition.event, args, call_id, patience).await
    }

    /// The same, for any event.
    pub async fn call_event(&self, event: Event, args: Value, call_id: &str, patience: Duration) -> AgentToolResult {
        let request = AgentToolRequest {
            identity: self.person.identity.clone(),
            scope: self.person.scope,
            args,
        };
        let wait_ms = i64::try_from(patience.as_millis()).expect("a wait is short");
        let ticket = CallTicket {
            idempotency_key: idempotency_key(self.person.turn_id, call_id),
            grant: Some(self.person.grant.clone()),
            contract: None,
            deadline_ms: crate::stage::now_ms() + wait_ms,
            trace_id: self.person.turn_id,
        };
        self.service.call(event, request, ticket).await
    }

    /// Creates departments number 0 to `count`, each under a key of its own and until it is answered with data. Answers what was
    /// answered, by number.
    pub async fn write(&self, count: usize) -> Vec<Value> {
        let writes = (0..count).map(|number| async move { (number, self.write_one(number).await) });
        let mut answers: Vec<_> = stream::iter(writes).buffer_unordered(IN_FLIGHT).collect().await;
        answers.sort_by_key(|(number, _)| *number);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    async fn write_one(&self, number: usize) -> Value {
        let begun = Instant::now();
        loop {
            self.tries.fetch_add(1, Ordering::Relaxed);
            let args = json!({"name": name(number), "description": "Written while something was killed"});
            let result = self
                .call("create_department", args, &format!("write_{number}"), TRY_LIMIT)
                .await;
            match result {
                AgentToolResult::Data { data, .. } => {
                    self.done.fetch_add(1, Ordering::Relaxed);
                    return data;
                }
                pending @ AgentToolResult::Pending { .. } => panic!("write {number} waits: {pending:?}"),
                AgentToolResult::Error { error } => {
                    assert!(
                        EXCUSES.iter().any(|excuse| error.contains(excuse)),
                        "write {number}: {error}"
                    );
                    assert!(begun.elapsed() < PATIENCE, "write {number} was never done: {error}");
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// How many writes have been answered with data.
    #[must_use]
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// How often any was tried.
    #[must_use]
    pub fn tries(&self) -> usize {
        self.tries.load(Ordering::Relaxed)
    }

    /// Waits until this many writes are done.
    pub async fn until(&self, done: usize) {
        while self.done() < done {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Departments written = audit rows = keys; each is what its writer was answered; and each key asked again gives the same answer.
    pub async fn assert_settled(&self, stage: &Stage, answers: &[Value]) {
        let mut owner = stage.owner().await;
        let rows: Vec<(Uuid, String)> = sqlx::query_as("SELECT id, name FROM departments WHERE name LIKE 'Write %'")
            .fetch_all(&mut owner)
            .await
            .expect("the query runs");
        let rows: BTreeMap<String, Uuid> = rows.into_iter().map(|(id, name)| (name, id)).collect();
        let answered: BTreeMap<String, Uuid> = answers.iter().map(|data| (text(data, "name"), id(data))).collect();
        assert_eq!(answered.len(), answers.len(), "every write was answered for itself");
        assert_eq!(rows, answered, "what was answered is what was written");
        let audited: Vec<(Uuid, String)> =
            sqlx::query_as("SELECT resource_id, tool_call_id FROM audit_log WHERE event = 'create.department'")
                .fetch_all(&mut owner)
                .await
                .expect("the query runs");
        assert_eq!(audited.len(), answers.len(), "each write has one audit row");
        for (resource, call) in audited {
            let number: usize = call.trim_start_matches("write_").parse().expect("a key of ours");
            assert_eq!(
                id(&answers[number]),
                resource,
                "the audit row of {call} is of what was written"
            );
        }
        let keys = stage
            .count("SELECT count(*) FROM tool_calls WHERE reply IS NOT NULL")
            .await;
        assert_eq!(
            usize::try_from(keys).expect("a count"),
            answers.len(),
            "each key is done once"
        );
        let again = self.write(answers.len()).await;
        assert_eq!(again, answers, "the same key has the same answer");
        let rows = stage
            .count("SELECT count(*) FROM departments WHERE name LIKE 'Write %'")
            .await;
        assert_eq!(
            usize::try_from(rows).expect("a count"),
            answers.len(),
            "nothing was written again"
        );
    }
}

/// Moments at which to kill, in numbers of writes done: one drawn in each of as many equal parts.
#[must_use]
pub fn moments(kills: usize, writes: usize) -> Vec<usize> {
    let part = writes / (kills + 1);
    let draw = || usize::try_from(Uuid::new_v4().as_u128() % part.max(1) as u128).expect("a part is small");
    let moments = (0..kills).map(|kill| kill * part + draw()).collect();
    eprintln!("kills at {moments:?} of {writes} writes");
    moments
}

fn name(number: usize) -> String {
    format!("Write {number}")
}

fn text(data: &Value, member: &str) -> String {
    data[member].as_str().expect("a text").to_owned()
}

fn id(data: &Value) -> Uuid {
    text(data, "id").parse().expect("an id")
}
