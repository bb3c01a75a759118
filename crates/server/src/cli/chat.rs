//! `server chat`: a conversation at a terminal, through the HTTP door like anybody's.

mod door;
mod screen;
mod waiting;

use self::{
    door::{Door, Refused},
    screen::Shown,
    waiting::Waiting,
};
use super::Person;
use crate::{config::AuthConfig, http::auth::mint};
use anyhow::{Context, bail};
use eventsource_stream::Eventsource;
use futures_util::{StreamExt, stream};
use reqwest::Response;
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
const MAX_TRIES: u32 = 20;
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
    let mut input = Input {
        lines: BufReader::new(tokio::io::stdin()),
        begun: Vec::new(),
    };
    let mut answered = true;
    loop {
        if is_terminal {
            show("> ")?;
        }
        let Some(message) = input.line().await? else { break };
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
struct Input {
    lines: BufReader<tokio::io::Stdin>,
    /// As much of a line as there is yet.
    begun: Vec<u8>,
}

impl Input {
    /// The next line; none at the end. Whoever stops waiting for it loses nothing of it.
    async fn line(&mut self) -> anyhow::Result<Option<String>> {
        let read = self.lines.read_until(b'\n', &mut self.begun).await;
        read.context("reading what you say")?;
        // whatever a terminal sends, a conversation does not end of it
        let line = std::mem::take(&mut self.begun);
        Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).trim().to_owned()))
    }
}

/// Shows a turn's events until its end, and passes on what it waits for. Answers whether it was answered.
async fn follow(door: &Door, turn: &str, input: &mut Input) -> anyhow::Result<bool> {
    let path = format!("/v1/turns/{turn}/events");
    let mut talk = Talk {
        door,
        turn,
        last: None,
        shown: Shown::default(),
        waiting: Waiting::default(),
    };
    let mut tries = 0;
    loop {
        match door.events(&path, talk.last.as_deref()).await {
            Ok(response) => {
                let before = talk.last.clone();
                if let Some(answered) = talk.hear(response, input).await? {
                    return Ok(answered);
                }
                if talk.last != before {
                    tries = 0;
                }
            }
            Err(error) if error.is::<Refused>() || tries + 1 >= MAX_TRIES => return Err(error),
            // a server that starts anew is there again in a moment
            Err(_) => {}
        }
        tries += 1;
        if tries >= MAX_TRIES {
            bail!("the events of the turn broke off");
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

/// A turn that is followed.
struct Talk<'a> {
    door: &'a Door,
    turn: &'a str,
    /// The last event that was seen.
    last: Option<String>,
    shown: Shown,
    waiting: Waiting,
}

impl Talk<'_> {
    /// Shows events as they come, and asks for what the turn waits for. Answers whether the turn was answered; none where the stream
    /// broke off.
    async fn hear(&mut self, response: Response, input: &mut Input) -> anyhow::Result<Option<bool>> {
        let chunks = stream::unfold(response, async |mut response| {
            let chunk = response.chunk().await.transpose()?;
            Some((chunk, response))
        });
        let mut events = Box::pin(chunks.eventsource());
        loop {
            self.waiting.ask(self.door).await?;
            tokio::select! {
                event = events.next() => {
                    let Some(Ok(event)) = event else { return Ok(None) };
                    self.last = Some(event.id);
                    let event = serde_json::from_str(&event.data).context("an event cannot be read")?;
                    if let Some(answered) = self.show(&event)? {
                        return Ok(Some(answered));
                    }
                }
                line = input.line(), if self.waiting.listens() => {
                    let Some(line) = line? else {
                        super::print("\nIt goes on when that is settled.")?;
                        return Ok(Some(false));
                    };
                    self.waiting.said(&line, self.door, self.turn).await?;
                }
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted.context("Ctrl-C")?;
                    super::print("\nstopping; what was begun may still be done")?;
                    // one that has ended meanwhile says so itself
                    let _ = self.door.post(&format!("/v1/turns/{}/cancel", self.turn), &json!({})).await;
                }
            }
        }
    }

    /// Shows an event. Answers whether the turn was answered, where this is its end.
    fn show(&mut self, event: &Value) -> anyhow::Result<Option<bool>> {
        if self.waiting.interrupt() {
            super::print("")?;
        }
        self.waiting.note(event);
        let ended = self.shown.show(event)?;
        if text(event, "type") == "waiting"
            && let Some(introduction) = self.waiting.introduction()
        {
            super::print(&introduction)?;
        }
        Ok(ended)
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
