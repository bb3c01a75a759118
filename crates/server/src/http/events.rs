//! The events of a turn, as they happen, by server-sent events: from the first one for whoever comes late, from the one after
//! `Last-Event-ID` for whoever comes back.

use super::{
    Door, Problem,
    auth::SignedIn,
    input::{Id, Nothing, Params},
};
use crate::conversation::{Conversations, Followed, Gaps, Place, Told};
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
const LAST_EVENT_ID: &str = "last-event-id";

pub(super) async fn follow(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Id(id): Id,
    Params(Nothing {}): Params<Nothing>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let unknown = || Problem::new(StatusCode::BAD_REQUEST, "Last-Event-ID is none of an event of a turn.");
    let after = headers.get(LAST_EVENT_ID).map(|value| place(value).ok_or_else(unknown));
    let after = after.transpose()?.unwrap_or_default();
    // before the first look, or what happens between them would wake nobody
    let news = door.hub.follow();
    let (turn, followed) = door.books.conversations.turn(&person, id).await?;
    // a browser comes back by itself until it is told that there is nothing more
    if turn.has_ended() && after != Place::default() && door.books.conversations.is_over_at(&followed, after).await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(stream_of(&door, followed, after, news))
}

/// The events of a turn after a place, to its end.
pub(super) fn stream_of(door: &Door, followed: Followed, after: Place, news: broadcast::Receiver<Uuid>) -> Response {
    let reader = Reader {
        conversations: Arc::clone(&door.books.conversations),
        followed,
        after,
        waiting: VecDeque::new(),
        has_ended: false,
        silent_since: Instant::now(),
        news,
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

/// Whether whoever asks wants the events at once instead of the place where they are.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
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
    news: broadcast::Receiver<Uuid>,
    stopping: watch::Receiver<bool>,
}

impl Reader {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, async |mut reader| {
            let event = reader.next().await?;
            Some((Ok(event), reader))
        })
    }

    /// The next event; none after the last, or when the process stops.
    async fn next(&mut self) -> Option<Event> {
        loop {
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

    /// Waits for news of this turn, and no longer than it takes to look anyway.
    async fn heard(&mut self) {
        let turn = self.followed.turn;
        let news = async {
            loop {
                match self.news.recv().await {
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
