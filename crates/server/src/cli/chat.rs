//! `server chat`: a conversation at a terminal, through the HTTP door like anybody's.

use super::Person;
use crate::{
    config::AuthConfig,
    http::{auth::mint, client::client},
};
use anyhow::{Context, bail};
use eventsource_stream::Eventsource;
use futures_util::{StreamExt, stream};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};
use tokio::io::{AsyncBufReadExt, BufReader};

/// How long a token of a chat lasts.
const LASTS: Duration = Duration::from_hours(12);
/// How often a broken stream is gone on with, without any event in between.
const MAX_TRIES: u32 = 5;
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Talks until the end of the input. Exit status 0 only when the last turn was answered.
pub(super) async fn chat(auth: &AuthConfig, person: Person, url: &str) -> anyhow::Result<ExitCode> {
    let Person { email, school, campus } = person;
    let door = Door::new(url, mint(auth, &email, LASTS).context("AUTH_SECRET")?)?;
    let wanted = json!({"school": school, "campus": campus});
    let thread = door.post("/v1/threads", &wanted).await?;
    let turns = format!("/v1/threads/{}/turns", text(&thread, "id"));
    let is_terminal = std::io::stdin().is_terminal();
    if is_terminal {
        super::print(&format!(
            "{email} at {}. Ctrl-C stops a turn, an empty line ends it.",
            door.url
        ))?;
    }
    let mut input = BufReader::new(tokio::io::stdin());
    let mut answered = true;
    loop {
        if is_terminal {
            show("> ")?;
        }
        let mut line = Vec::new();
        if input
            .read_until(b'\n', &mut line)
            .await
            .context("reading what you say")?
            == 0
        {
            break;
        }
        // whatever a terminal sends, a conversation does not end of it
        let message = String::from_utf8_lossy(&line).trim().to_owned();
        match (message.is_empty(), is_terminal) {
            (true, true) => break,
            (true, false) => continue,
            (false, _) => {}
        }
        answered = match door.post(&turns, &json!({"message": message})).await {
            Ok(turn) => follow(&door, text(&turn, "id"), &mut input).await?,
            Err(error) => {
                super::print(&format!("{error:#}"))?;
                false
            }
        };
    }
    Ok(if answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is said at the terminal.
type Input = BufReader<tokio::io::Stdin>;

/// Shows a turn's events until its end, and passes on what it waits for. Answers whether it was answered.
async fn follow(door: &Door, turn: &str, input: &mut Input) -> anyhow::Result<bool> {
    let events = format!("/v1/turns/{turn}/events");
    let mut last = None;
    let mut tries = 0;
    let mut shown = Shown::default();
    loop {
        let response = door.events(&events, last.as_deref()).await?;
        let chunks = stream::unfold(response, async |mut response| {
            let chunk = response.chunk().await.transpose()?;
            Some((chunk, response))
        });
        let mut events = Box::pin(chunks.eventsource());
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted.context("Ctrl-C")?;
                    super::print("\nstopping; what was begun may still be done")?;
                    // one that has ended meanwhile says so itself
                    let _ = door.post(&format!("/v1/turns/{turn}/cancel"), &json!({})).await;
                    continue;
                }
            };
            let Some(Ok(event)) = event else { break };
            tries = 0;
            last = Some(event.id);
            let event: Value = serde_json::from_str(&event.data).context("an event cannot be read")?;
            match shown.show(&event)? {
                After::Event => {}
                After::End(answered) => return Ok(answered),
                After::Waiting => {
                    if !settle(door, turn, &mut shown, input).await? {
                        super::print("It goes on when that is settled.")?;
                        return Ok(false);
                    }
                }
            }
        }
        tries += 1;
        if tries >= MAX_TRIES {
            bail!("the events of the turn broke off");
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

/// Asks for everything that a turn waits for, and passes it on. False at the end of the input.
async fn settle(door: &Door, turn: &str, shown: &mut Shown, input: &mut Input) -> anyhow::Result<bool> {
    for mut asked in std::mem::take(&mut shown.asked) {
        while let Some((prompt, path, mut body)) = asked.prompt(door, turn).await? {
            show(prompt)?;
            let mut line = Vec::new();
            if input
                .read_until(b'\n', &mut line)
                .await
                .context("reading your answer")?
                == 0
            {
                return Ok(false);
            }
            let said = String::from_utf8_lossy(&line).trim().to_owned();
            if let Some(body) = body.as_object_mut() {
                body.insert(asked.member().to_owned(), said.into());
            }
            match door.post(&path, &body).await {
                Ok(settled) if text(&settled, "became") == "asked_anew" => {}
                Ok(_) => break,
                Err(error) => {
                    super::print(&format!("{error:#}"))?;
                    if error.downcast_ref::<Refused>().is_some_and(Refused::is_final) {
                        break;
                    }
                }
            }
        }
    }
    Ok(true)
}

/// What a turn waits for.
enum Asked {
    Question { call: String },
    Approval { id: String, preview: Value },
}

impl Asked {
    /// What to ask for, and where to send it with what else; none where it is not, or no more, for this person to say.
    async fn prompt(&mut self, door: &Door, turn: &str) -> anyhow::Result<Option<(&'static str, String, Value)>> {
        let (id, shown) = match self {
            Self::Question { call } => {
                let body = json!({"toolCallId": call});
                return Ok(Some(("? ", format!("/v1/turns/{turn}/answers"), body)));
            }
            Self::Approval { id, preview } => (id, preview),
        };
        let approval = door.get(&format!("/v1/approvals/{id}")).await?;
        if approval.get("mayDecide") != Some(&Value::Bool(true)) {
            if text(&approval, "status") == "pending" {
                super::print("  Somebody else must decide this; Ctrl-C gives it up.")?;
            }
            return Ok(None);
        }
        let preview = approval.get("preview").unwrap_or(&Value::Null);
        if preview != shown {
            super::print(&super::harmless(&format!("  By now it would do this: {preview}")))?;
            *shown = preview.clone();
        }
        let body = json!({"previewedAt": approval.get("previewedAt")});
        Ok(Some((
            "approve or reject? ",
            format!("/v1/approvals/{id}/decision"),
            body,
        )))
    }

    /// What the door calls that which is said.
    const fn member(&self) -> &'static str {
        match self {
            Self::Question { .. } => "answer",
            Self::Approval { .. } => "decision",
        }
    }
}

/// The door said no.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Refused {
    status: StatusCode,
    text: String,
}

