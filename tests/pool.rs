//! The pool under calls that are given up at any moment, and under many tenants at once.

use contract::AgentToolResult;
use e2e::{
    Person, Stage,
    fixtures::{HILLTOP, RIVERSIDE, School},
    stage::{data, incoming},
};
use serde_json::{Value, json};
use server::{db::Database, execute::Pipeline};
use std::{
    collections::BTreeSet,
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// Connections of the tenants' pool, and of the operator's.
const CONNECTIONS: usize = 4;
/// Calls that are given up.
const CANCELLED: u32 = 2_000;
/// Calls of a round.
const CALLS: u32 = 1_000;
/// Calls in flight.
const LANES: u32 = 8;

/// What is set on a connection, and whether it is in a transaction: then the transaction is older than the statement.
const LEFT_BEHIND: &str =
    "SELECT concat(current_setting('app.school_id', true), '|', current_setting('statement_timeout'), '|',
                                         current_setting('transaction_read_only'), '|', now() = statement_timestamp())";
/// The answer of a connection that nothing was left on.
const NOTHING: &str = "|0|off|t";

/// A pipeline whose connections can be asked.
struct Watched {
    stage: Stage,
    database: Database,
    pipeline: Pipeline,
    /// Somebody of each school who may write, with a campus to write on; and the operator.
    writers: Vec<(Person, Value)>,
}

impl Watched {
    async fn new(connections: &str) -> Self {
        let stage = Stage::with(&[("DB_POOL", connections)]).await;
        let database = Database::connect_lazily(&stage.config().roles).unwrap();
        let pipeline = Pipeline::new(database.clone(), stage.config().grants.clone()).unwrap();
        let mut writers = Vec::new();
        for school in [HILLTOP, RIVERSIDE] {
            for who in ["admin", "head"] {
                let campus = json!(school.campus(school.first_campus));
                writers.push((stage.person(&school.email(who)).await, campus));
            }
        }
        let campus = json!(HILLTOP.campus(HILLTOP.second_campus));
        writers.push((stage.person("platform@operator.example").await, campus));
        Self {
            stage,
            database,
            pipeline,
            writers,
        }
    }

    /// Two writes for each read, by each of the writers in turn.
    async fn call(&self, number: u32) -> AgentToolResult {
        let (person, campus) = &self.writers[number as usize % self.writers.len()];
        let (tool, args) = if is_write(number) {
            ("create_department", json!({"name": name(number), "campusId": campus}))
        } else {
            ("list_departments", json!({}))
        };
        self.pipeline
            .execute(incoming(person, tool, args, &number.to_string()))
            .await
    }

    /// What the connections were left with that they should not be.
    async fn left_behind(&self) -> Vec<String> {
        let answers = self.database.ask_every_connection(LEFT_BEHIND).await;
        let answers = answers.expect("the pools are whole, and every connection answers");
        assert_eq!(answers.len(), 2 * CONNECTIONS);
        answers.into_iter().filter(|answer| answer != NOTHING).collect()
    }

