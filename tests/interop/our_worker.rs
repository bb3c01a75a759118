//! Our worker's service calls the peer's server: through the exchange, with all that a worker sends.

use crate::{checked, nest::Nest};
use contract::{
    AgentCallScope, AgentIdentity, AgentToolRequest, AgentToolResult, Event, tools::tool_for_event, topology::Topology,
};
use e2e::{
    stage::{data, error, now_ms},
    world,
};
use lapin::{Connection, ConnectionProperties, options::QueueBindOptions, types::FieldTable};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection};
use std::{path::Path, time::Instant};
use uuid::Uuid;
use worker::{
    caller::{AgentToolCaller, CallTicket},
    rpc::AgentToolService,
};

pub(crate) async fn is_answered_by_a_nest_server(peer: &Path) {
    let name = format!("interop_{}", Uuid::new_v4().simple());
    let (topology, amqp_url) = (Topology::with_prefix(&format!("{name}.")), world::services().amqp_url());
    world::create_database(&name, None).await;
    let mut database = world::connect(&name).await;
    fill(&mut database, peer).await;
    let url = world::services().database_url_of(&name);
    let server = Nest::server(peer, amqp_url, &topology.tools_queue, &url).await;
    let worker = OurWorker::start(amqp_url, &topology).await;
    let (head, clerk) = (
        identity(&mut database, "head1@school6.test").await,
        identity(&mut database, "clerk1@school6.test").await,
    );
    let teacher = identity(&mut database, "teacher1@school1.test").await;

    let departments = data(worker.call("list.departments", &head, json!({})).await);
    assert_eq!(departments.as_array().map(Vec::len), Some(36));
    checked("list.departments: the Nest server's 36 rows are data to our worker");
    creates_a_department(&worker, &head, &mut database).await;
    let classrooms = data(worker.call("list.my_classrooms", &teacher, json!({})).await);
    assert_eq!(classrooms.as_array().map(Vec::len), Some(5));
    checked("list.my_classrooms: the teacher's 5 classrooms");

    let denied = error(worker.call("list.departments", &clerk, json!({})).await);
    assert_eq!(denied, "Permission denied: LIST DEPARTMENT.");
    checked("a denied call: the Nest server's words pass untouched");
    let invalid = error(worker.call("create.department", &head, json!({"name": "x"})).await);
    assert!(invalid.starts_with("Invalid tool arguments: name"), "{invalid}");
    checked("invalid arguments: the same");
    let begin = Instant::now();
    let unknown = error(worker.call("list.staff", &head, json!({})).await);
    assert!(
        unknown.contains("infrastructure issue") && begin.elapsed().as_secs() < 5,
        "{unknown}"
    );
    checked("an event without a handler there: an infrastructure error at once, not a hang");
    worker.0.close().await;
    drop((server, database));
    world::drop_database(&name).await;
}

async fn creates_a_department(worker: &OurWorker, head: &AgentIdentity, database: &mut PgConnection) {
    let campus: Uuid = sqlx::query_scalar("SELECT id FROM hop.campus WHERE school_id = $1 ORDER BY name LIMIT 1")
        .bind(head.school_id)
        .fetch_one(&mut *database)
        .await
        .unwrap();
    let args = json!({"name": "Interoperation", "campusId": campus});
    let created = data(worker.call("create.department", head, args).await);
    assert_eq!(
        (&created["name"], &created["campusId"]),
        (&json!("Interoperation"), &json!(campus))
    );
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM hop.department WHERE name = 'Interoperation'")
        .fetch_one(database)
        .await
        .unwrap();
    assert_eq!(rows, 1);
    checked("create.department: one row there");
}

/// The service as a worker starts it.
struct OurWorker(AgentToolService);

impl OurWorker {
    async fn start(amqp_url: &str, topology: &Topology) -> Self {
        let given = |variable: &str| match variable {
            "AMQP_URL" => Some(amqp_url.to_owned()),
            "MODEL" | "OPENAI_API_KEY" => Some("none".to_owned()),
            _ => None,
        };
        let config = worker::Config::from_lookup(given).expect("the worker's settings are right");
        let service = AgentToolService::start(&config.amqp_url, topology.clone()).expect("the address can be read");
        bind(amqp_url, topology).await;
        Self(service)
    }

    async fn call(&self, event: &str, identity: &AgentIdentity, args: Value) -> AgentToolResult {
        let event: Event = tool_for_event(event).expect("a tool has the event").definition.event;
        let ticket = CallTicket {
            idempotency_key: format!("{}:{}", Uuid::now_v7(), Uuid::new_v4().simple()),
            grant: Some("one that a Nest server does not look at".to_owned()),
            contract: None,
            deadline_ms: now_ms() + 20_000,
            trace_id: Uuid::new_v4(),
        };
        let request = AgentToolRequest {
            identity: identity.clone(),
            scope: AgentCallScope::School {},
            args,
        };
        self.0.call(event, request, ticket).await
    }
}

/// What our server declares and a Nest server does not: it knows its queue only.
async fn bind(amqp_url: &str, topology: &Topology) {
    let connection = Connection::connect(amqp_url, ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let options = lapin::options::ExchangeDeclareOptions {
        durable: true,
        ..Default::default()
    };
    let (exchange, queue) = (topology.tools_exchange.as_str(), topology.tools_queue.as_str());
    channel
        .exchange_declare(
            exchange.into(),
            lapin::ExchangeKind::Topic,
            options,
            FieldTable::default(),
        )
        .await
        .unwrap();
    channel
        .queue_bind(
            queue.into(),
            exchange.into(),
            "#".into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
        .unwrap();
    connection.close(200, "bound".into()).await.unwrap();
}

async fn fill(database: &mut PgConnection, peer: &Path) {
    for name in ["schema.sql", "seed.sql"] {
        let sql = std::fs::read_to_string(peer.join("sql").join(name)).expect("the peer has its tables with it");
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *database).await.unwrap();
    }
}

async fn identity(database: &mut PgConnection, email: &str) -> AgentIdentity {
    let row: Value = sqlx::query_scalar(
        "SELECT jsonb_strip_nulls(jsonb_build_object('sub', id, 'email', email, 'type', type, 'profileId', profile_id,
                                                     'schoolId', school_id, 'campusId', campus_id))
           FROM hop.app_user WHERE email = $1",
    )
    .bind(email)
    .fetch_one(database)
    .await
    .unwrap();
    serde_json::from_value(row).expect("an identity there is one here")
}
