//! Signals, waiting, ports and logs of processes that were started here.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::ServiceError;

/// Often enough to lose no time that a person would notice, rare enough to cost nothing.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// Enough of a log to see why a server ended.
const LOG_LINES: usize = 15;

/// Sends a signal by name (`TERM`). A process that has ended already is not an error: that is what was wanted.
pub fn send_signal(pids: &[u32], signal: &str) {
    if pids.is_empty() {
        return;
    }
    let pids = pids.iter().map(u32::to_string);
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"s=$1; shift; kill -s "$s" -- "$@""#, "sh", signal])
        .args(pids);
    let _ = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Waits for a child to end, at most `limit`.
#[must_use]
pub fn wait_for_exit(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < limit => thread::sleep(POLL),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Waits until a started server is ready, it has ended, or the limit is over.
pub(crate) fn wait_until_ready(
    service: &'static str,
    child: &mut Child,
    limit: Duration,
    log: &Path,
    mut is_ready: impl FnMut(u32) -> bool,
) -> Result<(), ServiceError> {
    let start = Instant::now();
    loop {
        if let Some(status) = wait_for_exit(child, POLL) {
            return Err(ServiceError::Died {
                service,
                status: status.to_string(),
                log: end_of_log(log),
            });
        }
        if is_ready(child.id()) {
            return Ok(());
        }
        if start.elapsed() > limit {
            return Err(ServiceError::NotReady {
                service,
                limit_s: limit.as_secs(),
                log: end_of_log(log),
            });
        }
    }
}

/// `N` ports of the loopback address that are free now. All are held until the last is known, so they differ.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], ServiceError> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(ServiceError::file("binding", "127.0.0.1"))?;
        *port = listener
            .local_addr()
            .map_err(ServiceError::file("binding", "127.0.0.1"))?
            .port();
        held.push(listener);
    }
    Ok(ports)
}

/// Whether a port can be had now.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The children of a process. Empty where the system has no `/proc`.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// Whether the process exists and has not ended.
pub(crate) fn is_running(pid: u32) -> bool {
    state_of(pid).is_some_and(|state| state != "Z" && state != "X")
}

/// The last lines of a log.
pub(crate) fn end_of_log(log: &Path) -> String {
    let text = fs::read(log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LOG_LINES);
    lines.into_iter().skip(skipped).collect::<Vec<_>>().join("\n")
}

fn parent_of(pid: u32) -> Option<u32> {
    after_name(pid)?.split_whitespace().nth(1)?.parse().ok()
}

fn state_of(pid: u32) -> Option<String> {
    after_name(pid)?.split_whitespace().next().map(str::to_owned)
}

/// What `/proc/<pid>/stat` says after the name, which is in brackets and may hold anything.
fn after_name(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.to_owned())
}
