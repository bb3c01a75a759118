//! A person at the HTTP door.

use e2e::{Stage, process::Process};
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use std::{collections::VecDeque, time::Duration};
use tokio::{process::Command, time::timeout};

/// How long the next event may take on a busy machine.
const EVENT_LIMIT: Duration = Duration::from_secs(30);

/// A server with its door open.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) url: String,
}

impl Server {
    pub(crate) async fn on(stage: &Stage) -> Self {
        let program = env!("CARGO_BIN_EXE_server-under-test");
        let mut process = Process::spawn(program, &["serve"], stage, &[("HTTP_ADDR", "127.0.0.1:0")]);
        let url = process.line("http://").await;
        process.ready().await;
        Self { process, url }
    }

    /// Somebody who comes in with a token of their own.
    pub(crate) async fn person(&self, stage: &Stage, email: &str) -> Visitor {
        let output = Command::new(env!("CARGO_BIN_EXE_server-under-test"))
            .args(["token", "--email", email])
            .env_clear()
            .envs(stage.variables())
            .output()
            .await
            .expect("the command runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let token = String::from_utf8(output.stdout)
            .expect("a token is text")
            .trim()
            .to_owned();
        Visitor {
            client: client(),
            url: self.url.clone(),
            token,
        }
    }
}

/// A client, to addresses without TLS.
pub(crate) fn client() -> Client {
    // another test of this process may have chosen one before
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().tls_certs_only([]).build();
    client.expect("a client can be made")
}

/// Somebody with a token.
#[derive(Clone)]
pub(crate) struct Visitor {
    client: Client,
    url: String,
    token: String,
}

impl Visitor {
    /// The same person at another server.
    pub(crate) fn at(&self, server: &Server) -> Self {
        Self {
            url: server.url.clone(),
            ..self.clone()
        }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        let request = self.client.get(format!("{}{path}", self.url)).bearer_auth(&self.token);
        read(request.send().await.expect("the server answers")).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = self
            .client
            .post(format!("{}{path}", self.url))
            .bearer_auth(&self.token)
            .header("content-type", "application/json")
            .body(body.to_string());
        read(request.send().await.expect("the server answers")).await
    }

    /// The same person with another token.
    pub(crate) fn with_token(&self, token: String) -> Self {
        Self { token, ..self.clone() }
    }

    /// Sends something, and follows what comes of it at once.
    pub(crate) async fn stream(&self, path: &str, body: &Value) -> Events {
        Events::of(self.try_stream(path, body).await)
    }

    pub(crate) async fn try_stream(&self, path: &str, body: &Value) -> Response {
        let request = self
            .client
            .post(format!("{}{path}", self.url))
            .bearer_auth(&self.token)
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(body.to_string());
        request.send().await.expect("the server answers")
    }

    /// Opens a thread, and answers its id.
    pub(crate) async fn thread(&self, body: &Value) -> String {
        let (status, thread) = self.post("/v1/threads", body).await;
        assert_eq!(status, StatusCode::CREATED, "{thread}");
        thread["id"].as_str().expect("it has an id").to_owned()
    }

    /// Begins a turn, and answers its id.
    pub(crate) async fn turn(&self, thread: &str, message: &str) -> String {
        let path = format!("/v1/threads/{thread}/turns");
        let (status, turn) = self.post(&path, &serde_json::json!({"message": message})).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{turn}");
        turn["id"].as_str().expect("it has an id").to_owned()
    }

    /// Follows a turn, from the first event or from the one after another.
    pub(crate) async fn follow(&self, turn: &str, after: Option<&str>) -> Events {
        Events::of(self.try_follow(turn, after).await)
    }

    pub(crate) async fn try_follow(&self, turn: &str, after: Option<&str>) -> Response {
        let mut request = self.client.get(format!("{}/v1/turns/{turn}/events", self.url));
        if let Some(id) = after {
            request = request.header("last-event-id", id);
        }
        let sent = request.bearer_auth(&self.token).send();
        sent.await.expect("the server answers")
    }
}

pub(crate) async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let text = response.text().await.expect("the answer is text");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// An event as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// A stream of events.
pub(crate) struct Events {
    response: Response,
    text: String,
    waiting: VecDeque<Event>,
}

impl Events {
    fn of(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            text: String::new(),
            waiting: VecDeque::new(),
        }
    }

    /// What a header of the answer says.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.response.headers()[name].to_str().expect("a header is text")
    }

    /// The next event; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        timeout(EVENT_LIMIT, self.read()).await.expect("an event comes in time")
    }

    async fn read(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let chunk = self.response.chunk().await.expect("the stream is whole")?;
            self.text
                .push_str(std::str::from_utf8(&chunk).expect("events are text"));
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
                };
                if let Some(data) = field("data") {
                    self.waiting.push_back(Event {
                        id: field("id").expect("an event has an id"),
                        kind: field("event").expect("an event has a kind"),
                        data: serde_json::from_str(&data).expect("an event is JSON"),
                    });
                }
                self.text = rest.to_owned();
            }
        }
    }

    /// All events to the end.
    pub(crate) async fn all(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}
