//! People at whichever door answers: what they ask is asked again, at another door, until somebody answers.

use super::{Programs, chance::Chance};
use crate::Stage;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::Value;
use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{process::Command, time::sleep};

/// How long somebody tries, in all.
const PATIENCE: Duration = Duration::from_mins(3);
/// Before the next try.
const PAUSE: Duration = Duration::from_millis(100);
/// How long one request may take. The server gives up sooner.
const REQUEST_LIMIT: Duration = Duration::from_secs(40);

/// The doors of the servers, as far as they are open.
#[derive(Debug, Default)]
pub(super) struct Doors {
    open: Mutex<Vec<Option<String>>>,
    retries: AtomicUsize,
}

impl Doors {
    /// Opens or shuts the door of a server.
    pub(super) fn set(&self, server: usize, url: Option<String>) {
        let mut open = self.open.lock().expect("nobody panicked here");
        if open.len() <= server {
            open.resize(server + 1, None);
        }
        open[server] = url;
    }

    /// How often something was asked again.
    #[must_use]
    pub(super) fn retries(&self) -> usize {
        self.retries.load(Ordering::Relaxed)
    }

    /// Something is asked again.
    pub(super) fn tried_again(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    fn any(&self, chance: &mut Chance) -> Option<String> {
        let open = self.open.lock().expect("nobody panicked here");
        let open: Vec<_> = open.iter().flatten().collect();
        let at = usize::try_from(chance.below(open.len() as u64)).unwrap_or_default();
        open.get(at).map(|url| (*url).clone())
    }
}

/// What a person was answered.
#[derive(Debug)]
pub(super) struct Answered {
    /// The status of the answer that counts.
    pub(super) status: StatusCode,
    /// Its body.
    pub(super) body: Value,
    /// Whether it was the first try: else an earlier one may have been heard.
    pub(super) first: bool,
}

/// Somebody with a token.
#[derive(Debug)]
pub(super) struct Visitor {
    client: Client,
    token: String,
}

impl Visitor {
    /// Somebody, by their address.
    pub(super) async fn named(email: &str, stage: &Stage, programs: &Programs) -> Self {
        let mut command = Command::new(&programs.server);
        command
            .args(["token", "--email", email])
            .env_clear()
            .envs(stage.variables());
        let output = command.output().await.expect("the command runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let token = String::from_utf8(output.stdout).expect("a token is text");
        // another test of this process may have chosen one before
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .tls_certs_only([])
            .connect_timeout(Duration::from_secs(2));
        Self {
            client: client.build().expect("a client can be made"),
            token: token.trim().to_owned(),
        }
    }

    /// Asks until somebody answers, and not only that they cannot now.
    pub(super) async fn get(&self, doors: &Doors, chance: &mut Chance, path: &str) -> Result<Answered, String> {
        self.ask(doors, chance, path, None).await
    }

    /// Says something until somebody answers. What was heard and not answered is said twice.
    pub(super) async fn post(
        &self,
        doors: &Doors,
        chance: &mut Chance,
        path: &str,
        body: &Value,
    ) -> Result<Answered, String> {
        self.ask(doors, chance, path, Some(body)).await
    }

    async fn ask(
        &self,
        doors: &Doors,
        chance: &mut Chance,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answered, String> {
        let (begun, mut first) = (Instant::now(), true);
        loop {
            match self.once(doors, chance, path, body).await {
                Some((status, body)) if !may_pass(status) => return Ok(Answered { status, body, first }),
                last if begun.elapsed() > PATIENCE => return Err(format!("{path}: not answered in time: {last:?}")),
                _ => {}
            }
            first = false;
            doors.tried_again();
            sleep(PAUSE).await;
        }
    }

    /// Asks once; none where nobody answers.
    pub(super) async fn once(
        &self,
        doors: &Doors,
        chance: &mut Chance,
        path: &str,
        body: Option<&Value>,
    ) -> Option<(StatusCode, Value)> {
        let url = doors.any(chance)?;
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let mut request = self
            .client
            .request(method, format!("{url}{path}"))
            .timeout(REQUEST_LIMIT);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request.bearer_auth(&self.token).send().await.ok()?;
        let (status, text) = (response.status(), response.text().await.ok()?);
        Some((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// Opens the events of a turn, after one of them; none where nobody answers.
    pub(super) async fn follow(
        &self,
        doors: &Doors,
        chance: &mut Chance,
        turn: &str,
        after: Option<&str>,
    ) -> Option<Response> {
        let url = doors.any(chance)?;
        let mut request = self.client.get(format!("{url}/v1/turns/{turn}/events"));
        if let Some(id) = after {
            request = request.header("last-event-id", id);
        }
        request.bearer_auth(&self.token).send().await.ok()
    }
}

/// What a server says that cannot at the moment.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT || status == StatusCode::TOO_MANY_REQUESTS
}
