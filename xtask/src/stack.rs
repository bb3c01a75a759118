//! The processes of the stack: each with its log, started one after the other, stopped in the reverse order.

use std::fs::{self, File, TryLockError};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use xtask::services::{Watchdog, send_signal, wait_for_exit};

use crate::signals::Interrupt;

/// Between two looks at a log or at the processes.
const POLL: Duration = Duration::from_millis(100);

/// A process that is not ready by then has met something that it does not tell.
const READY_LIMIT: Duration = Duration::from_mins(1);

/// Calls in progress may take 30 s, so may a clean end.
const STOP_LIMIT: Duration = Duration::from_secs(40);

/// Enough of a log to see why a process ended.
const LOG_LINES: usize = 20;

/// The signal that asks a process of ours to end in order.
const STOP_SIGNAL: &str = "TERM";

/// The processes of one stack. What still runs when this is dropped, or when this process ends, is stopped.
pub(crate) struct Stack {
    logs: PathBuf,
    processes: Vec<Process>,
    watchdog: Watchdog,
}

struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Stack {
    /// An empty one, whose logs go to `logs`.
    pub(crate) fn new(logs: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            logs: logs.to_path_buf(),
            processes: Vec::new(),
            watchdog: Watchdog::start(None)?,
        })
    }

    /// Starts a process and waits for a line of its log for which `ready` gives a value.
    pub(crate) fn start<T>(
        &mut self,
        name: &'static str,
        mut command: Command,
        interrupt: &Interrupt,
        ready: impl Fn(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let log = self.logs.join(format!("{name}.log"));
        let output = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let errors = output
            .try_clone()
            .with_context(|| format!("opening {}", log.display()))?;
        command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        self.watchdog.watch(child.id(), STOP_SIGNAL)?;
        self.processes.push(Process {
            name,
            child,
            log: log.clone(),
        });

        let start = Instant::now();
        loop {
            interrupt.check()?;
            self.check()?;
            if let Some(value) = read_log(&log).lines().find_map(&ready) {
                return Ok(value);
            }
            if start.elapsed() > READY_LIMIT {
                let seconds = READY_LIMIT.as_secs();
                bail!(
                    "{name} was not ready within {seconds} s; the end of {}:\n{}",
                    log.display(),
                    end_of_log(&log)
                );
            }
            thread::sleep(POLL);
        }
    }

    /// Returns when the person has had enough; fails when a process ends by itself.
    pub(crate) fn wait(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        while !interrupt.is_set() {
            self.check()?;
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Stops all, last started first, so that each ends while what it needs is still there.
    pub(crate) fn stop(&mut self) {
        while let Some(mut process) = self.processes.pop() {
            let pid = process.child.id();
            if !matches!(process.child.try_wait(), Ok(Some(_))) {
                eprintln!("stopping   {}", process.name);
                send_signal(&[pid], STOP_SIGNAL);
                if wait_for_exit(&mut process.child, STOP_LIMIT).is_none() {
                    eprintln!(
                        "killing    {}, which did not stop within {} s",
                        process.name,
                        STOP_LIMIT.as_secs()
                    );
                    let _ = process.child.kill();
                    let _ = process.child.wait();
                }
            }
            self.watchdog.forget(pid, STOP_SIGNAL);
        }
    }

    fn check(&mut self) -> anyhow::Result<()> {
        for Process { name, child, log } in &mut self.processes {
            if let Some(status) = child.try_wait().with_context(|| format!("waiting for {name}"))? {
                bail!(
                    "{name} ended by itself ({status}); the end of {}:\n{}",
                    log.display(),
                    end_of_log(log)
                );
            }
        }
        Ok(())
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One stack a folder. The lock goes with this process, however it ends.
pub(crate) fn lock(folder: &Path, command: &str) -> anyhow::Result<File> {
    let file = folder.join("lock");
    let lock = File::create(&file).with_context(|| format!("creating {}", file.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => bail!("`{command}` runs in this folder already"),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("locking {}", file.display())),
    }
}

fn read_log(log: &Path) -> String {
    fs::read(log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

fn end_of_log(log: &Path) -> String {
    let text = read_log(log);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LOG_LINES);
    lines
        .into_iter()
        .skip(skipped)
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}