impl Refused {
    /// Whether nothing else that is said would be taken.
    fn is_final(&self) -> bool {
        [StatusCode::CONFLICT, StatusCode::NOT_FOUND].contains(&self.status)
    }
}

/// What follows from an event.
#[derive(Debug, PartialEq, Eq)]
enum After {
    /// More events.
    Event,
    /// Nothing, before somebody has said something.
    Waiting,
    /// Nothing; whether the turn was answered.
    End(bool),
}

/// What is on the screen.
#[derive(Default)]
struct Shown {
    /// Who is in the middle of a line.
    speaking: Option<String>,
    asked: Vec<Asked>,
}

impl Shown {
    /// Shows an event.
    fn show(&mut self, event: &Value) -> anyhow::Result<After> {
        let agent = text(event, "agent");
        match text(event, "type") {
            "text" => {
                if self.speaking.as_deref() != Some(agent) {
                    self.end_line()?;
                    if agent != "Rover" {
                        show(&format!("  {agent}: "))?;
                    }
                    self.speaking = Some(agent.to_owned());
                }
                show(&super::harmless(text(event, "delta")))?;
            }
            "delegated" => self.line(&format!("  → {agent}: {}", text(event, "task")))?,
            "tool_ended" => {
                let tool = text(event, "tool");
                let how = event.get("error").map_or("done", |_| "refused or failed");
                let covers = event.get("scopeContext").or(event.get("error")).and_then(Value::as_str);
                self.line(&format!("  · {agent} {tool}: {how}. {}", covers.unwrap_or_default()))?;
            }
            "asked" => {
                let choices = event.get("choices").and_then(Value::as_array);
                let choices: Vec<&str> = choices.into_iter().flatten().filter_map(Value::as_str).collect();
                let among = if choices.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", choices.join(" / "))
                };
                self.line(&format!("  {agent} asks: {}{among}", text(event, "question")))?;
                let call = text(event, "toolCallId").to_owned();
                self.asked.push(Asked::Question { call });
            }
            "approval_asked" => {
                let preview = event.get("preview").unwrap_or(&Value::Null);
                self.line(&format!("  {agent} would {}: {preview}", text(event, "tool")))?;
                let id = text(event, "approvalId").to_owned();
                let preview = preview.clone();
                self.asked.push(Asked::Approval { id, preview });
            }
            "waiting" => {
                self.end_line()?;
                return Ok(After::Waiting);
            }
            "answered" | "decided" => self.asked.clear(),
            "ended" => {
                self.end_line()?;
                let outcome = event.get("outcome").unwrap_or(&Value::Null);
                let answered = outcome.get("answer").is_some();
                if !answered {
                    let why = outcome
                        .get("error")
                        .or(outcome.get("cancelled"))
                        .and_then(Value::as_str);
                    self.line(why.unwrap_or("The turn ended without an answer."))?;
                }
                return Ok(After::End(answered));
            }
            _ => {}
        }
        Ok(After::Event)
    }

    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        self.end_line()?;
        super::print(&super::harmless(line))
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        if self.speaking.take().is_some() {
            super::print("")?;
        }
        Ok(())
    }
}

