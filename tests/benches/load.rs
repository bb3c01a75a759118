//! The one load driver: keeps so many calls in flight, through the packet that all contestants speak.

use crate::{
    amqp::{Connection, Header, Outgoing, Reply},
    people::{People, Person},
};
use anyhow::{Context as _, bail, ensure};
use contract::envelope::{DEADLINE_HEADER, GRANT_HEADER, TRACE_HEADER};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::{
    borrow::Cow,
    collections::HashMap,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use uuid::Uuid;

/// A call without an answer by then is lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub(crate) enum Event {
    #[serde(rename = "list.departments")]
    ListDepartments,
    #[serde(rename = "create.department")]
    CreateDepartment,
    #[serde(rename = "list.my_classrooms")]
    ListMyClassrooms,
}

impl Event {
    pub(crate) const ALL: [Self; 3] = [Self::ListDepartments, Self::CreateDepartment, Self::ListMyClassrooms];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ListDepartments => "list.departments",
            Self::CreateDepartment => "create.department",
            Self::ListMyClassrooms => "list.my_classrooms",
        }
    }

    /// How many rows each reply holds, of whichever shape: each row names its campus once.
    const fn rows(self) -> usize {
        match self {
            Self::ListDepartments => 36,
            Self::CreateDepartment => 1,
            Self::ListMyClassrooms => 5,
        }
    }

    /// How long a caller waits, as the contract has it.
    const fn deadline_ms(self) -> i64 {
        match self {
            Self::CreateDepartment => 30_000,
            Self::ListDepartments | Self::ListMyClassrooms => 10_000,
        }
    }
}

/// How calls reach a contestant.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// Ours: to the exchange, mandatory, with a grant, a deadline, a key and a trace.
    Governed { exchange: String },
    /// A peer: to its queue by name, with what a Nest client sends.
    Bare { queue: String },
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) event: Event,
    pub(crate) in_flight: usize,
    pub(crate) calls: usize,
    /// No call is begun after this time.
    pub(crate) limit: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) calls: usize,
    pub(crate) took: Duration,
    pub(crate) errors: Vec<String>,
    latencies: Vec<Duration>,
}

impl Outcome {
    /// A quantile of the latencies, in milliseconds.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index"
        )]
        let at = ((last as f64) * quantile).round() as usize;
        self.latencies
            .get(at)
            .map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
    }
}

/// The driver.
pub(crate) struct Driver {
    connection: Connection,
    sent: u64,
}

impl Driver {
    pub(crate) fn connect(amqp_url: &str) -> anyhow::Result<Self> {
        Ok(Self {
            connection: Connection::open(amqp_url)?,
            sent: 0,
        })
    }

    /// Runs a load to its end. Every reply is looked at.
    pub(crate) fn run(&mut self, route: &Route, people: &People, load: Load) -> anyhow::Result<Outcome> {
        let mut run = Run::new(load);
        let begin = Instant::now();
        for _ in 0..load.in_flight.min(load.calls) {
            self.send(route, people, &mut run)?;
        }
        self.connection.flush()?;
        while !run.pending.is_empty() {
            if !self.connection.wait(PATIENCE)? {
                bail!(
                    "{} of {} calls had no answer within {PATIENCE:?}",
                    run.pending.len(),
                    run.begun
                );
            }
            while let Some(reply) = self.connection.take()? {
                run.take(&reply)?;
                if run.begun < load.calls && begin.elapsed() < load.limit {
                    self.send(route, people, &mut run)?;
                }
            }
            self.connection.flush()?;
        }
        Ok(run.outcome(begin.elapsed()))
    }

    /// Sends so many calls at once, calls `after` when `answered` of them are answered, and takes answers until none comes for
    /// `silence`. Answers how many were answered in all.
    pub(crate) fn burst(
        &mut self,
        route: &Route,
        people: &People,
        load: Load,
        answered: usize,
        after: impl FnOnce(),
        silence: Duration,
    ) -> anyhow::Result<Outcome> {
        let mut run = Run::new(load);
        let mut after = Some(after);
        let begin = Instant::now();
        for _ in 0..load.calls {
            self.send(route, people, &mut run)?;
        }
        self.connection.flush()?;
        while !run.pending.is_empty() && self.connection.wait(silence)? {
            while let Some(reply) = self.connection.take()? {
                run.take(&reply)?;
            }
            if run.latencies.len() >= answered
                && let Some(after) = after.take()
            {
                after();
            }
        }
        Ok(run.outcome(begin.elapsed()))
    }

