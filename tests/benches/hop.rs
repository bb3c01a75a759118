//! The hop against the Nest peer and the floor, in turn, on the same broker and database: `cargo xtask bench`.
//!
//! [`stand`] starts the services and the contestants, [`people`] says who calls, [`load`] drives all of them over [`amqp`], [`proc`]
//! reads who used what, and [`table`] puts it beside the goals. [`ours_alone`] is what needs no opponent. A run is only counted when
//! every reply was data, and when a write left as many audit rows as rows.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement ends at the first surprise, with a message"
)]

mod amqp;
mod load;
mod ours_alone;
mod people;
mod proc;
mod stand;
mod table;

use anyhow::{Context as _, ensure};
use clap::Parser;
use load::{Driver, Event, Load};
use ours_alone::OursAlone;
use people::People;
use stand::{Contestant, Serving, Stand};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};
use table::{IN_FLIGHT, Run, Table};

/// No run is longer: with one call in flight, a stock peer makes 23 a second.
const RUN_LIMIT: Duration = Duration::from_secs(5);
/// Before a run: the machine must be this quiet.
const QUIET: f64 = 0.15;
/// An audit row that is written behind the reply, as the peer does, is there by then.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures the hop.
#[derive(Debug, Parser)]
struct Arguments {
    /// The release build of the server
    #[arg(long)]
    server: PathBuf,
    /// The folder in which `cargo xtask bench` has built the peers; ours alone without it
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Where the table goes
    #[arg(long)]
    out: PathBuf,
    /// Three short rounds instead of five
    #[arg(long)]
    quick: bool,
    /// How many seconds to wait in all for others to leave the machine alone
    #[arg(long, default_value_t = 0)]
    patience: u64,
    /// Only drives ours, each event for so many seconds; says which processes, for a profiler, and what the database did
    #[arg(long, value_name = "SECONDS")]
    hold: Option<u64>,
    /// What `cargo bench` adds
    #[arg(long, hide = true)]
    bench: bool,
}

/// A contestant on the stand.
struct Entrant {
    contestant: Contestant,
    serving: Serving,
    people: People,
}

/// How much is measured.
struct Size {
    rounds: usize,
    calls: [usize; 3],
    warm_up: usize,
}

impl Size {
    const FULL: Self = Self {
        rounds: 5,
        calls: [300, 1500, 2500],
        warm_up: 1500,
    };
    const QUICK: Self = Self {
        rounds: 3,
        calls: [150, 800, 1500],
        warm_up: 800,
    };
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("the workspace's folder")?;
    let begin = Instant::now();
    let size = if arguments.quick { Size::QUICK } else { Size::FULL };
    let mut stand = Stand::start(root, arguments.server.clone(), arguments.peers.clone())?;
    if let Some(seconds) = arguments.hold {
        return hold(&mut stand, Duration::from_secs(seconds));
    }
    let ours_alone = OursAlone::measure(&stand)?;
    eprint!("{}", ours_alone.markdown());
    let mut field = Field {
        driver: Driver::connect(stand.amqp_url())?,
        entrants: entrants(&stand, arguments.peers.is_some())?,
        stand: &stand,
        size: &size,
        patience: Duration::from_secs(arguments.patience),
    };
    let runs = field.measure_all()?;
    let conditions = conditions(arguments, &size, begin.elapsed());
    let table = Table::of(conditions, runs, ours_alone);
    fs::create_dir_all(&arguments.out).with_context(|| format!("creating {}", arguments.out.display()))?;
    fs::write(arguments.out.join("hop.md"), table.markdown())?;
    fs::write(arguments.out.join("hop.json"), serde_json::to_string_pretty(&table)?)?;
    println!("{}", table.markdown());
    eprintln!("written to {}/hop.md and hop.json", arguments.out.display());
    Ok(())
}

/// Drives ours with 16 in flight, and says what the database did.
fn hold(stand: &mut Stand, limit: Duration) -> anyhow::Result<()> {
    stand.count_statements()?;
    let (serving, people) = (
        stand.start_contestant(Contestant::Ours)?,
        stand.people(Contestant::Ours)?,
    );
    let mut driver = Driver::connect(stand.amqp_url())?;
    for event in Event::ALL {
        stand.clean(Contestant::Ours)?;
        let (server, database) = (serving.cast.server, stand.database_url());
        eprintln!("hold       {}: server {server}, database {database}", event.as_str());
        let load = Load {
            limit,
            ..load_of(event, 16, usize::MAX)
        };
        stand.statements(1)?;
        let outcome = driver.run(&serving.route, &people, load)?;
        println!(
            "{}: {} calls, {} errors",
            event.as_str(),
            outcome.calls,
            outcome.errors.len()
        );
        println!("{}", stand.statements(outcome.calls)?);
    }
    Ok(())
}

fn conditions(arguments: &Arguments, size: &Size, took: Duration) -> Vec<String> {
    let calls = size.calls.map(|calls| calls.to_string()).join(" · ");
    let whom = match arguments.peers {
        Some(_) => "Ours against the peers, in turn, each round beginning with another",
        None => "Ours alone: without --peers there is nobody to measure it against",
    };
    vec![
        format!("{whom}; {} rounds in {} s.", size.rounds, took.as_secs()),
        format!(
            "One PostgreSQL (fsync on) and one RabbitMQ for all, one driver for all; {calls} calls a run with 1 · 16 · 128 in flight."
        ),
        "Ours: release build, its default settings; grants, deadlines, mandatory requests, keys and acks on. The peers as their measurements \
         have them: no acks; the floor over lapin."
            .to_owned(),
        "Every reply was data with the rows that it should have; after each run of writes, audit rows = rows = calls.".to_owned(),
    ]
}

