//! A stage: one test's database and broker names, with the seeded schools on it.

use crate::{broker, world};
use contract::{
    AgentToolRequest, AgentToolResult, envelope::PendingApproval, tools::tool_for_name, turn::idempotency_key,
};
use serde_json::Value;
use server::{
    config::Config,
    conversation,
    db::Database,
    decision::{DecisionError, Decisions, Ruling},
    dispatch::{self, Minted, Wanted},
    execute::{Incoming, Pipeline},
    grant::Door,
    rpc,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::oneshot, task::JoinHandle};
use uuid::Uuid;
use xtask::services::PrivatePostgres;

/// The secret that every stage signs grants with.
pub const GRANT_SECRET: &str = "a secret of the tests, thirty-two bytes long";

/// One test's database and broker names.
pub struct Stage {
    name: String,
    variables: HashMap<String, String>,
    config: Config,
    pipeline: Arc<Pipeline>,
    decisions: Decisions,
    database: Database,
}

/// A person in a turn: all that is needed to call as them.
pub type Person = Minted;

impl Stage {
    /// A seeded stage.
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// A seeded stage whose server has other settings.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let name = format!("e2e_{}", Uuid::new_v4().simple());
        world::create_database(&name, Some(world::template().await)).await;
        Self::on_database(&world::services().database_url_of(&name), &name, settings)
    }

    /// A seeded stage on a database server of its own, which the test may lose. It goes with its server; there is nothing to finish.
    pub async fn on(postgres: &PrivatePostgres, settings: &[(&str, &str)]) -> Self {
        let name = format!("e2e_{}", Uuid::new_v4().simple());
        let mut server = PgConnection::connect(postgres.url())
            .await
            .expect("the database answers");
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut server)
            .await
            .expect("the statement runs");
        let url = postgres.url_of(&name);
        world::prepare(&url).await;
        Self::on_database(&url, &name, settings)
    }

    fn on_database(url: &str, name: &str, settings: &[(&str, &str)]) -> Self {
        let mut variables = HashMap::from([
            ("DATABASE_URL".to_owned(), url.to_owned()),
            ("AMQP_URL".to_owned(), world::services().amqp_url().to_owned()),
            ("QUEUE_PREFIX".to_owned(), format!("{name}.")),
            ("GRANT_SECRET".to_owned(), GRANT_SECRET.to_owned()),
            ("DB_POOL".to_owned(), "8".to_owned()),
        ]);
        variables.extend(
            settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        Self::of(name.to_owned(), variables)
    }

    fn of(name: String, variables: HashMap<String, String>) -> Self {
        let config = Config::from_lookup(&|name| variables.get(name).cloned()).expect("the stage's settings are right");
        let connect = || Database::connect_lazily(&config.roles).expect("the stage's URLs can be read");
        let pipeline = Arc::new(Pipeline::new(connect(), config.grants.clone()).expect("the pipeline is whole"));
        let decisions = Decisions::new(Arc::clone(&pipeline));
        let database = connect();
        Self {
            name,
            variables,
            config,
            pipeline,
            decisions,
            database,
        }
    }

    /// The environment of a process on this stage.
    #[must_use]
    pub const fn variables(&self) -> &HashMap<String, String> {
        &self.variables
    }

    /// The server's configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The pipeline, in this process.
    #[must_use]
    pub const fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// Another pipeline, with connections of its own that end with it.
    #[must_use]
    pub fn another_pipeline(&self) -> Pipeline {
        let database = Database::connect_lazily(&self.config.roles).expect("the stage's URLs can be read");
        Pipeline::new(database, self.config.grants.clone()).expect("the pipeline is whole")
    }

    /// Decisions about calls that wait, over the same pipeline.
    #[must_use]
    pub const fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// The database of the stage.
    #[must_use]
    pub fn database_name(&self) -> &str {
        &self.name
    }

    /// Somebody in a turn of the whole school; panics for whoever gets none.
    pub async fn person(&self, email: &str) -> Person {
        self.try_person(email, None).await.expect("a turn is minted")
    }

    /// Somebody in a turn on one campus.
    pub async fn person_on(&self, email: &str, campus: &str) -> Person {
        self.try_person(email, Some(campus)).await.expect("a turn is minted")
    }

    /// Somebody in a turn, or why they get none.
    pub async fn try_person(&self, email: &str, campus: Option<&str>) -> Result<Person, dispatch::DispatchError> {
        let wanted = Wanted {
            email: email.to_owned(),
            school: None,
            campus: campus.map(str::to_owned),
            door: Door::Chat,
            turn: None,
            lasts: Duration::from_mins(10),
        };
        dispatch::mint(&self.database, &self.config.grants, wanted).await
    }

    /// Calls a tool through the pipeline, under a key of its own, with the approval that it may need.
    pub async fn call(&self, person: &Person, tool: &str, args: Value) -> AgentToolResult {
        self.call_keyed(person, tool, args, &Uuid::new_v4().to_string()).await
    }

    /// The same, under this tool-call id of the person's turn.
    pub async fn call_keyed(&self, person: &Person, tool: &str, args: Value, call_id: &str) -> AgentToolResult {
        self.execute(incoming(person, tool, args, call_id)).await
    }

    /// The same, for a call as a door hands it in.
    pub async fn execute(&self, call: Incoming) -> AgentToolResult {
        let email = call.request["identity"]["email"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match self.pipeline.execute(call).await {
            AgentToolResult::Pending { pending, .. } => self.approve(&email, pending.approval_id).await,
            result @ (AgentToolResult::Data { .. } | AgentToolResult::Error { .. }) => result,
        }
    }

    /// Calls a tool through the pipeline, and answers its first reply: of one that needs approval, that it waits.
    pub async fn ask(&self, person: &Person, tool: &str, args: Value) -> AgentToolResult {
        let call = incoming(person, tool, args, &Uuid::new_v4().to_string());
        self.pipeline.execute(call).await
    }

    /// Says yes to a call that waits, as whoever asked for it; where that needs somebody else, as its school's head or administrator.
    /// Answers what came of the call.
    async fn approve(&self, requester: &str, approval: Uuid) -> AgentToolResult {
        let person = |email: &str| conversation::Person {
            email: email.to_owned(),
        };
        let waits = self.decisions.one(&person(requester), Door::Rest, approval).await;
        let waits = waits.expect("whoever asked sees it");
        let (who, school) = requester.split_once('@').expect("an address");
        let other = if who == "admin" { "head" } else { "admin" };
        let somebody = person(&match waits.approver {
            None => requester.to_owned(),
            Some(_) => format!("{other}@{school}"),
        });
        let decided = self
            .decisions
            .decide(&somebody, Door::Rest, approval, Ruling::approve());
        let result = match decided.await {
            Ok(settled) => settled.approval.result,
            Err(DecisionError::Failed(_) | DecisionError::Database(_)) => None,
            Err(refused) => panic!("it is not decided: {refused}"),
        };
        match result {
            Some(result) => serde_json::from_value(result).expect("a result is one"),
            None => AgentToolResult::error(server::error::MASKED_ERROR),
        }
    }

    /// Runs this stage's server on the broker, in this process.
    #[expect(clippy::disallowed_methods, reason = "its handle is awaited when it is stopped")]
    pub async fn serve(&self) -> Serving {
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, is_ready) = oneshot::channel();
        let (pipeline, broker) = (Arc::clone(&self.pipeline), self.config.broker.clone());
        let ready = std::sync::Mutex::new(Some(ready));
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            rpc::serve(pipeline, &broker, stopped, || {
                if let Some(ready) = ready.lock().expect("nobody panicked here").take() {
                    let _ = ready.send(());
                }
            })
            .await;
        });
        is_ready.await.expect("the server becomes ready");
        Serving { stop: Some(stop), task }
    }

    /// A peer on this stage's broker.
    pub async fn peer(&self) -> broker::Peer {
        broker::Peer::connect(self.config.broker.amqp.reveal(), self.config.broker.topology.clone()).await
    }

    /// A connection as the owner, for arranging and asserting.
    pub async fn owner(&self) -> PgConnection {
        let url = self.variables.get("DATABASE_URL").expect("a stage has a database");
        PgConnection::connect(url).await.expect("the database answers")
    }

    /// One number from the database.
    pub async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query)
            .fetch_one(&mut self.owner().await)
            .await
            .expect("the query runs")
    }

    /// Waits until a query counts this much.
    pub async fn until(&self, query: &'static str, wanted: i64) {
        let counted = async {
            while self.count(query).await != wanted {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), counted)
            .await
            .unwrap_or_else(|_| panic!("it never comes to {wanted}: {query}"));
    }

    /// Changes the database behind everybody's back.
    pub async fn arrange(&self, statement: &str) {
        let statement = AssertSqlSafe(statement.to_owned());
        sqlx::raw_sql(statement)
            .execute(&mut self.owner().await)
            .await
            .expect("the statement runs");
    }

    /// Runs a call that reads a table which it finds held, and meanwhile changes the database behind its back.
    pub async fn meanwhile(
        &self,
        held: &str,
        call: impl Future<Output = AgentToolResult>,
        statement: &str,
    ) -> AgentToolResult {
        let mut holder = self.owner().await;
        let lock = AssertSqlSafe(format!("BEGIN; LOCK TABLE {held} IN ACCESS EXCLUSIVE MODE"));
        sqlx::raw_sql(lock)
            .execute(&mut holder)
            .await
            .expect("the table is free");
        let change = async {
            let waits = "SELECT least(count(*), 1) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                          WHERE NOT l.granted AND l.locktype = 'relation' AND d.datname = current_database()";
            self.until(waits, 1).await;
            self.arrange(statement).await;
            sqlx::raw_sql("COMMIT")
                .execute(&mut holder)
                .await
                .expect("it is let go");
        };
        tokio::join!(call, change).0
    }

    /// How many rows of writes the audit log has; decisions about them have rows of their own.
    pub async fn audit_rows(&self) -> i64 {
        self.count("SELECT count(*) FROM audit_log WHERE event <> 'decide.approval'")
            .await
    }

    /// Gives the database back. A stage that is not finished leaves it to the end of the services.
    pub async fn finish(self) {
        drop(self.pipeline);
        world::drop_database(&self.name).await;
    }
}

