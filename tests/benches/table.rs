//! The table: medians of what was measured, their ratios, and the goals beside them. In Markdown and in JSON.

use crate::{load::Event, ours_alone::OursAlone, stand::Contestant};
use serde::Serialize;
use std::fmt::Write as _;

/// With less than this share of the machine going to others, a run counts as undisturbed.
const CALM: f64 = 0.10;
/// So many undisturbed runs make the disturbed ones of a cell unnecessary.
const ENOUGH: usize = 3;

/// How many calls were in flight.
pub(crate) const IN_FLIGHT: [usize; 3] = [1, 16, 128];

/// One run as it was measured.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) contestant: Contestant,
    pub(crate) event: Event,
    pub(crate) in_flight: usize,
    pub(crate) round: usize,
    pub(crate) calls: usize,
    pub(crate) calls_per_s: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// CPU time a call.
    pub(crate) server_us: f64,
    pub(crate) database_us: f64,
    pub(crate) broker_us: f64,
    pub(crate) driver_us: f64,
    pub(crate) rss_mb: f64,
    pub(crate) peak_rss_mb: f64,
    /// The share of the machine that went to processes outside the run.
    pub(crate) foreign: f64,
}

/// The medians of one contestant, event and load.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cell {
    contestant: Contestant,
    event: Event,
    in_flight: usize,
    runs: usize,
    of: usize,
    calls_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    server_us: f64,
    database_us: f64,
    broker_us: f64,
    driver_us: f64,
    rss_mb: f64,
    foreign: f64,
}

/// A figure with its goals: the first that must be reached, and the one after it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    figure: String,
    at_least: bool,
    first: f64,
    then: f64,
    /// One an event; one alone where it has nothing to do with events.
    values: Vec<f64>,
    reached: &'static str,
}

/// All that is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Table {
    conditions: Vec<String>,
    goals: Vec<Line>,
    cells: Vec<Cell>,
    ours_alone: OursAlone,
    runs: Vec<Run>,
}

/// A ratio of goals.md.
struct Ratio {
    figure: &'static str,
    against: Contestant,
    in_flight: usize,
    of: fn(&Cell) -> f64,
    at_least: bool,
    first: f64,
    then: f64,
}

const fn ratio(figure: &'static str, against: Contestant, in_flight: usize, of: fn(&Cell) -> f64) -> Ratio {
    Ratio {
        figure,
        against,
        in_flight,
        of,
        at_least: false,
        first: 0.0,
        then: 0.0,
    }
}

impl Ratio {
    const fn at_least(self, first: f64, then: f64) -> Self {
        Self {
            at_least: true,
            first,
            then,
            ..self
        }
    }

    const fn at_most(self, first: f64, then: f64) -> Self {
        Self { first, then, ..self }
    }
}

fn ratios() -> Vec<Ratio> {
    use Contestant::{Pipe, Seq, Stock, Tuned};
    let rate = |against, in_flight| ratio("calls/s", against, in_flight, |cell| cell.calls_per_s);
    let server = |against, in_flight| ratio("server CPU a call", against, in_flight, |cell| cell.server_us);
    let database = |in_flight| ratio("database CPU a call", Tuned, in_flight, |cell| cell.database_us);
    vec![
        rate(Tuned, 16).at_least(1.9, 2.5),
        rate(Tuned, 128).at_least(2.2, 3.2),
        rate(Stock, 16).at_least(2.8, 3.5),
        rate(Stock, 128).at_least(3.2, 4.5),
        rate(Pipe, 16).at_least(0.7, 1.0),
        rate(Pipe, 128).at_least(0.7, 1.0),
        ratio("p50", Seq, 1, |cell| cell.p50_ms).at_most(1.35, 1.0),
        ratio("p99", Seq, 16, |cell| cell.p99_ms).at_most(1.6, 1.2),
        server(Tuned, 16).at_most(0.28, 0.2),
        server(Tuned, 128).at_most(0.28, 0.2),
        server(Pipe, 16).at_most(2.0, 1.4),
        server(Pipe, 128).at_most(2.0, 1.4),
        database(16).at_most(1.0, 0.8),
        database(128).at_most(1.0, 0.8),
    ]
}

