//! What a soak did and found.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// What is counted while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Count {
    /// Questions that a person read.
    Questions,
    /// Approvals that a person was asked for.
    Approvals,
    /// Of those, calls of which the arguments were changed.
    Edits,
    /// Approvals that a person said no to.
    Rejections,
    /// Works that were handed to a specialist.
    Delegations,
    /// Answers and decisions that were said twice at once.
    TwiceAtOnce,
    /// Streams of events that broke off and were taken up again.
    StreamsResumed,
    /// Servers that were killed.
    ServersKilled,
    /// Workers that were killed.
    WorkersKilled,
    /// Times that the broker was killed or stopped.
    BrokerRestarts,
    /// Times that the database was killed or stopped.
    DatabaseRestarts,
}

/// What a soak did and found.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Mutex<BTreeMap<Count, usize>>,
    findings: Mutex<Vec<String>>,
    ended: AtomicUsize,
}

impl Tally {
    /// Counts one of these.
    pub(super) fn count(&self, what: Count) {
        *self
            .counts
            .lock()
            .expect("nobody panicked here")
            .entry(what)
            .or_default() += 1;
    }

    /// Tells something that should not be.
    pub(super) fn find(&self, what: String) {
        eprintln!("found      {what}");
        self.findings.lock().expect("nobody panicked here").push(what);
    }

    /// What was found.
    #[must_use]
    pub(super) fn findings(&self) -> Vec<String> {
        self.findings.lock().expect("nobody panicked here").clone()
    }

    /// Tells what was done less often than this: a soak in which nothing happens shows nothing.
    pub(super) fn want(&self, wanted: &[(Count, usize)]) {
        for (what, least) in wanted {
            let counts = self.counts.lock().expect("nobody panicked here");
            let times = counts.get(what).copied().unwrap_or_default();
            drop(counts);
            if times < *least {
                self.find(format!("only {times}, not {least}: {}", words(*what)));
            }
        }
    }

    /// A turn has ended.
    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// How many turns have ended.
    #[must_use]
    pub(super) fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    /// A line for each that was counted.
    #[must_use]
    pub(super) fn lines(&self) -> Vec<(String, String)> {
        let counts = self.counts.lock().expect("nobody panicked here");
        let line = |(what, times): (&Count, &usize)| (words(*what).to_owned(), times.to_string());
        counts.iter().map(line).collect()
    }
}

const fn words(what: Count) -> &'static str {
    match what {
        Count::Questions => "questions that a person read",
        Count::Approvals => "approvals that a person was asked for",
        Count::Edits => "arguments changed by a person",
        Count::Rejections => "approvals that a person said no to",
        Count::Delegations => "works handed to a specialist",
        Count::TwiceAtOnce => "answers and decisions said twice at once",
        Count::StreamsResumed => "streams of events taken up again",
        Count::ServersKilled => "kill -9 of a server",
        Count::WorkersKilled => "kill -9 of a worker",
        Count::BrokerRestarts => "restarts of the broker",
        Count::DatabaseRestarts => "restarts of the database",
    }
}

/// Lines as a table.
#[must_use]
pub(super) fn table(lines: &[(String, String)]) -> String {
    let width = lines
        .iter()
        .map(|(what, _)| what.chars().count())
        .max()
        .unwrap_or_default();
    lines.iter().fold(String::new(), |mut table, (what, much)| {
        let _ = writeln!(table, "{what:width$}  {much}");
        table
    })
}
