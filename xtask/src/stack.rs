//! The processes of the stack: each with its log, started one after the other, started anew when one ends by itself, stopped in the
//! reverse order.

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

/// How often a process may end by itself within [`WHILE`]. One that ends again at once is not mended by another start.
const MAX_ENDS: usize = 5;
const WHILE: Duration = Duration::from_mins(1);

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
    /// By which it is started anew.
    command: Command,
    child: Child,
    log: PathBuf,
    ends: Ends,
}

/// When a process ended by itself, lately.
#[derive(Default)]
struct Ends(Vec<Instant>);

impl Ends {
    /// Notes an end; false where there were too many.
    fn admit(&mut self, now: Instant) -> bool {
        self.0.retain(|end| now.duration_since(*end) < WHILE);
        self.0.push(now);
        self.0.len() < MAX_ENDS
    }
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
            command,
            child,
            log: log.clone(),
            ends: Ends::default(),
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

    /// From now on, a process is started anew with this variable: where it was found once, it is to be found again.
    pub(crate) fn keep_at(&mut self, name: &str, variable: &str, value: &str) {
        for process in self.processes.iter_mut().filter(|process| process.name == name) {
            process.command.env(variable, value);
        }
    }

    /// Returns when the person has had enough; fails when a process ends by itself again and again.
    pub(crate) fn wait(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        while !interrupt.is_set() {
            self.look_after()?;
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Starts anew what has ended by itself, as `docker compose` does.
    fn look_after(&mut self) -> anyhow::Result<()> {
        for process in &mut self.processes {
            let name = process.name;
            let Some(status) = process
                .child
                .try_wait()
                .with_context(|| format!("waiting for {name}"))?
            else {
                continue;
            };
            self.watchdog.forget(process.child.id(), STOP_SIGNAL);
            if !process.ends.admit(Instant::now()) {
                bail!(
                    "{name} ended by itself {MAX_ENDS} times within {} s, the last time with {status}; the end of {}:\n{}",
                    WHILE.as_secs(),
                    process.log.display(),
                    end_of_log(&process.log)
                );
            }
            eprintln!(
                "restart    {name}, which ended by itself ({status}); see {}",
                process.log.display()
            );
            process.child = process
                .command
                .spawn()
                .with_context(|| format!("starting {name} anew"))?;
            self.watchdog.watch(process.child.id(), STOP_SIGNAL)?;
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
        for Process { name, child, log, .. } in &mut self.processes {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn stack(name: &str) -> (Stack, PathBuf) {
        let logs = std::env::temp_dir().join(format!("stack-{name}-{}", std::process::id()));
        fs::create_dir_all(&logs).unwrap();
        (Stack::new(&logs).unwrap(), logs)
    }

    fn ready(line: &str) -> Option<()> {
        (line == "ready").then_some(())
    }

    #[test]
    fn a_process_that_is_killed_is_started_anew_where_it_was() {
        let (mut stack, logs) = stack("killed");
        let interrupt = Interrupt::listen().unwrap();
        let script = r#"echo ready; echo "at $PLACE"; sleep 600"#;
        stack.start("sleeper", shell(script), &interrupt, ready).unwrap();
        stack.keep_at("sleeper", "PLACE", "the same place");
        let first = stack.processes[0].child.id();
        stack.look_after().unwrap();
        assert_eq!(stack.processes[0].child.id(), first, "one that runs is left alone");
        send_signal(&[first], "KILL");
        while stack.processes[0].child.id() == first {
            stack.look_after().unwrap();
        }
        let log = logs.join("sleeper.log");
        while !read_log(&log).contains("at the same place") {
            stack.look_after().unwrap();
        }
        assert_eq!(
            read_log(&log).matches("ready").count(),
            2,
            "what it said before is kept"
        );
        assert!(stack.processes[0].child.try_wait().unwrap().is_none());
        stack.stop();
        fs::remove_dir_all(logs).unwrap();
    }

    #[test]
    fn a_process_that_ends_again_and_again_is_given_up() {
        let (mut stack, logs) = stack("given-up");
        let interrupt = Interrupt::listen().unwrap();
        let go = logs.join("go");
        let script = format!(
            "echo ready; while [ ! -e {} ]; do sleep 0.05; done; exit 3",
            go.display()
        );
        stack.start("failing", shell(&script), &interrupt, ready).unwrap();
        fs::write(&go, "").unwrap();
        let given_up = loop {
            if let Err(error) = stack.look_after() {
                break error.to_string();
            }
        };
        assert!(
            given_up.contains("failing ended by itself 5 times") && given_up.contains("exit status: 3"),
            "{given_up}"
        );
        assert_eq!(read_log(&logs.join("failing.log")).matches("ready").count(), MAX_ENDS);
        stack.stop();
        fs::remove_dir_all(logs).unwrap();
    }

    #[test]
    fn only_what_ends_often_within_a_while_is_given_up() {
        let start = Instant::now();
        let mut seldom = Ends::default();
        assert!((0..20).all(|time| seldom.admit(start + WHILE / 4 * time)));
        let mut often = Ends::default();
        let admitted: Vec<bool> = (0..5).map(|time| often.admit(start + WHILE / 5 * time)).collect();
        assert_eq!(admitted, [true, true, true, true, false]);
    }
}