    /// Waits until the database has ended all that was given up.
    async fn settle(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.stage.count(BUSY).await > 0 {
            assert!(Instant::now() < deadline, "calls that were given up go on for ever");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

const BUSY: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename LIKE 'school%' AND state <> 'idle'";

const fn is_write(number: u32) -> bool {
    !number.is_multiple_of(3)
}

fn name(number: u32) -> String {
    format!("Cancelled {number}")
}

/// How long a call is let run: a few microseconds, up to two milliseconds, and up to somewhat longer than a call takes here.
fn patience(number: u32, usual: Duration) -> Duration {
    match number / LANES % 8 {
        0..=3 => Duration::from_micros(u64::from(number % 121)),
        4..=6 => Duration::from_micros(u64::from(number) * 7 % 2_000),
        _ => usual.mul_f64(f64::from(number % 150) / 100.0),
    }
}

/// Runs a future for so long and then drops it. A timer would be too coarse: it is asked again and again.
async fn for_at_most<T>(patience: Duration, future: impl Future<Output = T>) -> Option<T> {
    let began = Instant::now();
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if began.elapsed() >= patience => Poll::Ready(None),
        Poll::Pending => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// fault 53, fault 5
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn is_whole_and_clean_after_cancelled_calls_and_no_write_is_lost() {
    let watched = Arc::new(Watched::new(&CONNECTIONS.to_string()).await);
    let before = watched.stage.count("SELECT count(*) FROM departments").await;
    let began = Instant::now();
    for number in 1_000_000..1_000_020 {
        watched.call(number).await;
    }
    let usual = began.elapsed() / 20;

    let mut answered = Vec::new();
    let (mut round, mut cancelled) = (0, 0);
    while cancelled < CANCELLED || answered.len() < 20 {
        // on a busy machine few calls come to their end until they are let run for longer
        let longer = usual * 2_u32.pow(round);
        let (more, given_up) = cancel(&watched, round * CALLS, longer).await;
        answered.extend(more);
        cancelled += given_up;
        round += 1;
    }
    watched.settle().await;
    assert_eq!(watched.left_behind().await, Vec::<String>::new());

    let later: Vec<u32> = (2_000_000..2_000_100).filter(|number| is_write(*number)).collect();
    for number in &later {
        data(watched.call(*number).await);
    }
    watched.settle().await;
    assert_eq!(watched.left_behind().await, Vec::<String>::new());
    let stored: Vec<String> = sqlx::query_scalar("SELECT name FROM departments")
        .fetch_all(&mut watched.stage.owner().await)
        .await
        .unwrap();
    let stored: BTreeSet<String> = stored.into_iter().collect();
    for number in answered.iter().chain(&later) {
        assert!(
            stored.contains(&name(*number)),
            "{number} was answered with data, and is lost"
        );
    }
    let written = watched.stage.count("SELECT count(*) FROM departments").await - before;
    assert_eq!(watched.stage.audit_rows().await, written);
    let described = "SELECT count(DISTINCT resource_id) FROM audit_log a JOIN departments d ON d.id = a.resource_id";
    assert_eq!(watched.stage.count(described).await, written);
    let keys = "SELECT (SELECT count(*) FROM tool_calls) + (SELECT count(*) FROM operator_tool_calls)";
    assert_eq!(watched.stage.count(keys).await, written);
    Arc::into_inner(watched).unwrap().stage.finish().await;
}

/// Begins a round of calls and gives them up. Answers those that wrote something and said so before, and how many said nothing.
async fn cancel(watched: &Arc<Watched>, first: u32, usual: Duration) -> (Vec<u32>, u32) {
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let watched = Arc::clone(watched);
        lanes.spawn(async move {
            let (mut answered, mut cancelled) = (Vec::new(), 0);
            for number in (first + lane..first + CALLS).step_by(LANES as usize) {
                match for_at_most(patience(number, usual), watched.call(number)).await {
                    Some(result) if is_write(number) && result.is_data() => answered.push(number),
                    Some(_) => {}
                    None => cancelled += 1,
                }
            }
            (answered, cancelled)
        });
    }
    let lanes = lanes.join_all().await;
    let cancelled = lanes.iter().map(|(_, cancelled)| cancelled).sum();
    (
        lanes.into_iter().flat_map(|(answered, _)| answered).collect(),
        cancelled,
    )
}

/// What the test above asks each connection does show a setting that was left behind, and a transaction.
#[tokio::test]
async fn shows_what_is_left_behind() {
    let watched = Watched::new(&CONNECTIONS.to_string()).await;
    let ask = async |question| watched.database.ask_every_connection(question).await.unwrap();
    ask("SET app.school_id = '018f0000-0000-7000-8000-000000000001'; SELECT 'set'").await;
    let left = watched.left_behind().await;
    assert_eq!(left.len(), 2 * CONNECTIONS, "{left:?}");
    ask("RESET app.school_id; SELECT 'reset'").await;
    assert_eq!(watched.left_behind().await, Vec::<String>::new());
    ask("BEGIN; SELECT 'begun'").await;
    let left = watched.left_behind().await;
    assert_eq!(left.len(), 2 * CONNECTIONS, "{left:?}");
    ask("ROLLBACK; SELECT 'ended'").await;
    watched.stage.finish().await;
}

/// fault 5
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_one_connection_mixes_up_no_tenants() {
    let stage = Stage::with(&[("DB_POOL", "1")]).await;
    let mut expected = Vec::new();
    for (school, who) in everybody() {
        let person = stage.person(&school.email(who)).await;
        for tool in [
            "get_school_branding",
            "list_departments",
            "list_staff",
            "list_my_classrooms",
        ] {
            let alone = stage.call(&person, tool, json!({})).await;
            expected.push((person.clone(), tool, alone));
        }
    }
    let distinct: BTreeSet<String> = expected.iter().map(|(.., reply)| json!(reply).to_string()).collect();
    assert!(distinct.len() > 10, "people see different things: {}", distinct.len());

    let (pipeline, expected) = (Arc::clone(stage.pipeline()), Arc::new(expected));
    let mut lanes = JoinSet::new();
    for lane in 0..4 {
        let (pipeline, expected) = (Arc::clone(&pipeline), Arc::clone(&expected));
        lanes.spawn(async move {
            for turn in 0..160 {
                // each lane goes through all of them at a pace of its own
                let (person, tool, alone) = &expected[(lane + turn * (2 * lane + 7)) % expected.len()];
                let call = incoming(person, tool, json!({}), &format!("{lane} {turn}"));
                assert_eq!(pipeline.execute(call).await, *alone, "{} {tool}", person.identity.email);
            }
        });
    }
    lanes.join_all().await;
    drop((pipeline, expected));
    stage.finish().await;
}

fn everybody() -> Vec<(School, &'static str)> {
    let people = ["admin", "head", "clerk", "class.teacher", "newcomer"];
    let of = |school: School| people.map(|who| (school, who));
    [of(HILLTOP), of(RIVERSIDE)].concat()
}
