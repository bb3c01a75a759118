//! A soak: people who have turns with a scripted model, while two servers and two workers are killed under them again and again, and the
//! broker and the database go now and then. In the end everything must be as if nothing had been lost.

mod books;
mod chance;
mod doors;
mod fleet;
mod person;
mod play;
mod tally;

use crate::{
    Stage,
    fixtures::{HILLTOP, RIVERSIDE, School},
    world,
};
use chance::Chance;
use doors::{Doors, Visitor};
use fleet::{Fleet, Ground};
use futures_util::future::join_all;
use person::InTurn;
use play::{Part, Play};
use scripted_model::{Script, ScriptedModel};
use serde_json::json;
use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tally::{Count, Tally, table};
use tokio::task::spawn_blocking;
use xtask::services::{Durability, PrivatePostgres, PrivateRabbit};

/// How many turns a thread has, at most.
const TURNS_A_THREAD: usize = 6;
/// How many turns are so many that each thing happens in them.
const LONG: usize = 100;
/// Settings of a server in a soak: its own tokens, a budget that nobody uses up, and room for all who talk under one name.
const SETTINGS: [(&str, &str); 3] = [
    ("AUTH_SECRET", "signs the tokens of these tests only!"),
    ("DAILY_TOKENS", "1000000000000"),
    ("OPEN_TURNS", "1000"),
];

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many turns.
    pub turns: usize,
    /// After how long no more are begun.
    pub limit: Option<Duration>,
    /// What chance comes from.
    pub seed: u64,
    /// How many people talk at once.
    pub people: usize,
    /// How long nothing is killed: at least and at most, in milliseconds.
    pub kill_every: (u64, u64),
    /// Whether broker and database are lost as well; they are then of the soak's own.
    pub restarts: bool,
    /// Whether processes keep what goes wrong to themselves.
    pub quiet: bool,
}

/// The programs of one version.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The server.
    pub server: String,
    /// The worker.
    pub worker: String,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What was done, as a table.
    pub table: String,
    /// What was found wrong.
    pub findings: Vec<String>,
}

/// Everything there is.
pub struct Scene {
    stage: Stage,
    plan: Plan,
    programs: [Programs; 2],
    doors: Doors,
    play: Arc<Play>,
    tally: Tally,
    next: AtomicUsize,
    over: AtomicBool,
    begun: Instant,
}

impl Scene {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The number of the next turn, from 1; none after the last.
    fn next(&self) -> Option<usize> {
        let is_late = self.plan.limit.is_some_and(|limit| self.begun.elapsed() > limit);
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        (number <= self.plan.turns && !is_late).then_some(number)
    }
}

/// Runs a soak to its end, with the programs of the first server and worker, and of the second: they may be of two versions.
pub async fn run(plan: Plan, programs: [Programs; 2]) -> Outcome {
    let mut ground = if plan.restarts { Some(ground().await) } else { None };
    let stage = match &ground {
        Some(Ground { broker, database }) => {
            let settings = [SETTINGS[0], SETTINGS[1], ("AMQP_URL", broker.url())];
            Stage::on(database, &settings).await
        }
        None => Stage::with(&SETTINGS).await,
    };
    for school in [HILLTOP, RIVERSIDE] {
        let may = |action, resource| (action, resource, "allow", None);
        let rules = [
            may("CREATE", "DEPARTMENT"),
            may("LIST", "DEPARTMENT"),
            may("CREATE", "ANNOUNCEMENT"),
        ];
        stage.give_rules(&school, "class.teacher", 1, &rules).await;
    }
    let script = Arc::new(Play::new(plan.seed));
    let answers = Arc::clone(&script);
    let model = ScriptedModel::start(Script::function(move |request| answers.reply(request))).await;
    let model = model.expect("the model listens");
    let scene = Scene {
        stage,
        plan,
        programs,
        doors: Doors::default(),
        play: script,
        tally: Tally::default(),
        next: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        begun: Instant::now(),
    };
    let mut fleet = Fleet::start(&scene, model.base_url()).await;
    let talking = async {
        let lanes = join_all((0..scene.plan.people).map(|lane| talk(&scene, lane))).await;
        scene.over.store(true, Ordering::Relaxed);
        lanes
    };
    let (lanes, ground_after) = tokio::join!(talking, fleet.trouble(&scene, ground.take()));
    // with everything up, each thread goes on
    join_all(lanes.iter().map(|lane| close(&scene, lane))).await;
    books::check(&scene).await;
    scene.tally.want(&wanted(&scene.plan));
    fleet.stop(&scene).await;
    let outcome = outcome(&scene, ground_after.as_ref()).await;
    if ground_after.is_none() {
        scene.stage.finish().await;
    }
    outcome
}

