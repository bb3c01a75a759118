//! The Nest processes: a client that sends what it is told, and the peer's server.

use serde_json::{Value, json};
use std::{path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

const LIMIT: Duration = Duration::from_secs(30);
const CLIENT: &str = include_str!("client.mjs");

/// A process of Node; killed when it is dropped.
pub(crate) struct Nest {
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Nest {
    /// A client of a queue, connected and with its queue asserted.
    pub(crate) async fn client(peer: &Path, amqp_url: &str, queue: &str) -> Self {
        // its packages are found from where it is
        let script = peer.join("interop-client.mjs");
        std::fs::write(&script, CLIENT).expect("the peer's folder takes the script");
        let mut node = Command::new("node");
        node.arg(script).env("AMQP_URL", amqp_url).env("QUEUE", queue);
        let mut client = Self::start(node);
        assert_eq!(client.line().await, json!({"connected": queue}).to_string());
        client
    }

    /// The peer's own server on a queue.
    pub(crate) async fn server(peer: &Path, amqp_url: &str, queue: &str, database_url: &str) -> Self {
        let mut node = Command::new("node");
        node.arg(peer.join("dist/main.js"))
            .env("AMQP_URL", amqp_url)
            .env("PEER_QUEUE", queue)
            .env("DATABASE_URL", database_url);
        let mut server = Self::start(node);
        assert!(server.line().await.starts_with("ready"));
        server
    }

    fn start(mut node: Command) -> Self {
        let spawned = node
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut process = spawned.expect("node starts; is it installed?");
        let output = process.stdout.take().expect("its output is piped");
        Self {
            input: process.stdin.take().expect("its input is piped"),
            output: BufReader::new(output).lines(),
            _process: process,
        }
    }

    async fn line(&mut self) -> String {
        let line = timeout(LIMIT, self.output.next_line())
            .await
            .expect("Node answers in time");
        line.expect("its output is text").expect("it has not ended")
    }

    /// What a call comes to: `{"answer": …}`, or `{"threw": …}`.
    pub(crate) async fn send(&mut self, event: &str, data: Value) -> Value {
        let line = format!("{}\n", json!({"event": event, "data": data}));
        self.input.write_all(line.as_bytes()).await.expect("it reads");
        serde_json::from_str(&self.line().await).expect("it prints JSON")
    }
}
