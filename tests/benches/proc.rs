//! What `/proc` says: who used how much of the machine, and how much memory a process holds.

use anyhow::Context as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// A tick of the machine's own counters, in nanoseconds.
const TICK_NS: u64 = 10_000_000;

/// Processes by name.
pub(crate) type Pid = u32;

/// Who takes part in a run.
#[derive(Debug, Clone)]
pub(crate) struct Cast {
    pub(crate) server: Pid,
    pub(crate) driver: Pid,
    pub(crate) broker: Pid,
    pub(crate) postmaster: Pid,
    /// How the title of a session of the contestant's database begins, after `postgres: `.
    pub(crate) sessions: String,
}

/// The counters at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    at: Instant,
    busy_ns: u64,
    server_ns: u64,
    driver_ns: u64,
    broker_ns: u64,
    sessions_ns: BTreeMap<Pid, u64>,
    database_ns: BTreeMap<Pid, u64>,
}

/// What was used between two moments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub(crate) server: Duration,
    pub(crate) driver: Duration,
    pub(crate) broker: Duration,
    /// The contestant's sessions.
    pub(crate) sessions: Duration,
    /// What went to processes that have nothing to do with the run, as a share of all cores.
    pub(crate) foreign: f64,
}

impl Cast {
    pub(crate) fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let mut sessions_ns = BTreeMap::new();
        let mut database_ns = BTreeMap::new();
        for pid in children_of(self.postmaster)? {
            // one that has just ended has used nothing since the last look
            let (Ok(title), Ok(used)) = (title(pid), threads_ns(pid)) else {
                continue;
            };
            database_ns.insert(pid, used);
            if title
                .strip_prefix("postgres: ")
                .is_some_and(|title| title.starts_with(&self.sessions))
            {
                sessions_ns.insert(pid, used);
            }
        }
        Ok(Snapshot {
            at: Instant::now(),
            busy_ns: busy_ns()?,
            server_ns: threads_ns(self.server)?,
            driver_ns: threads_ns(self.driver)?,
            broker_ns: whole_ns(self.broker)?,
            sessions_ns,
            database_ns,
        })
    }
}

impl Snapshot {
    pub(crate) fn until(&self, later: &Self) -> Used {
        let spent = |now: u64, before: u64| Duration::from_nanos(now.saturating_sub(before));
        let of_all = |now: &BTreeMap<Pid, u64>, before: &BTreeMap<Pid, u64>| {
            now.iter()
                .map(|(pid, used)| spent(*used, before.get(pid).copied().unwrap_or(0)))
                .sum::<Duration>()
        };
        let server = spent(later.server_ns, self.server_ns);
        let driver = spent(later.driver_ns, self.driver_ns);
        let broker = spent(later.broker_ns, self.broker_ns);
        let ours = server + driver + broker + of_all(&later.database_ns, &self.database_ns);
        let foreign = spent(later.busy_ns, self.busy_ns).saturating_sub(ours);
        Used {
            server,
            driver,
            broker,
            sessions: of_all(&later.sessions_ns, &self.sessions_ns),
            foreign: foreign.as_secs_f64() / ((later.at - self.at).as_secs_f64() * cores()),
        }
    }
}

/// Waits until others leave the machine alone for a moment. Answers how long that took, at the most `patience`.
pub(crate) fn wait_for_quiet(share: f64, patience: Duration) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        let (before, look) = (busy_ns()?, Instant::now());
        std::thread::sleep(Duration::from_millis(300));
        let busy = Duration::from_nanos(busy_ns()?.saturating_sub(before));
        if busy.as_secs_f64() < share * look.elapsed().as_secs_f64() * cores() {
            break;
        }
    }
    Ok(begin.elapsed())
}

/// The memory that a process holds now, and the most it ever held, in KiB.
pub(crate) fn memory_kb(pid: Pid) -> anyhow::Result<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
            .with_context(|| format!("/proc/{pid}/status has no {name}"))
    };
    Ok((field("VmRSS")?, field("VmHWM")?))
}

/// The Erlang machine that was started with this text in its environment.
pub(crate) fn erlang_with(text: &str) -> anyhow::Result<Pid> {
    let has_text = |pid: &Pid| {
        let is_erlang = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "beam.smp");
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        is_erlang && String::from_utf8_lossy(&environment).contains(text)
    };
    let found = all()?.into_iter().find(has_text);
    found.with_context(|| format!("no broker was started with {text}"))
}

fn all() -> anyhow::Result<Vec<Pid>> {
    let entries = fs::read_dir("/proc").context("reading /proc")?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

fn children_of(parent: Pid) -> anyhow::Result<BTreeSet<Pid>> {
    let is_child = |pid: &Pid| stat(*pid).is_ok_and(|stat| stat.get(1).is_some_and(|ppid| *ppid == parent.to_string()));
    Ok(all()?.into_iter().filter(is_child).collect())
}

fn title(pid: Pid) -> anyhow::Result<String> {
    Ok(fs::read_to_string(format!("/proc/{pid}/cmdline"))?.replace('\0', " "))
}

/// The fields after the name in parentheses, which may hold spaces.
fn stat(pid: Pid) -> anyhow::Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/…/stat has no name")?;
    Ok(fields.split_whitespace().map(str::to_owned).collect())
}

/// By the threads' own counters, which are finer than ticks but lose threads that have ended: for processes whose threads stay.
fn threads_ns(pid: Pid) -> anyhow::Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        // a thread may end between the two looks
        let schedule = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        sum += schedule
            .split_whitespace()
            .next()
            .and_then(|ns| ns.parse::<u64>().ok())
            .unwrap_or(0);
    }
    Ok(sum)
}

/// By ticks, threads that have ended included.
fn whole_ns(pid: Pid) -> anyhow::Result<u64> {
    let stat = stat(pid)?;
    let ticks = stat
        .iter()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok());
    Ok(ticks.sum::<u64>() * TICK_NS)
}

/// All that is not idle or waiting for a disk, over all cores.
fn busy_ns() -> anyhow::Result<u64> {
    let stat = fs::read_to_string(Path::new("/proc/stat"))?;
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|field| field.parse().ok())
        .collect();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    Ok((ticks.iter().sum::<u64>() - idle) * TICK_NS)
}

fn cores() -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    f64::from(u32::try_from(cores).unwrap_or(1))
}
