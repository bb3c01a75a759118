//! The events of a turn, as they happen, by server-sent events: from the first one for whoever comes late, from the one after
//! `Last-Event-ID` for whoever comes back.

use super::{
    Door, Problem,
    auth::Session,
    input::{Id, Nothing, Params},
    streams::OpenStream,
};
use crate::conversation::{ConversationError, Conversations, Followed, Gaps, Person, Place, Told};
use axum::{
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{ACCEPT, CACHE_CONTROL},
    },
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, stream};
use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        watch,
    },
    time::{Instant, sleep, timeout},
};
use uuid::Uuid;

/// How long to wait for news before looking without any.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);
/// How often something is sent, so that nobody between takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long an event that is missing among others is waited for: longer than a server takes to come back from a lost connection.
const GAP_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether whoever reads may still come in: a stream is one request, and outlasts what was known at its beginning.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
const LAST_EVENT_ID: &str = "last-event-id";

pub(super) async fn follow(
    State(door): State<Arc<Door>>,
    session: Session,
    Id(id): Id,
    Params(Nothing {}): Params<Nothing>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let unknown = || Problem::new(StatusCode::BAD_REQUEST, "Last-Event-ID is none of an event of a turn.");
    let after = headers.get(LAST_EVENT_ID).map(|value| place(value).ok_or_else(unknown));
    let after = after.transpose()?.unwrap_or_default();
    let following = Following::begin(&door, &session)?;
    let (turn, followed) = door.books.conversations.turn(&session.person, id).await?;
    // a browser comes back by itself until it is told that there is nothing more
    if turn.has_ended() && after != Place::default() && door.books.conversations.is_over_at(&followed, after).await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(following.stream_of(&door, followed, after))
}

/// The place of a stream for whoever wants the events of a turn that is to begin at once.
pub(super) fn following(door: &Door, session: &Session, headers: &HeaderMap) -> Result<Option<Following>, Problem> {
    is_wanted(headers).then(|| Following::begin(door, session)).transpose()
}

/// Somebody who is to read events.
pub(super) struct Following {
    person: Person,
    until: Instant,
    /// Its place among the open ones, for as long as it is read.
    _open: OpenStream,
    news: broadcast::Receiver<Uuid>,
}

impl Following {
    /// Before the first look at the turn, or what happens between them would wake nobody.
    fn begin(door: &Door, session: &Session) -> Result<Self, Problem> {
        Ok(Self {
            person: session.person.clone(),
            until: session.until,
            _open: door.streams.open(&session.person.email)?,
            news: door.hub.follow(),
        })
    }

    /// The events of a turn after a place, to its end.
    pub(super) fn stream_of(self, door: &Door, followed: Followed, after: Place) -> Response {
        let now = Instant::now();
        let reader = Reader {
            conversations: Arc::clone(&door.books.conversations),
            followed,
            after,
            waiting: VecDeque::new(),
            has_ended: false,
            silent_since: now,
            looked_at: now,
            following: self,
            stopping: door.stopping.clone(),
        };
        let mut response = Sse::new(reader.events())
            .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
            .into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // a proxy that gathers a response would hold all of it back until the end
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

/// Whether whoever asks wants the events at once instead of the place where they are.
fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("text/event-stream")
    })
}

fn place(value: &HeaderValue) -> Option<Place> {
    let (attempt, place) = value.to_str().ok()?.split_once('.')?;
    Some(Place {
        attempt: attempt.parse().ok()?,
        place: place.parse().ok()?,
    })
}

/// Somebody who reads a turn's events.
struct Reader {
    conversations: Arc<Conversations>,
    followed: Followed,
    after: Place,
    waiting: VecDeque<Told>,
    has_ended: bool,
    silent_since: Instant,
    /// When it was last looked whether they may still read them.
    looked_at: Instant,
    following: Following,
    stopping: watch::Receiver<bool>,
}

impl Reader {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, async |mut reader| {
            let event = reader.next().await?;
            Some((Ok(event), reader))
        })
    }

    /// The next event; none after the last, when the process stops, or when its reader may not read it any more.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if self.is_shut_out().await {
                return None;
            }
            while let Some(told) = self.waiting.pop_front() {
                self.has_ended |= told.is_last;
                if let Some(event) = &told.event {
                    let id = format!("{}.{}", told.at.attempt, told.at.place);
                    return Some(Event::default().id(id).event(told.kind).data(event.to_string()));
                }
            }
            if self.has_ended || *self.stopping.borrow() {
                return None;
            }
            let gaps = if self.silent_since.elapsed() > GAP_PATIENCE {
                Gaps::PassedOver
            } else {
                Gaps::WaitedFor
            };
            match self.conversations.events(&self.followed, self.after, gaps).await {
                Ok(told) if told.is_empty() => {}
                Ok(told) => {
                    self.after = told.last().map_or(self.after, |last| last.at);
                    self.waiting.extend(told);
                    self.silent_since = Instant::now();
                    continue;
                }
                Err(error) => tracing::warn!(%error, "events could not be read; trying again"),
            }
            let mut stopping = self.stopping.clone();
            tokio::select! {
                () = self.heard() => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        }
    }

    /// Whether whoever reads may not come in any more, or has read all: where somebody began after the end, no end comes.
    async fn is_shut_out(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.following.until {
            return true;
        }
        if now.duration_since(self.looked_at) < LOOK_AGAIN {
            return false;
        }
        self.looked_at = now;
        let looked = async {
            let (turn, _) = self
                .conversations
                .turn(&self.following.person, self.followed.turn)
                .await?;
            let is_read = turn.has_ended() && self.waiting.is_empty();
            Ok(is_read && self.conversations.is_over_at(&self.followed, self.after).await?)
        };
        match looked.await {
            Ok(is_over) => is_over,
            Err(error) => {
                let error: ConversationError = error;
                tracing::info!(%error, turn = %self.followed.turn, "whoever reads events could not be looked at");
                error.is_refusal()
            }
        }
    }

    /// Waits for news of this turn, and no longer than it takes to look anyway.
    async fn heard(&mut self) {
        let turn = self.followed.turn;
        let news = async {
            loop {
                match self.following.news.recv().await {
                    Ok(of) if of == turn => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return,
                    Err(RecvError::Closed) => sleep(LOOK_ANYWAY).await,
                }
            }
        };
        // too late is as good as news
        let _ = timeout(LOOK_ANYWAY, news).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_wanted_by_whoever_accepts_them() {
        let wants = |accept: &str| {
            is_wanted(&HeaderMap::from_iter([(
                ACCEPT,
                HeaderValue::from_str(accept).unwrap(),
            )]))
        };
        assert!(wants("text/event-stream") && wants("application/json, Text/Event-Stream;q=0.5"));
        assert!(!wants("*/*") && !wants("application/json") && !is_wanted(&HeaderMap::new()));
    }

    #[test]
    fn an_id_of_an_event_says_where_to_go_on() {
        let read = |text: &str| place(&HeaderValue::from_str(text).unwrap());
        assert_eq!(read("2.17"), Some(Place { attempt: 2, place: 17 }));
        for wrong in ["", "7", "1.x", "1.2.3", "-"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
