//! One stage with marks everywhere, calls run on it several at a time over few connections, and the one judgement: whether anything
//! holds a mark that it must not.

use super::{
    actors::{self, Actor},
    catalog::Catalog,
    draw::{Deck, Drawn, Envelope, Key},
    facts::{Facts, role_names},
    ids::{make_coherent, near},
    logs::Logs,
    marking::{self, Origin},
    marks::{Mark, Owner, marks_in, marks_of, serial, walk},
    reach::{Given, Reach, business, reach},
    settle::{MARK, potential, table_of},
    sight::Sight,
};
use contract::{AgentToolResult, RPC_AGENT_TOOLS, Resource, RpcTool, turn::idempotency_key};
use e2e::{Stage, stage::now_ms};
use serde_json::{Value, json};
use server::execute::Incoming;
use sqlx::AssertSqlSafe;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Connections for all schools together.
const CONNECTIONS: &str = "3";
/// Calls in flight.
const LANES: usize = 8;

/// The stage with all that is known about it.
pub(super) struct Theatre {
    pub(super) stage: Stage,
    pub(super) facts: Arc<Facts>,
    pub(super) deck: Arc<Deck>,
    pub(super) tally: Mutex<Tally>,
    catalog: Catalog,
    given: Given,
    /// The rows that the marks of calls went to.
    written: Mutex<HashMap<Mark, Vec<Origin>>>,
    logs: Logs,
    runs: AtomicU64,
}

/// What was seen, to know that there was something to be seen.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) calls: usize,
    /// By tool: how often it answered with data, and how often with an error.
    pub(super) by_tool: BTreeMap<&'static str, (usize, usize)>,
    /// Marks by owner in replies to whoever is no platform administrator.
    pub(super) seen: BTreeMap<Owner, usize>,
    pub(super) log_lines: usize,
    pub(super) audit_rows: usize,
}

impl Theatre {
    pub(super) async fn open(logs: Logs) -> Self {
        let stage = Stage::with(&[("DB_POOL", CONNECTIONS)]).await;
        let mut owner = stage.owner().await;
        marking::add_rows(&mut owner).await;
        let catalog = Catalog::read(&mut owner).await;
        let mut facts = Facts::read(&mut owner, &catalog).await;
        let roles = role_names(&mut owner).await;
        facts.marked = marking::mark_everything(&mut owner, &catalog, &facts.names).await;
        marking::seal(&mut owner, &catalog, &facts.marked).await;
        facts.read_again(&mut owner, roles).await;
        let handlers = stage.pipeline().handlers();
        let events = RPC_AGENT_TOOLS.iter().map(|tool| tool.definition.event.as_str());
        facts.postures = events.map(|event| (event, handlers.auth(event).unwrap())).collect();
        let facts = Arc::new(facts);
        let actors = actors::everybody(&stage, &facts).into_iter().map(Arc::new).collect();
        let deck = Deck {
            facts: Arc::clone(&facts),
            actors,
            cursors: Vec::new(),
            potential: potential(&facts),
        };
        let mut theatre = Self {
            stage,
            facts,
            deck: Arc::new(deck),
            tally: Mutex::default(),
            catalog,
            given: Given::default(),
            written: Mutex::default(),
            logs,
            runs: AtomicU64::new(0),
        };
        theatre.collect_cursors().await;
        theatre
    }

    /// Cursors of everybody's first pages.
    async fn collect_cursors(&mut self) {
        let mut cursors = BTreeSet::new();
        for actor in &self.deck.actors {
            for tool in RPC_AGENT_TOOLS {
                let may = reach(&self.facts, &[], actor, tool);
                if actor.scope.pinned().is_some() || !may.has_campuses() {
                    continue;
                }
                let Some(args) = self.first_page(actor, tool) else {
                    continue;
                };
                let call = incoming(actor, tool.definition.event.as_str(), &args, "cursors");
                if let AgentToolResult::Data { data, .. } = self.stage.pipeline().execute(call).await {
                    cursors.extend(data["nextCursor"].as_str().map(str::to_owned));
                }
            }
        }
        assert!(cursors.len() > 10, "there are pages to go on from");
        let deck = Arc::get_mut(&mut self.deck).expect("nobody plays yet");
        deck.cursors = cursors.into_iter().collect();
    }