impl Table {
    /// Of all runs.
    pub(crate) fn of(mut conditions: Vec<String>, runs: Vec<Run>, ours_alone: OursAlone) -> Self {
        let cells = cells(&runs);
        let calm = runs.iter().filter(|run| run.foreign <= CALM).count();
        let foreign = median(runs.iter().map(|run| run.foreign).collect());
        conditions.push(format!(
            "Others had {:.0} % of the machine in the median run; {calm} of {} runs were undisturbed (under {:.0} %). A cell is the median \
             of its undisturbed runs where it has {ENOUGH}, else of all.",
            foreign * 100.0,
            runs.len(),
            CALM * 100.0
        ));
        let mut goals: Vec<Line> = ratios().iter().filter_map(|ratio| line(ratio, &cells)).collect();
        goals.extend(absolute(&cells, &ours_alone));
        Self {
            conditions,
            goals,
            cells,
            ours_alone,
            runs,
        }
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from("# The hop, measured\n\n");
        for condition in &self.conditions {
            let _ = writeln!(text, "- {condition}");
        }
        text.push_str("\n## Against the goals\n\n| figure | goal: first · then |");
        for event in Event::ALL {
            let _ = write!(text, " {} |", event.as_str());
        }
        text.push_str(" reached |\n|---|---|---|---|---|---|\n");
        for line in &self.goals {
            let sign = if line.at_least { '≥' } else { '≤' };
            let _ = write!(
                text,
                "| {} | {sign} {} · {sign} {} |",
                line.figure, line.first, line.then
            );
            for at in 0..Event::ALL.len() {
                let value = line.values.get(at).map(|value| short(*value)).unwrap_or_default();
                let _ = write!(text, " {value} |");
            }
            let _ = writeln!(text, " {} |", line.reached);
        }
        text.push_str("\n## Medians\n\n| event | in flight | contestant | runs | calls/s | p50 ms | p99 ms | server µs | database µs | broker µs |");
        text.push_str(" driver µs | RSS MB | foreign % |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for cell in &self.cells {
            let figures = [
                cell.calls_per_s,
                cell.p50_ms,
                cell.p99_ms,
                cell.server_us,
                cell.database_us,
                cell.broker_us,
                cell.driver_us,
                cell.rss_mb,
                cell.foreign * 100.0,
            ];
            let (event, name) = (cell.event.as_str(), cell.contestant.name());
            let _ = write!(
                text,
                "| {event} | {} | {name} | {}/{} |",
                cell.in_flight, cell.runs, cell.of
            );
            for figure in figures {
                let _ = write!(text, " {} |", short(figure));
            }
            text.push('\n');
        }
        let _ = write!(text, "\n## Ours alone\n\n{}", self.ours_alone.markdown());
        text
    }
}

fn cells(runs: &[Run]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for event in Event::ALL {
        for in_flight in IN_FLIGHT {
            for contestant in Contestant::ALL {
                let is_in = |run: &&Run| (run.event, run.in_flight, run.contestant) == (event, in_flight, contestant);
                let all: Vec<&Run> = runs.iter().filter(is_in).collect();
                if !all.is_empty() {
                    cells.push(cell(&all));
                }
            }
        }
    }
    cells
}

fn cell(all: &[&Run]) -> Cell {
    let calm: Vec<&Run> = all.iter().copied().filter(|run| run.foreign <= CALM).collect();
    let used = if calm.len() >= ENOUGH { &calm[..] } else { all };
    let median_of = |figure: fn(&Run) -> f64| median(used.iter().map(|run| figure(run)).collect());
    let first = all[0];
    Cell {
        contestant: first.contestant,
        event: first.event,
        in_flight: first.in_flight,
        runs: used.len(),
        of: all.len(),
        calls_per_s: median_of(|run| run.calls_per_s),
        p50_ms: median_of(|run| run.p50_ms),
        p99_ms: median_of(|run| run.p99_ms),
        server_us: median_of(|run| run.server_us),
        database_us: median_of(|run| run.database_us),
        broker_us: median_of(|run| run.broker_us),
        driver_us: median_of(|run| run.driver_us),
        rss_mb: median_of(|run| run.rss_mb),
        foreign: median_of(|run| run.foreign),
    }
}

/// One ratio over all events; none where one side was not measured.
fn line(ratio: &Ratio, cells: &[Cell]) -> Option<Line> {
    let figure = |contestant, event| {
        let is_in =
            |cell: &&Cell| (cell.event, cell.in_flight, cell.contestant) == (event, ratio.in_flight, contestant);
        cells.iter().find(is_in).map(ratio.of)
    };
    let value = |event| Some(figure(Contestant::Ours, event)? / figure(ratio.against, event)?);
    let values: Option<Vec<f64>> = Event::ALL.into_iter().map(value).collect();
    let name = format!(
        "{} against {}, {} in flight",
        ratio.figure,
        ratio.against.name(),
        ratio.in_flight
    );
    Some(Line::new(name, (ratio.at_least, ratio.first, ratio.then), values?))
}

/// The goals that are no ratios.
fn absolute(cells: &[Cell], alone: &OursAlone) -> Vec<Line> {
    let of_ours = cells
        .iter()
        .filter(|cell| cell.contestant == Contestant::Ours && cell.in_flight == 128);
    let memory: Vec<f64> = of_ours.map(|cell| cell.rss_mb).collect();
    vec![
        Line::new("RSS with 128 in flight, MB".to_owned(), (false, 40.0, 25.0), memory),
        Line::new(
            "fresh ability, 60 rules, µs".to_owned(),
            (false, 150.0, 60.0),
            vec![alone.ability_us],
        ),
        Line::new(
            "start-up to ready, s".to_owned(),
            (false, 1.0, 1.0),
            vec![alone.ready_s],
        ),
        Line::new(
            "SIGTERM to exit with 128 in flight, s".to_owned(),
            (false, 5.0, 5.0),
            vec![alone.exit_s],
        ),
    ]
}

impl Line {
    fn new(figure: String, (at_least, first, then): (bool, f64, f64), values: Vec<f64>) -> Self {
        let all = |goal: f64| {
            values
                .iter()
                .all(|value| if at_least { *value >= goal } else { *value <= goal })
        };
        let reached = match (all(then), all(first)) {
            _ if values.is_empty() => "not measured",
            (true, _) => "both",
            (false, true) => "first",
            (false, false) => "no",
        };
        Self {
            figure,
            at_least,
            first,
            then,
            values,
            reached,
        }
    }
}

/// The median; of an even number, the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle.saturating_sub(1)), values.get(middle)) {
        (Some(one), Some(other)) if values.len().is_multiple_of(2) => f64::midpoint(*one, *other),
        (_, Some(middle)) => *middle,
        (_, None) => f64::NAN,
    }
}

/// Three figures.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