/// What must have happened, and how often at least.
fn wanted(plan: &Plan) -> Vec<(Count, usize)> {
    let mut wanted = vec![(Count::Questions, 1), (Count::Approvals, 1), (Count::Delegations, 1)];
    if plan.turns >= LONG {
        wanted.extend([
            (Count::Edits, 1),
            (Count::Rejections, 1),
            (Count::ServersKilled, 1),
            (Count::WorkersKilled, 1),
        ]);
    }
    if plan.restarts && plan.limit.is_none() {
        wanted.extend([(Count::BrokerRestarts, 2), (Count::DatabaseRestarts, 2)]);
    }
    wanted
}

async fn ground() -> Ground {
    let starting = spawn_blocking(|| Ground {
        broker: PrivateRabbit::start(&world::root()).expect("a broker starts"),
        // a killed server has lost nothing that it confirmed, whatever the machine would have lost
        database: PrivatePostgres::start(&world::root(), Durability::Fast).expect("a database starts"),
    });
    starting.await.expect("they start")
}

/// Somebody, and the threads that they opened.
struct Lane {
    visitor: Visitor,
    school: School,
    threads: Vec<String>,
}

/// Somebody talks, one turn after the other, until there are no more.
async fn talk(scene: &Scene, lane: usize) -> Lane {
    let school = if lane.is_multiple_of(2) { HILLTOP } else { RIVERSIDE };
    let delegates = lane % 4 < 2;
    let email = school.email(if delegates { "class.teacher" } else { "head" });
    let visitor = Visitor::named(&email, &scene.stage, &scene.programs[0]).await;
    let mut threads: Vec<String> = Vec::new();
    let mut turns = 0;
    while let Some(number) = scene.next() {
        if turns % TURNS_A_THREAD == 0 {
            let mut chance = Chance::of(scene.plan.seed, &format!("thread {lane} {turns}"));
            let opened = visitor.post(&scene.doors, &mut chance, "/v1/threads", &json!({})).await;
            match opened.map(|opened| opened.body["id"].as_str().map(str::to_owned)) {
                Ok(Some(id)) => threads.push(id),
                wrong => scene.tally.find(format!("no thread is opened: {wrong:?}")),
            }
        }
        turns += 1;
        let part = Part::drawn(scene.plan.seed, number, school, delegates);
        if let Some(thread) = threads.last() {
            InTurn {
                scene,
                visitor: &visitor,
                part,
            }
            .live(thread)
            .await;
        }
        scene.tally.end();
    }
    Lane {
        visitor,
        school,
        threads,
    }
}

async fn close(scene: &Scene, lane: &Lane) {
    for thread in &lane.threads {
        let number = scene.next.fetch_add(1, Ordering::Relaxed) + 1;
        let part = Part::closing(number, lane.school);
        let turn = InTurn {
            scene,
            visitor: &lane.visitor,
            part,
        };
        turn.live(thread).await;
    }
}

/// What was done and found. Where something was found, what it was found in is kept.
async fn outcome(scene: &Scene, ground: Option<&Ground>) -> Outcome {
    let mut lines = vec![
        ("seed".to_owned(), scene.plan.seed.to_string()),
        ("seconds".to_owned(), scene.begun.elapsed().as_secs().to_string()),
    ];
    lines.extend(scene.tally.lines());
    lines.push((
        "requests that were made again".to_owned(),
        scene.doors.retries().to_string(),
    ));
    lines.extend(books::lines(scene).await);
    let findings = scene.tally.findings();
    lines.push(("findings".to_owned(), findings.len().to_string()));
    if let Some(ground) = ground.filter(|_| !findings.is_empty()) {
        lines.push(("kept in".to_owned(), keep(scene, ground)));
    }
    Outcome {
        table: table(&lines),
        findings,
    }
}

/// Writes the database to a file, before it goes with its server.
fn keep(scene: &Scene, ground: &Ground) -> String {
    let folder = world::root().join("target/soak");
    let file: PathBuf = folder.join(format!("seed-{}.sql", scene.plan.seed));
    let _ = std::fs::create_dir_all(&folder);
    let url = ground.database.url_of(scene.stage.database_name());
    let mut dump = Command::new(ground.database.program("pg_dump"));
    dump.arg("--dbname")
        .arg(url)
        .arg("--file")
        .arg(&file)
        .stdin(Stdio::null());
    match dump.status() {
        Ok(status) if status.success() => file.display().to_string(),
        other => format!("nothing: {other:?}"),
    }
}
