//! Two servers and two workers that are killed at random and started again, and now and then the broker and the database under them.

use super::{Programs, Scene, chance::Chance, tally::Count};
use crate::{Stage, process::Process};
use std::time::Duration;
use tokio::{task::spawn_blocking, time::sleep};
use xtask::services::{PrivatePostgres, PrivateRabbit};

/// How many servers there are; the workers come after them.
const SERVERS: usize = 2;
/// How long whoever is asked to stop may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// At how many hundredths of the turns the broker and the database go, in turn.
const RESTARTS: [(usize, Service); 4] = [
    (20, Service::Broker),
    (40, Service::Database),
    (60, Service::Broker),
    (80, Service::Database),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    Broker,
    Database,
}

/// A broker and a database that may be lost.
pub(super) struct Ground {
    /// The broker.
    pub(super) broker: PrivateRabbit,
    /// The database.
    pub(super) database: PrivatePostgres,
}

/// A place for a process: whichever is there now.
struct Post {
    is_server: bool,
    number: usize,
    process: Option<Process>,
}

/// All processes.
pub(super) struct Fleet {
    posts: Vec<Post>,
    model: String,
    log: &'static str,
}

impl Fleet {
    /// Starts them.
    pub(super) async fn start(scene: &Scene, model: String) -> Self {
        let post = |(is_server, number)| Post {
            is_server,
            number,
            process: None,
        };
        let posts = [(true, 0), (true, 1), (false, 0), (false, 1)].map(post).into();
        let log = if scene.plan.quiet {
            "off"
        } else {
            "error,lapin=off,server::http::problem=off"
        };
        let mut fleet = Self { posts, model, log };
        for at in 0..fleet.posts.len() {
            fleet.fill(at, scene).await;
        }
        fleet
    }

    async fn fill(&mut self, at: usize, scene: &Scene) {
        let log = ("LOG", self.log);
        let post = &mut self.posts[at];
        let programs = &scene.programs[post.number];
        post.process = Some(if post.is_server {
            let (process, url) = server(&scene.stage, programs, log).await;
            scene.doors.set(post.number, Some(url));
            process
        } else {
            let more = [
                ("OPENAI_BASE_URL", self.model.as_str()),
                ("MODEL", "scripted-demo"),
                log,
            ];
            Process::start(&programs.worker, &[], &scene.stage, &more).await
        });
    }

    /// Kills and restarts until all turns have ended.
    pub(super) async fn trouble(&mut self, scene: &Scene, ground: Option<Ground>) -> Option<Ground> {
        let mut chance = Chance::of(scene.plan.seed, "kills");
        let (mut ground, mut restarts) = (ground, RESTARTS.into_iter().peekable());
        let (least, most) = scene.plan.kill_every;
        while !scene.is_over() {
            sleep(chance.millis(least, most)).await;
            let share = scene.tally.ended() * 100 / scene.plan.turns.max(1);
            if let Some(stands) = ground.take() {
                let due = restarts.next_if(|(hundredth, _)| share >= *hundredth);
                ground = Some(match due {
                    Some((hundredth, service)) => restarted(stands, service, hundredth > 50, scene).await,
                    None => stands,
                });
            }
            let at = match (chance.percent(60), chance.percent(50)) {
                (false, first) => usize::from(first),
                (true, first) => SERVERS + usize::from(first),
            };
            self.kill(at, scene).await;
            self.fill(at, scene).await;
            self.look(scene).await;
        }
        ground
    }

    async fn kill(&mut self, at: usize, scene: &Scene) {
        let post = &mut self.posts[at];
        if post.is_server {
            scene.doors.set(post.number, None);
        }
        let Some(process) = post.process.take() else { return };
        process.kill().await;
        scene.tally.count(if post.is_server {
            Count::ServersKilled
        } else {
            Count::WorkersKilled
        });
    }

    /// Whoever ended by itself should not have.
    async fn look(&mut self, scene: &Scene) {
        for at in 0..self.posts.len() {
            let post = &mut self.posts[at];
            if !post.process.as_mut().is_some_and(Process::runs) {
                let who = if post.is_server { "server" } else { "worker" };
                scene.tally.find(format!("a {who} has ended by itself"));
                self.fill(at, scene).await;
            }
        }
    }

    /// Stops all of them in order.
    pub(super) async fn stop(self, scene: &Scene) {
        for post in self.posts {
            let who = if post.is_server { "server" } else { "worker" };
            if let Some(process) = post.process
                && !process.terminate(PATIENCE).await
            {
                scene.tally.find(format!("a {who} does not end in order"));
            }
        }
    }
}

async fn server(stage: &Stage, programs: &Programs, log: (&str, &str)) -> (Process, String) {
    let more = [("HTTP_ADDR", "127.0.0.1:0"), log];
    let mut process = Process::spawn(&programs.server, &["serve"], stage, &more);
    let url = process.line("http://").await;
    process.ready().await;
    (process, url)
}

/// Ends a service, in order or as a lost machine does, and starts it again.
async fn restarted(ground: Ground, service: Service, in_order: bool, scene: &Scene) -> Ground {
    let Ground {
        mut broker,
        mut database,
    } = ground;
    scene.tally.count(match service {
        Service::Broker => Count::BrokerRestarts,
        Service::Database => Count::DatabaseRestarts,
    });
    let restarting = spawn_blocking(move || {
        match (service, in_order) {
            (Service::Broker, false) => broker.kill(),
            (Service::Database, false) => database.kill(),
            (_, true) => {}
        }
        match service {
            Service::Broker => broker.restart().expect("the broker starts again"),
            Service::Database => database.restart().expect("the database starts again"),
        }
        Ground { broker, database }
    });
    restarting.await.expect("it is restarted")
}