/// A server that runs in this process.
pub struct Serving {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Stops it as SIGTERM would, and waits for its end.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.expect("the server ends in order");
    }
}

/// A call as a door hands it in.
#[must_use]
pub fn incoming(person: &Person, tool: &str, args: Value, call_id: &str) -> Incoming {
    let tool = tool_for_name(tool).unwrap_or_else(|| panic!("{tool} is no tool"));
    let request = AgentToolRequest {
        identity: person.identity.clone(),
        scope: person.scope,
        args,
    };
    Incoming {
        event: tool.definition.event.to_string(),
        request: serde_json::to_value(request).expect("a request is JSON"),
        grant: Some(person.grant.clone()),
        key: idempotency_key(person.turn_id, call_id),
        contract: None,
        deadline_ms: now_ms() + i64::try_from(tool.definition.deadline().as_millis()).expect("a deadline is short"),
    }
}

/// Milliseconds since 1970.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the tests' own clock")]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    i64::try_from(since.as_millis()).expect("and before the end")
}

/// The data of a result that must be data.
#[expect(clippy::must_use_candidate, reason = "it asserts, and often nothing more is wanted")]
pub fn data(result: AgentToolResult) -> Value {
    match result {
        AgentToolResult::Data { data, .. } => data,
        AgentToolResult::Error { error } => panic!("expected data, got the error {error:?}"),
        pending @ AgentToolResult::Pending { .. } => panic!("expected data, got {pending:?}"),
    }
}

/// The text of a result that must be an error.
#[expect(clippy::must_use_candidate, reason = "it asserts, and often nothing more is wanted")]
pub fn error(result: AgentToolResult) -> String {
    match result {
        AgentToolResult::Error { error } => error,
        AgentToolResult::Data { data, .. } => panic!("expected an error, got the data {data}"),
        pending @ AgentToolResult::Pending { .. } => panic!("expected an error, got {pending:?}"),
    }
}

/// What a result waits for that must wait.
#[expect(clippy::must_use_candidate, reason = "it asserts, and often nothing more is wanted")]
pub fn pending(result: AgentToolResult) -> PendingApproval {
    match result {
        AgentToolResult::Pending { pending, .. } => pending,
        other @ (AgentToolResult::Data { .. } | AgentToolResult::Error { .. }) => {
            panic!("expected to wait, got {other:?}")
        }
    }
}