fn show(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The door, with a token.
struct Door {
    client: Client,
    url: String,
    token: String,
}

impl Door {
    fn new(url: &str, token: String) -> anyhow::Result<Self> {
        Ok(Self {
            client: client(url).context("the HTTP client cannot be made")?,
            url: url.trim_end_matches('/').to_owned(),
            token,
        })
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.client.post(format!("{}{path}", self.url));
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        read(self.send(request).await?).await
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        read(self.send(self.client.get(format!("{}{path}", self.url))).await?).await
    }

    async fn events(&self, path: &str, after: Option<&str>) -> anyhow::Result<Response> {
        let mut request = self.client.get(format!("{}{path}", self.url));
        if let Some(id) = after {
            request = request.header("last-event-id", id);
        }
        self.send(request).await
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let sent = request.bearer_auth(&self.token).send().await;
        let response = sent.with_context(|| format!("no HTTP door at {}; is a server running?", self.url))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let problem: Value = serde_json::from_str(&response.text().await.unwrap_or_default()).unwrap_or_default();
        let text = match text(&problem, "detail") {
            "" => format!("the door answered {status}"),
            detail => super::harmless(detail),
        };
        Err(Refused { status, text }.into())
    }
}

async fn read(response: Response) -> anyhow::Result<Value> {
    let answer = response.text().await.context("reading the answer")?;
    if answer.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&answer).context("the answer cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_is_one() {
        let ended = |outcome: Value| json!({"type": "ended", "outcome": outcome});
        let mut shown = Shown::default();
        assert_eq!(shown.show(&json!({"type": "started"})).unwrap(), After::Event);
        assert_eq!(shown.show(&ended(json!({"answer": "Yes."}))).unwrap(), After::End(true));
        assert_eq!(shown.show(&ended(json!({"error": "No."}))).unwrap(), After::End(false));
        assert_eq!(
            shown.show(&ended(json!({"cancelled": "Stopped."}))).unwrap(),
            After::End(false)
        );
    }
}