fn entrants(stand: &Stand, with_peers: bool) -> anyhow::Result<Vec<Entrant>> {
    let who = if with_peers {
        &Contestant::ALL[..]
    } else {
        &[Contestant::Ours]
    };
    who.iter()
        .map(|&contestant| {
            Ok(Entrant {
                contestant,
                serving: stand.start_contestant(contestant)?,
                people: stand.people(contestant)?,
            })
        })
        .collect()
}

/// All that is measured, in one place.
struct Field<'a> {
    stand: &'a Stand,
    size: &'a Size,
    driver: Driver,
    entrants: Vec<Entrant>,
    patience: Duration,
}

impl Field<'_> {
    /// A B A B …: within each round, event and load, one contestant after the other.
    fn measure_all(&mut self) -> anyhow::Result<Vec<Run>> {
        for at in 0..self.entrants.len() {
            for event in Event::ALL {
                self.drive(at, load_of(event, 16, self.size.warm_up))?;
            }
        }
        let mut runs = Vec::new();
        for round in 0..self.size.rounds {
            for event in Event::ALL {
                for (in_flight, calls) in IN_FLIGHT.into_iter().zip(self.size.calls) {
                    for turn in 0..self.entrants.len() {
                        let at = (turn + round) % self.entrants.len();
                        let run = self.run(at, load_of(event, in_flight, calls), round)?;
                        report(&run);
                        runs.push(run);
                    }
                }
            }
        }
        Ok(runs)
    }

    fn drive(&mut self, at: usize, load: Load) -> anyhow::Result<load::Outcome> {
        let Entrant {
            serving,
            people,
            contestant,
        } = &self.entrants[at];
        let outcome = self.driver.run(&serving.route, people, load)?;
        let first = outcome.errors.first();
        ensure!(
            first.is_none(),
            "{} of {}: {:?}",
            load.event.as_str(),
            contestant.name(),
            first
        );
        Ok(outcome)
    }

    fn run(&mut self, at: usize, load: Load, round: usize) -> anyhow::Result<Run> {
        let contestant = self.entrants[at].contestant;
        self.stand.clean(contestant)?;
        // sessions that were idle learn of the cleaned tables now, not in the run
        self.drive(at, load_of(load.event, load.in_flight, 100 + 2 * load.in_flight))?;
        std::thread::sleep(SETTLE);
        let before = self.stand.rows(contestant)?;
        self.patience = self
            .patience
            .saturating_sub(proc::wait_for_quiet(QUIET, self.patience)?);
        let cast = self.entrants[at].serving.cast.clone();
        let begin = cast.snapshot()?;
        let outcome = self.drive(at, load)?;
        let used = begin.until(&cast.snapshot()?);
        if load.event == Event::CreateDepartment {
            std::thread::sleep(SETTLE);
            let after = self.stand.rows(contestant)?;
            let added = (after.0 - before.0, after.1 - before.1);
            ensure!(
                added == (outcome.calls, outcome.calls),
                "{}: {added:?} of {}",
                contestant.name(),
                outcome.calls
            );
        }
        let (rss_kb, peak_kb) = self.entrants[at].serving.memory_kb()?;
        let calls = f64::from(u32::try_from(outcome.calls)?);
        let a_call = |time: Duration| time.as_secs_f64() * 1e6 / calls;
        Ok(Run {
            contestant,
            event: load.event,
            in_flight: load.in_flight,
            round,
            calls: outcome.calls,
            calls_per_s: calls / outcome.took.as_secs_f64(),
            p50_ms: outcome.quantile_ms(0.5),
            p99_ms: outcome.quantile_ms(0.99),
            server_us: a_call(used.server),
            database_us: a_call(used.sessions),
            broker_us: a_call(used.broker),
            driver_us: a_call(used.driver),
            rss_mb: megabytes(rss_kb)?,
            peak_rss_mb: megabytes(peak_kb)?,
            foreign: used.foreign,
        })
    }
}

const fn load_of(event: Event, in_flight: usize, calls: usize) -> Load {
    Load {
        event,
        in_flight,
        calls,
        limit: RUN_LIMIT,
    }
}

fn megabytes(kb: u64) -> anyhow::Result<f64> {
    Ok(f64::from(u32::try_from(kb)?) / 1024.0)
}

fn report(run: &Run) {
    eprintln!(
        "{} {:18} {:4} {:10} {:7.0}/s  p50 {:7.2} p99 {:7.2} ms  server {:6.1} database {:6.1} broker {:6.1} driver {:5.1} µs  {:5.1} MB  foreign {:.2}",
        run.round,
        run.event.as_str(),
        run.in_flight,
        run.contestant.name(),
        run.calls_per_s,
        run.p50_ms,
        run.p99_ms,
        run.server_us,
        run.database_us,
        run.broker_us,
        run.driver_us,
        run.rss_mb,
        run.foreign
    );
}
