//! Whole processes on a stage: the server and the worker with their test hooks, to be killed.

use crate::Stage;
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

/// How long a process may take to become ready on a busy machine.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// A process under test; killed when it is dropped.
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a program on a stage and waits until it prints a line with `ready` in it.
    pub async fn start(program: &str, arguments: &[&str], stage: &Stage, more: &[(&str, &str)]) -> Self {
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
        let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let ready = async {
            while let Some(line) = lines.next_line().await.expect("its output is text") {
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
        Self { child }
    }

    /// Kills it as `kill -9` does, and waits until it is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("the process is killed");
    }

    /// Asks it to stop, and answers whether it ended well within the limit.
    pub async fn terminate(mut self, limit: Duration) -> bool {
        let pid = self.child.id().expect("the process runs");
        xtask::services::send_signal(&[pid], "TERM");
        timeout(limit, self.child.wait())
            .await
            .is_ok_and(|status| status.is_ok_and(|status| status.success()))
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }
}