    fn send(&mut self, route: &Route, people: &People, run: &mut Run) -> anyhow::Result<()> {
        let event = run.load.event;
        let (number, person) = (run.begun, people.caller(event, run.begun));
        self.sent += 1;
        let id = format!("{:x}", self.sent);
        let args = match event {
            Event::CreateDepartment => people.new_department(&run.name, number),
            Event::ListDepartments | Event::ListMyClassrooms => "{}".to_owned(),
        };
        let body = format!(
            r#"{{"pattern":"{}","data":{{"identity":{},"scope":{{"mode":"school"}},"args":{args}}},"id":"{id}"}}"#,
            event.as_str(),
            person.identity
        );
        let message = Outgoing {
            correlation_id: &id,
            body: body.as_bytes(),
            ..Outgoing::default()
        };
        match route {
            Route::Bare { queue } => self.connection.publish(&Outgoing {
                routing_key: queue,
                ..message
            }),
            Route::Governed { exchange } => self.governed(exchange, event, person, &message)?,
        }
        run.pending.insert(id, Instant::now());
        run.begun += 1;
        Ok(())
    }

    /// What the worker sends.
    fn governed(
        &mut self,
        exchange: &str,
        event: Event,
        person: &Person,
        message: &Outgoing<'_>,
    ) -> anyhow::Result<()> {
        let granted = person.granted.as_ref().context("nobody here has a grant")?;
        let key = format!("{}:{}", granted.turn_id, message.correlation_id);
        let trace = format!("00-{}-{:016x}-01", granted.turn_id.simple(), self.sent);
        let headers = [
            (GRANT_HEADER, Header::Text(&granted.token)),
            (DEADLINE_HEADER, Header::Number(now_ms()? + event.deadline_ms())),
            (TRACE_HEADER, Header::Text(&trace)),
        ];
        self.connection.publish(&Outgoing {
            exchange,
            routing_key: event.as_str(),
            mandatory: true,
            content_type: "application/json",
            expiration: &event.deadline_ms().to_string(),
            message_id: &key,
            kind: event.as_str(),
            headers: &headers,
            ..*message
        });
        Ok(())
    }
}

/// A run under way.
struct Run {
    load: Load,
    name: String,
    begun: usize,
    pending: HashMap<String, Instant>,
    latencies: Vec<Duration>,
    errors: Vec<String>,
}

impl Run {
    fn new(load: Load) -> Self {
        let mut name = Uuid::new_v4().simple().to_string();
        name.truncate(8);
        Self {
            load,
            name,
            begun: 0,
            pending: HashMap::with_capacity(load.in_flight),
            latencies: Vec::new(),
            errors: Vec::new(),
        }
    }

    fn take(&mut self, reply: &Reply) -> anyhow::Result<()> {
        let Some(sent) = self.pending.remove(&reply.correlation_id) else {
            bail!("a reply that nobody waits for: {}", reply.correlation_id);
        };
        self.latencies.push(sent.elapsed());
        if let Err(error) = check(reply, self.load.event) {
            self.errors.push(format!("{error:#}"));
        }
        Ok(())
    }

    fn outcome(mut self, took: Duration) -> Outcome {
        self.latencies.sort_unstable();
        Outcome {
            calls: self.latencies.len(),
            took,
            errors: self.errors,
            latencies: self.latencies,
        }
    }
}

#[derive(Deserialize)]
struct Packet<'a> {
    #[serde(borrow)]
    response: Response<'a>,
}

#[derive(Deserialize)]
struct Response<'a> {
    data: Option<IgnoredAny>,
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
}

/// Whether a reply is data, with as many rows as there are.
fn check(reply: &Reply, event: Event) -> anyhow::Result<()> {
    ensure!(!reply.is_returned, "nobody takes calls");
    let packet: Packet<'_> = serde_json::from_slice(&reply.body).context("the reply is no packet")?;
    if let Some(error) = packet.response.error {
        bail!("{error}");
    }
    ensure!(packet.response.data.is_some(), "no data");
    let text = std::str::from_utf8(&reply.body)?;
    let rows = text.matches(r#""campusId""#).count();
    ensure!(rows == event.rows(), "{rows} rows instead of {}", event.rows());
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the driver's own clock, for deadlines on the wire"
)]
pub(crate) fn now_ms() -> anyhow::Result<i64> {
    Ok(i64::try_from(
        SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis(),
    )?)
}
