//! Evaluations: what the playbooks tell the agents to do, said by a person and done by a model that follows them, through the door, a
//! worker, the broker, the server and the database. Each is a file in `evaluations/`: one task of one playbook, and its refused twin.

mod script;
mod template;

use crate::{
    http::{Event, Server, Visitor},
    working::{Working, talk_approved},
};
use contract::tools::tool_for_name;
use e2e::{Stage, arrange::Snapshot, fixtures::HILLTOP, world::root};
use script::{Evaluation, Scene, Stagehand};
use scripted_model::Script;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    sync::Arc,
};
use template::{Results, as_text, resolve};

/// Playbooks that are in every evaluation of a specialist's, and need none of their own.
const EVERYWHERE: &[&str] = &["rover/delegation"];

/// Where a conversation itself is kept.
const OF_CONVERSATIONS: &[&str] = &["threads", "turns", "turn_events", "turn_messages", "turn_tokens"];

/// By name. They share one school, one after another: none takes away what another one needs, whatever the day.
fn evaluations() -> BTreeMap<String, Evaluation> {
    let files = fs::read_dir(root().join("tests/evaluations")).expect("the folder is there");
    let paths = files.map(|entry| entry.expect("a file is listed").path());
    let scripts = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("the file can be read");
        let evaluation = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (
            path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            evaluation,
        )
    };
    scripts.map(read).collect()
}

fn agents() -> PathBuf {
    root().join("crates/worker/src/agents")
}

/// One stage for all of them.
struct House {
    stage: Stage,
    server: Server,
    stagehand: Arc<Stagehand>,
    visitors: BTreeMap<String, Visitor>,
}

/// What came of a turn.
struct Played {
    events: Vec<Event>,
    answer: String,
    audited: Vec<String>,
}

impl House {
    async fn visitor(&mut self, who: &str) -> Visitor {
        if !self.visitors.contains_key(who) {
            let visitor = self.server.person(&self.stage, &HILLTOP.email(who)).await;
            self.visitors.insert(who.to_owned(), visitor);
        }
        self.visitors[who].clone()
    }

    async fn play(&mut self, scene: &Scene) -> Played {
        self.stagehand.play(scene);
        let visitor = self.visitor(&scene.by).await;
        let decider = self.visitor(scene.approved_by.as_ref().unwrap_or(&scene.by)).await;
        let campus = scene
            .campus
            .as_ref()
            .map(|campus| json!({"campus": HILLTOP.campus(campus)}));
        let thread = visitor.thread(&campus.unwrap_or_else(|| json!({}))).await;
        let (events, outcome) = talk_approved(&visitor, &decider, &thread, &scene.asks).await;
        let audited = sqlx::query_scalar(
            "SELECT a.event FROM audit_log a JOIN turns t ON t.id::text = a.turn_id
              WHERE t.thread_id::text = $1 AND a.event <> 'decide.approval' ORDER BY a.id",
        )
        .bind(&thread)
        .fetch_all(&mut self.stage.owner().await)
        .await
        .expect("the audit log can be read");
        Played {
            events,
            answer: outcome["answer"]
                .as_str()
                .map_or_else(|| outcome.to_string(), str::to_owned),
            audited,
        }
    }

    /// Whether the effect of a scene is there.
    async fn holds(&self, effect: &str) -> Result<bool, String> {
        let statement = as_text(&resolve(&effect.into(), &Results::new())?);
        let statement = sqlx::query_scalar(AssertSqlSafe(statement));
        let found = statement.fetch_one(&mut self.stage.owner().await).await;
        found.map_err(|error| error.to_string())
    }

    /// What is wrong with a scene as it is played: nothing, where it says what it should.
    async fn problems(&mut self, scene: &Scene, is_admitted: bool) -> Vec<String> {
        let mut problems = Vec::new();
        let mut assert = |is_so: bool, what: String| {
            if !is_so {
                problems.push(what);
            }
        };
        let untouched = if is_admitted {
            None
        } else {
            Some(self.stage.snapshot().await)
        };
        if let Some(effect) = &scene.effect {
            let before = self.holds(effect).await;
            assert(before == Ok(false), format!("{before:?} before: {effect}"));
        }
        let played = self.play(scene).await;
        let faults = self.stagehand.take_faults();
        assert(faults.is_empty(), format!("the script: {faults:?}"));
        let (called, errors) = (calls(&played.events), errors(&played.events));
        let expected: Vec<_> = scene.calls().map(owned).collect();
        assert(called == expected, format!("called {called:?}, not {expected:?}"));
        for text in &scene.reads {
            assert(
                played.answer.contains(text),
                format!("the answer is {:?} without {text:?}", played.answer),
            );
        }
        if let Some(untouched) = untouched {
            assert(!errors.is_empty(), "nothing was refused".to_owned());
            let changed = changes(&untouched, &self.stage.snapshot().await);
            assert(changed.is_empty(), format!("something happened in {changed:?}"));
            return problems;
        }
        assert(errors.is_empty(), format!("refused: {errors:?}"));
        let writes: Vec<_> = scene.calls().filter_map(|(_, tool)| write(tool)).collect();
        assert(
            played.audited == writes,
            format!("audited {:?}, not {writes:?}", played.audited),
        );
        assert(
            writes.is_empty() == scene.effect.is_none(),
            "a write has an effect, a read none".to_owned(),
        );
        if let Some(effect) = &scene.effect {
            let after = self.holds(effect).await;
            assert(after == Ok(true), format!("{after:?} afterwards: {effect}"));
        }
        problems
    }
}

