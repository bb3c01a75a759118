//! Each list's page in a small school and in one of 20,000 students, in turn: `cargo xtask bench --lists`.
//!
//! Both are databases of one PostgreSQL, and the calls go through the pipeline in this process, so that the difference between the two
//! is the school's size and nothing else. Beside the times stand the scans of each page's plans, as `auto_explain` says them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement ends at the first surprise, with a message"
)]

use contract::{RpcTool, tools::RPC_AGENT_TOOLS};
use e2e::{
    Person, Stage,
    fixtures::HILLTOP,
    stage::{data, incoming},
    world,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tracing::level_filters::LevelFilter;
use xtask::services::{Durability, PrivatePostgres};

/// Calls of each page in each school.
const CALLS: usize = 200;
/// Before them: connections, plans and caches are there.
const WARM_UP: usize = 30;
/// Rows a page.
const PAGE: u16 = 10;

/// Every statement of a new connection tells its plan to its client.
const EXPLAIN: &str = "
    DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET session_preload_libraries = ''auto_explain''', current_database());
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_min_duration = 0', current_database());
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_level = notice', current_database());
    END $$";

fn main() {
    let said = Said::default();
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::INFO)
        .with_ansi(false)
        .with_writer({
            let said = said.clone();
            move || said.clone()
        })
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure(&said));
}

async fn measure(said: &Said) {
    let postgres = PrivatePostgres::start(&world::root(), Durability::Safe).unwrap();
    let (small, large) = (Stage::on(&postgres, &[]).await, Stage::on(&postgres, &[]).await);
    small.arrange("VACUUM ANALYZE").await;
    large.grow().await;
    large.arrange("VACUUM ANALYZE").await;
    let students = "SELECT count(*) FROM students s JOIN schools h ON h.id = s.school_id AND h.slug = 'hilltop'";
    let sizes = (small.count(students).await, large.count(students).await);
    let lists = RPC_AGENT_TOOLS
        .iter()
        .filter(|tool| ["list", "search"].contains(&tool.definition.event.verb()));
    let mut pages = Vec::new();
    for tool in lists {
        let user = small.person(&HILLTOP.user_of(tool)).await;
        let page = Page { tool, user };
        let (of_small, of_large) = page.measure(&small, &large).await;
        eprintln!("{:24} {of_small:7.0} {of_large:7.0} µs", tool.definition.name);
        pages.push((page, of_small, of_large));
    }
    large.arrange(EXPLAIN).await;
    let mut rows = Vec::new();
    for (page, ..) in &pages {
        said.take();
        let pipeline = large.another_pipeline();
        let shown = data(pipeline.execute(page.call("explained")).await);
        rows.push((shown["rows"].as_array().map_or(0, Vec::len), scans(&said.take())));
    }
    let of_every_call = rows
        .iter()
        .map(|(_, scans)| scans.clone())
        .reduce(|all, scans| &all & &scans);
    let of_every_call = of_every_call.unwrap_or_default();
    let listed = |scans: &BTreeSet<String>| scans.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
    println!(
        "A page of {PAGE} rows, of {} and of {} students; medians of {CALLS} calls each, in turn.",
        sizes.0, sizes.1
    );
    println!("Every call also reads who calls: {}.\n", listed(&of_every_call));
    println!("| list | small, µs | large, µs | ratio | rows | scans in the large school |");
    println!("|---|--:|--:|--:|--:|---|");
    for ((page, of_small, of_large), (rows, scans)) in pages.iter().zip(&rows) {
        let (name, ratio) = (page.tool.definition.name, of_large / of_small);
        let scans = listed(&(scans - &of_every_call));
        println!("| `{name}` | {of_small:.0} | {of_large:.0} | {ratio:.2} | {rows} | {scans} |");
    }
}

/// A list as its user asks for it.
struct Page {
    tool: &'static RpcTool,
    user: Person,
}

impl Page {
    fn call(&self, id: &str) -> server::execute::Incoming {
        let mut args: Value = HILLTOP.example(self.tool);
        if self.tool.schema()["properties"].get("limit").is_some() {
            args["limit"] = json!(PAGE);
        }
        incoming(&self.user, self.tool.definition.name, args, id)
    }

    /// The medians, in microseconds.
    async fn measure(&self, small: &Stage, large: &Stage) -> (f64, f64) {
        let mut took = (Vec::new(), Vec::new());
        for call in 0..WARM_UP + CALLS {
            for (stage, took) in [(small, &mut took.0), (large, &mut took.1)] {
                let incoming = self.call(&call.to_string());
                let begin = Instant::now();
                let result = stage.pipeline().execute(incoming).await;
                let elapsed = begin.elapsed();
                data(result);
                if call >= WARM_UP {
                    took.push(elapsed);
                }
            }
        }
        (median(took.0), median(took.1))
    }
}

fn median(mut took: Vec<Duration>) -> f64 {
    took.sort_unstable();
    took.get(took.len() / 2)
        .map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}

/// The scans in plans, each once.
fn scans(plans: &str) -> BTreeSet<String> {
    let nodes = plans.lines().flat_map(|line| line.split("\\n")).filter_map(|line| {
        let node = line.split("  (").next()?.trim().trim_start_matches("->").trim();
        (node.contains("Scan ") && node.contains(" on ")).then(|| node.to_owned())
    });
    nodes.collect()
}

/// What was logged since it was last taken: among it what the database told its clients.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    fn take(&self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut *self.0.lock().unwrap())).into_owned()
    }
}

impl io::Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