    /// Arguments for the first row of a list, with what else it needs.
    fn first_page(&self, actor: &Actor, tool: &RpcTool) -> Option<Value> {
        let schema = tool.schema();
        schema["properties"].get("cursor")?;
        let mut args = json!({"limit": 1});
        for name in schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            args[name] = match table_of(name) {
                Some(table) => json!(near(&self.facts, actor, table).first()?.id),
                None => json!("q"),
            };
        }
        make_coherent(&mut args, &self.facts, actor, 0);
        Some(args)
    }

    /// Runs the calls of a case, several at a time, and judges what came of them.
    pub(super) async fn run(self: &Arc<Self>, calls: &[Drawn]) -> Result<(), String> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        self.logs.take();
        let mut lanes = JoinSet::new();
        for lane in 0..LANES {
            let theatre = Arc::clone(self);
            let of_lane: Vec<(usize, Drawn)> = calls.iter().cloned().enumerate().skip(lane).step_by(LANES).collect();
            lanes.spawn(async move {
                let mut found = Ok(());
                for (at, call) in of_lane {
                    let told = theatre.call(run, at, &call).await;
                    found = found.and(told);
                }
                found
            });
        }
        let mut found = Ok(());
        while let Some(lane) = lanes.join_next().await {
            found = found.and(lane.expect("a call never panics"));
        }
        found.and(self.judge_logs()).and(self.judge_audit(run).await)
    }

    async fn call(&self, run: u64, at: usize, call: &Drawn) -> Result<(), String> {
        for change in &call.settled.changes {
            self.given.add(change.clone());
        }
        let (call_id, number) = match call.key {
            Key::Own => (format!("{run}-{at}"), format!("w{}w{}", serial(run), serial(at as u64))),
            // calls of one key that are the same say the same; a mark is about a row in all calls that hold it, or in none
            Key::Shared(n) => {
                let tool = RPC_AGENT_TOOLS
                    .iter()
                    .position(|tool| tool.definition.event == call.tool.definition.event);
                let tool = serial(tool.expect("it is of the registry") as u64);
                let about = if call.settled.row.is_some() { "r" } else { "" };
                (
                    format!("{run}-shared-{n}"),
                    format!("w{}ws{}t{tool}{about}", serial(run), serial(n.into())),
                )
            }
        };
        let mark = call.settled.owner.mark(&number);
        if let Some((table, row)) = &call.settled.row {
            let origin = Origin {
                owner: call.settled.owner.clone(),
                table: (*table).to_owned(),
                row: Some(row.id),
                about: row.about.clone(),
            };
            let mut written = self.written.lock().unwrap();
            let rows = marks_in(&mark).into_iter().map(|mark| (mark, origin.clone()));
            rows.for_each(|(mark, origin)| written.entry(mark).or_default().push(origin));
        }
        let args = with_marks(call.settled.args.clone(), &mark);
        let mut incoming = incoming(&call.actor, call.tool.definition.event.as_str(), &args, &call_id);
        let is_honest = bend(&mut incoming, call, &call_id);
        let result = self.stage.pipeline().execute(incoming).await;
        let changes = self.given.all();
        let mut sight = Sight::of(&self.facts, &changes, &call.actor, call.tool);
        if !is_honest {
            sight = sight.closed();
        }
        self.count(call.tool.definition.name, &sight.reach, &result);
        self.judge(&sight, &result).map_err(|why| format!("{call:?}: {why}"))
    }

    fn count(&self, tool: &'static str, reach: &Reach, result: &AgentToolResult) {
        let mut tally = self.tally.lock().unwrap();
        tally.calls += 1;
        let (data, errors) = tally.by_tool.entry(tool).or_default();
        match result {
            AgentToolResult::Data { .. } | AgentToolResult::Pending { .. } => *data += 1,
            AgentToolResult::Error { .. } => *errors += 1,
        }
        if *reach != Reach::Everything {
            for mark in marks_of(&json!(result)) {
                *tally.seen.entry(mark.owner).or_default() += 1;
            }
        }
    }

    /// Whether a reply holds only what its caller may see.
    fn judge(&self, sight: &Sight<'_>, result: &AgentToolResult) -> Result<(), String> {
        let (mut data, sentence) = match result {
            AgentToolResult::Data { data, scope_context } => (data.clone(), scope_context),
            AgentToolResult::Pending { pending, scope_context } => (pending.preview.clone(), scope_context),
            // an error may name what stands against a call, as far as whoever made it may see that
            AgentToolResult::Error { error } => {
                return match marks_in(error).iter().find(|mark| !self.is_admitted(sight, mark)) {
                    Some(mark) => Err(format!("an error holds {}: {error}", self.describe(mark))),
                    None => Ok(()),
                };
            }
        };
        if sight.reach == Reach::Nothing {
            return Err(format!("answered with data where nothing may be had: {data}"));
        }
        if sight.is_gated_by(Resource::AuditLog) {
            for row in data["rows"].as_array_mut().into_iter().flatten() {
                self.judge_entry(sight, row)?;
            }
        }
        for mark in marks_of(&data).iter().chain(&marks_in(sentence)) {
            self.admit(self.is_admitted(sight, mark), mark)?;
        }
        let mut foreign = None;
        walk(&data, &mut |name, text| {
            let origin = text.parse().ok().and_then(|id: Uuid| self.facts.marked.rows.get(&id));
            if let Some(origin) = origin.filter(|origin| !sight.admits_row(origin)) {
                foreign = Some(format!(
                    "{name} is the id of a row of {} from {}",
                    origin.owner, origin.table
                ));
            }
        });
        foreign.map_or(Ok(()), |why| Err(format!("the reply's {why}: {data}")))
    }

    /// Whether an entry of the trail names only what is within reach; what is judged is taken out of it. What was asked for is the
    /// actor's words, ids included, and a trail says of every row within reach that it was changed.
    fn judge_entry(&self, sight: &Sight<'_>, row: &mut Value) -> Result<(), String> {
        for mark in marks_of(&row["actorEmail"].take()) {
            self.admit(sight.reach.admits_as_actor(&mark.owner), &mark)?;
        }
        for mark in marks_of(&row["arguments"].take()) {
            self.admit(sight.reach.admits(&mark.owner), &mark)?;
        }
        let changed = row["resourceId"].take();
        let origin = changed
            .as_str()
            .and_then(|id| self.facts.marked.rows.get(&id.parse::<Uuid>().ok()?));
        match origin.filter(|origin| !sight.reach.admits(&origin.owner)) {
            Some(origin) => Err(format!(
                "an entry is about a row of {} from {}",
                origin.owner, origin.table
            )),
            None => Ok(()),
        }
    }

    fn is_admitted(&self, sight: &Sight<'_>, mark: &Mark) -> bool {
        let written = self.written.lock().unwrap().get(mark).cloned().unwrap_or_default();
        sight.admits(mark, &written)
    }

    fn admit(&self, is_admitted: bool, mark: &Mark) -> Result<(), String> {
        if is_admitted {
            Ok(())
        } else {
            Err(format!("the reply holds {}", self.describe(mark)))
        }
    }

    fn describe(&self, mark: &Mark) -> String {
        let origin = self.facts.marked.marks.get(&mark.serial);
        let table = origin.map_or("a text of this test", |origin| origin.table.as_str());
        format!("a mark of {} from {table}", mark.owner)
    }

    /// Whether any line of the log holds a mark. No line has a reason to hold a row's text, its own school's no more than another's.
    fn judge_logs(&self) -> Result<(), String> {
        let logs = self.logs.take();
        self.tally.lock().unwrap().log_lines += logs.lines().count();
        match logs.lines().find_map(|line| Some((line, marks_in(line).pop_first()?))) {
            Some((line, mark)) => Err(format!("the log holds {}: {line}", self.describe(&mark))),
            None => Ok(()),
        }
    }

    /// Whether each audit row of a run holds marks of its own school and campus only. Whoever acted may come from elsewhere.
    async fn judge_audit(&self, run: u64) -> Result<(), String> {
        let rows: Vec<AuditRow> = sqlx::query_as(
            "SELECT school_id, campus_id, actor_email, arguments, turn_id || tool_call_id || event || door || action || resource_type
               FROM audit_log WHERE tool_call_id LIKE $1",
        )
        .bind(format!("{run}-%"))
        .fetch_all(&mut self.stage.owner().await)
        .await
        .unwrap();
        self.tally.lock().unwrap().audit_rows += rows.len();
        for (school, campus, actor, arguments, rest) in rows {
            let owner = self.facts.owner(school, campus);
            let reach = Reach::Some {
                school: owner.school.clone(),
                campuses: BTreeSet::from([owner.place.clone()]),
                unplaced: campus.is_none(),
            };
            let texts = marks_of(&arguments);
            let wrong = texts
                .iter()
                .chain(&marks_in(&rest.unwrap_or_default()))
                .find(|mark| !reach.admits(&mark.owner))
                .cloned()
                .or_else(|| {
                    marks_in(&actor)
                        .into_iter()
                        .find(|mark| !reach.admits_as_actor(&mark.owner))
                });
            if let Some(mark) = wrong {
                return Err(format!(
                    "an audit row of {owner} holds {}: {arguments}",
                    self.describe(&mark)
                ));
            }
        }
        Ok(())
    }

    /// Whether each row of each table holds marks of its own school only, and, where it belongs to a campus, of that campus only.
    pub(super) async fn judge_tables(&self) -> Result<(), String> {
        let mut owner = self.stage.owner().await;
        for table in &self.catalog.tables() {
            let (school, campus) = (self.catalog.school_sql(table), self.catalog.campus_sql(table));
            let query = format!("SELECT {school}, {campus}, row_to_json(t)::jsonb FROM {table} t");
            let rows: Vec<(Option<Uuid>, Option<Uuid>, Value)> = sqlx::query_as(AssertSqlSafe(query))
                .fetch_all(&mut owner)
                .await
                .unwrap();
            for (school, campus, mut row) in rows {
                let Some(school) = school else { continue };
                // whoever acts, or asks, may come from elsewhere
                row["actor_email"].take();
                row["identity"]["email"].take();
                let owner = self.facts.owner(school, campus);
                let of_another_school = marks_of(&row)
                    .into_iter()
                    .find(|mark| mark.owner.school != owner.school);
                // what was shown to whoever asked for an approval is a reply to them, and was judged as one
                row["preview"].take();
                row["result"].take();
                let of_another_campus = marks_of(&row).into_iter().find(|mark| {
                    campus.is_some() && !super::marks::is_shared(&mark.owner) && mark.owner.place != owner.place
                });
                let wrong = of_another_school.or(of_another_campus);
                if let Some(mark) = wrong {
                    return Err(format!(
                        "a row of {owner} in {table} holds {}: {row}",
                        self.describe(&mark)
                    ));
                }
            }
        }
        Ok(())
    }

    /// What people are told when a turn begins: each of them, in the school and on each campus.
    pub(super) async fn judge_dispatch(&self) -> Result<usize, String> {
        let campuses = self.facts.of("campuses").iter().map(|row| Some(row.id.to_string()));
        let mut minted = 0;
        for campus in [None].into_iter().chain(campuses) {
            for (at, person) in self.facts.people.iter().enumerate() {
                let told = match self.stage.try_person(&person.email, campus.as_deref()).await {
                    Ok(turn) => json!(turn.context),
                    Err(error) => json!(error.to_string().replace(&person.email, "")),
                };
                minted += usize::from(told.is_object());
                let actor = self.deck.actors.iter().find(|actor| actor.person == at).unwrap();
                let reach = business(&self.facts, &self.given.all(), actor);
                for mark in marks_of(&told) {
                    let is_own = marks_in(&person.email).iter().any(|own| own.owner == mark.owner);
                    if !is_own && !reach.admits(&mark.owner) {
                        return Err(format!(
                            "{actor:?} on {campus:?} is told {}: {told}",
                            self.describe(&mark)
                        ));
                    }
                }
            }
        }
        Ok(minted)
    }
}