/// The tables that are not what they were, but for those of the conversation itself.
fn changes(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let changed = after.iter().filter(|(table, rows)| before.get(*table) != Some(rows));
    let changed = changed.map(|(table, _)| table.clone());
    changed
        .filter(|table| !OF_CONVERSATIONS.contains(&table.as_str()))
        .collect()
}

fn owned((agent, tool): (&str, &str)) -> (String, String) {
    (agent.to_owned(), tool.to_owned())
}

/// Who called what, in order.
fn calls(events: &[Event]) -> Vec<(String, String)> {
    let of = |event: &Event, name: &str| event.data[name].as_str().unwrap_or_default().to_owned();
    let started = events.iter().filter(|event| event.kind == "tool_started");
    started.map(|event| (of(event, "agent"), of(event, "tool"))).collect()
}

fn errors(events: &[Event]) -> Vec<&Value> {
    let ended = events.iter().filter(|event| event.kind == "tool_ended");
    ended
        .map(|event| &event.data["error"])
        .filter(|error| !error.is_null())
        .collect()
}

/// The event of a tool that changes something.
fn write(tool: &str) -> Option<String> {
    let event = tool_for_name(tool)?.definition.event;
    event.is_mutating().then(|| event.to_string())
}

#[tokio::test]
async fn are_carried_out_and_refused_as_the_playbooks_say() {
    let stage = Stage::with(&[("AUTH_SECRET", "signs the tokens of these tests only!")]).await;
    let stagehand = Arc::new(Stagehand::default());
    let model = Arc::clone(&stagehand);
    let worker = Working::with(&stage, Script::function(move |request| model.reply(request))).await;
    let server = Server::on(&stage).await;
    let mut house = House {
        stage,
        server,
        stagehand,
        visitors: BTreeMap::new(),
    };
    let mut problems = Vec::new();
    for (name, evaluation) in evaluations() {
        for (scene, is_admitted) in [(&evaluation.refused, false), (&evaluation.admitted, true)] {
            let found = house.problems(scene, is_admitted).await;
            let as_what = if is_admitted { "admitted" } else { "refused" };
            problems.extend(found.into_iter().map(|problem| format!("{name}, {as_what}: {problem}")));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    worker.stop().await;
    house.server.process.kill().await;
    house.stage.finish().await;
}

#[test]
fn take_the_tools_of_their_playbook_in_its_order() {
    for (name, evaluation) in evaluations() {
        let (persona, file) = evaluation.playbook.split_once('/').expect("a playbook is a persona's");
        let text = fs::read_to_string(agents().join(persona).join("playbooks").join(format!("{file}.md")));
        let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut named = text.split('`').skip(1).step_by(2);
        let own = evaluation
            .admitted
            .calls()
            .filter(|(agent, _)| agent.to_lowercase() == persona);
        let own: Vec<_> = own.map(|(_, tool)| tool).collect();
        assert!(!own.is_empty(), "{name}: {persona} does nothing");
        for tool in own {
            assert!(
                named.any(|word| word == tool),
                "{name}: {tool} is not named after what comes before it"
            );
        }
        assert_ne!(
            evaluation.admitted.by, evaluation.refused.by,
            "{name}: the twin is asked by somebody else"
        );
    }
}

#[test]
fn are_there_for_every_playbook() {
    let evaluated: BTreeSet<_> = evaluations()
        .into_values()
        .map(|evaluation| evaluation.playbook)
        .collect();
    for persona in ["Rover", "Angie", "Bean", "Sarah"].map(str::to_lowercase) {
        let files = fs::read_dir(agents().join(&persona).join("playbooks")).expect("the folder is there");
        for file in files {
            let path = file.expect("a file is listed").path();
            let name = format!("{persona}/{}", path.file_stem().unwrap_or_default().to_string_lossy());
            assert!(
                evaluated.contains(&name) || EVERYWHERE.contains(&name.as_str()),
                "{name} has no evaluation"
            );
        }
    }
}
