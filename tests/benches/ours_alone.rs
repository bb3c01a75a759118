//! What is measured of ours alone: a fresh ability, the start, and the end under load.

use crate::{
    load::{Driver, Event, Load},
    stand::{Contestant, Stand},
    table::median,
};
use anyhow::{Context as _, ensure};
use contract::{Action, Resource};
use serde::Serialize;
use serde_json::json;
use server::standing::decide_afresh;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};
use uuid::Uuid;

/// As many as a role of the data set has.
const RULES: usize = 60;
const STARTS: usize = 5;
const IN_FLIGHT: usize = 128;
/// When no answer comes for so long, none will.
const SILENCE: Duration = Duration::from_secs(3);

/// What was measured.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OursAlone {
    /// A fresh ability and its gate's decision, over a role of 60 rules of which one matters.
    pub(crate) ability_us: f64,
    /// The same where all 60 matter.
    pub(crate) ability_all_us: f64,
    /// From the process's start to its ready line.
    pub(crate) ready_s: f64,
    /// From SIGTERM to the end of the process, with writes in flight.
    pub(crate) exit_s: f64,
    answered: usize,
    rows: usize,
    audit_rows: usize,
}

impl OursAlone {
    pub(crate) fn measure(stand: &Stand) -> anyhow::Result<Self> {
        let ready = (0..STARTS)
            .map(|_| start(stand))
            .collect::<anyhow::Result<Vec<f64>>>()?;
        let mut measured = end_under_load(stand)?;
        measured.ready_s = median(ready);
        measured.ability_us = fresh_ability(&one_that_matters())?;
        measured.ability_all_us = fresh_ability(&all_that_matter())?;
        Ok(measured)
    }

    pub(crate) fn markdown(&self) -> String {
        let Self {
            ability_us,
            ability_all_us,
            ready_s,
            exit_s,
            answered,
            rows,
            audit_rows,
        } = self;
        format!(
            "- A fresh ability and its gate, from the rules as stored: {ability_us:.1} µs where one of {RULES} rules is about the question, \
             {ability_all_us:.1} µs where all are, each for a campus of its own.\n\
             - Start-up to ready: {:.0} ms, the median of {STARTS}.\n\
             - SIGTERM to exit with {IN_FLIGHT} writes in flight: {:.0} ms; {answered} of {IN_FLIGHT} answered, {rows} rows, {audit_rows} \
             audit rows.\n",
            ready_s * 1000.0,
            exit_s * 1000.0
        )
    }
}

fn start(stand: &Stand) -> anyhow::Result<f64> {
    let mut serving = stand.start_ours("start.")?;
    let took = serving.ready_after.as_secs_f64();
    serving.terminate();
    ensure!(serving.wait(), "ours did not end in order");
    Ok(took)
}

/// All calls are handed to ours, and as soon as the first are answered it is asked to stop.
fn end_under_load(stand: &Stand) -> anyhow::Result<OursAlone> {
    stand.clean(Contestant::Ours)?;
    let people = stand.people(Contestant::Ours)?;
    let serving = stand.start_ours("stop.")?;
    let mut driver = Driver::connect(stand.amqp_url())?;
    let load = Load {
        event: Event::CreateDepartment,
        in_flight: IN_FLIGHT,
        calls: IN_FLIGHT,
        limit: Duration::MAX,
    };
    let route = serving.route.clone();
    let (asked, was_asked) = std::sync::mpsc::channel();
    let ended = std::thread::spawn(move || {
        let mut serving = serving;
        let Ok(()) = was_asked.recv() else { return None };
        let begin = Instant::now();
        serving.terminate();
        serving.wait().then(|| begin.elapsed())
    });
    let outcome = driver.burst(
        &route,
        &people,
        load,
        IN_FLIGHT / 8,
        || {
            let _ = asked.send(());
        },
        SILENCE,
    )?;
    let exit = ended
        .join()
        .ok()
        .flatten()
        .context("ours did not end in order under load")?;
    ensure!(outcome.errors.is_empty(), "under SIGTERM: {:?}", outcome.errors.first());
    let (rows, audit_rows) = stand.rows(Contestant::Ours)?;
    Ok(OursAlone {
        ability_us: 0.0,
        ability_all_us: 0.0,
        ready_s: 0.0,
        exit_s: exit.as_secs_f64(),
        answered: outcome.calls,
        rows,
        audit_rows,
    })
}

/// Microseconds, the median of some thousands.
fn fresh_ability(rules: &str) -> anyhow::Result<f64> {
    let mut took = Vec::new();
    for _ in 0..5000 {
        let begin = Instant::now();
        let decided = decide_afresh(black_box(rules), Some(campus(0)), Action::Create, Resource::Department)?;
        took.push(begin.elapsed().as_secs_f64() * 1e6);
        ensure!(black_box(decided), "the gate decided wrongly");
    }
    Ok(median(took))
}

fn campus(number: usize) -> Uuid {
    Uuid::from_u128(u128::try_from(number).unwrap_or(0) + 1)
}

/// 12 resources by 5 actions, on the own campus.
fn one_that_matters() -> String {
    let resources = Resource::ALL
        .iter()
        .filter(|resource| **resource != Resource::Any)
        .take(RULES / 5);
    let rules = resources.flat_map(|resource| {
        let actions = Action::ALL.iter().filter(|action| **action != Action::Manage);
        actions.map(move |action| json!({"a": action, "r": resource, "y": true, "c": {"campusId": "$own"}}))
    });
    json!(rules.collect::<Vec<_>>()).to_string()
}

fn all_that_matter() -> String {
    let rules = (0..RULES).map(|at| json!({"a": "MANAGE", "r": "ALL", "y": true, "c": {"campusId": campus(at)}}));
    json!(rules.collect::<Vec<_>>()).to_string()
}