/// School, campus, address of the actor, arguments, and all other texts.
type AuditRow = (Uuid, Option<Uuid>, String, Value, Option<String>);

fn incoming(actor: &Actor, event: &str, args: &Value, call_id: &str) -> Incoming {
    Incoming {
        event: event.to_owned(),
        request: json!({"identity": actor.identity, "scope": actor.scope, "args": args}),
        grant: Some(actor.grant.clone()),
        key: idempotency_key(actor.turn, call_id),
        deadline_ms: now_ms() + 60_000,
        contract: None,
    }
}

/// Makes the envelope what was drawn. Answers whether it is still what the server gave out.
fn bend(incoming: &mut Incoming, call: &Drawn, call_id: &str) -> bool {
    let own = &call.actor;
    match &call.envelope {
        Envelope::Honest => true,
        Envelope::GrantOf(other) => {
            incoming.grant = Some(other.grant.clone());
            Arc::ptr_eq(own, other)
        }
        Envelope::WithoutGrant => {
            incoming.grant = None;
            false
        }
        Envelope::ScopeOf(other) => {
            incoming.request["scope"] = json!(other.scope);
            own.scope == other.scope
        }
        Envelope::IdentityOf(other) => {
            incoming.request["identity"] = json!(other.identity);
            own.identity == other.identity
        }
        Envelope::KeyOf(other) => {
            incoming.key = idempotency_key(other.turn, call_id);
            Arc::ptr_eq(own, other)
        }
    }
}

/// The drawn arguments with a mark in each place that was left for one.
fn with_marks(value: Value, mark: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(MARK, mark)),
        Value::Array(items) => items.into_iter().map(|item| with_marks(item, mark)).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| (name, with_marks(member, mark)))
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}
