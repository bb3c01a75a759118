//! Whole processes on a stage: the server and the worker with their test hooks, to be killed.

use crate::Stage;
use std::{
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// How long a process may take to become ready on a busy machine.
const READY_LIMIT: Duration = Duration::from_mins(1);

/// A process under test; killed when it is dropped.
pub struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a program on a stage and waits until it prints a line with `ready` in it.
    pub async fn start(program: &str, arguments: &[&str], stage: &Stage, more: &[(&str, &str)]) -> Self {
        let mut process = Self::spawn(program, arguments, stage, more);
        process.ready().await;
        process
    }

    /// Starts a program on a stage.
    #[must_use]
    pub fn spawn(program: &str, arguments: &[&str], stage: &Stage, more: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(stage.variables())
            .env("LOG", "warn,lapin=off")
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        Self { child, lines }
    }

    /// Waits until it prints a line with `ready` in it: the first, or the next after it was ready before.
    pub async fn ready(&mut self) {
        let ready = async {
            while let Some(line) = self.lines.next_line().await.expect("its output is text") {
                if line.contains("ready") {
                    return true;
                }
            }
            false
        };
        let is_ready = timeout(READY_LIMIT, ready)
            .await
            .expect("the program becomes ready in time");
        assert!(is_ready, "the program ended before it was ready");
    }

    /// Waits for a line that begins like this, and answers it.
    pub async fn line(&mut self, beginning: &str) -> String {
        let line = async {
            while let Some(line) = self.lines.next_line().await.expect("its output is text") {
                if line.starts_with(beginning) {
                    return Some(line);
                }
            }
            None
        };
        let found = timeout(READY_LIMIT, line).await.expect("the line comes in time");
        found.expect("the program says so before it ends")
    }

    /// Waits for its end.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        timeout(limit, self.child.wait())
            .await
            .expect("the process ends in time")
            .expect("its end can be waited for")
    }

    /// Kills it as `kill -9` does, and waits until it is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("the process is killed");
    }

    /// Asks it to stop, and answers whether it ended well within the limit.
    pub async fn terminate(mut self, limit: Duration) -> bool {
        self.ask_to_stop();
        timeout(limit, self.child.wait())
            .await
            .is_ok_and(|status| status.is_ok_and(|status| status.success()))
    }

    /// Sends SIGTERM.
    pub fn ask_to_stop(&self) {
        xtask::services::send_signal(&[self.id()], "TERM");
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id().expect("the process runs")
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }
}
