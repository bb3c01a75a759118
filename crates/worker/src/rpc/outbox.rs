//! What of one turn is yet to be reported: what comes while a report is on its way waits here for the next.

use crate::turn::Reporter;
use contract::turn::{JournalEntry, MAX_REPORTED_EVENTS, TurnEvent};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Serialize;
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, watch};

/// The longest text that parts are joined to. A model writes a few letters a part; a reader is served a sentence as
/// well.
const MAX_JOINED_BYTES: usize = 16 * 1024;
/// About the most that one report holds, in bytes.
const MAX_REPORT_BYTES: usize = 256 * 1024;

/// What waits, in order. How much that can be is bounded by what a turn may hold.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    /// For the one that takes.
    put: Notify,
    /// How many items have been taken by the server.
    taken: watch::Sender<u64>,
}

#[derive(Default)]
struct Waiting {
    items: VecDeque<Item>,
    /// How many were ever put here.
    put: u64,
}

/// One thing that waits.
#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Event(TurnEvent),
    Kept(JournalEntry),
}

/// What goes into one report.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Batch {
    pub(super) events: Vec<TurnEvent>,
    pub(super) journal: Vec<JournalEntry>,
    /// How many both are.
    pub(super) items: u64,
}

impl Reporter for Outbox {
    fn event(&self, event: TurnEvent) {
        let mut waiting = self.lock();
        if let Some(event) = join(&mut waiting.items, event) {
            waiting.put(Item::Event(event));
        }
        drop(waiting);
        self.put.notify_one();
    }

    fn keep(&self, entry: JournalEntry) {
        self.lock().put(Item::Kept(entry));
        self.put.notify_one();
    }

    fn all_taken(&self) -> BoxFuture<'_, ()> {
        let all = self.lock().put;
        let mut taken = self.taken.subscribe();
        async move {
            // The sender lives as long as `self`, so that this can only end by the value.
            let _ = taken.wait_for(|taken| *taken >= all).await;
        }
        .boxed()
    }
}

impl Outbox {
    /// Resolves when something waits.
    pub(super) async fn filled(&self) {
        self.until(|items| !items.is_empty()).await;
    }

    /// Resolves when something else than text waits.
    pub(super) async fn urgent(&self) {
        self.until(|items| !items.iter().all(is_text)).await;
    }

    async fn until(&self, condition: impl Fn(&VecDeque<Item>) -> bool) {
        // A permit is kept of what is put in between, there being one that waits.
        while !condition(&self.lock().items) {
            self.put.notified().await;
        }
    }

    /// What goes into the next report, oldest first.
    pub(super) fn take(&self) -> Batch {
        let mut waiting = self.lock();
        let (mut batch, mut bytes) = (Batch::default(), 0);
        while let Some(item) = waiting.items.front()
            && batch.events.len() + batch.journal.len() < MAX_REPORTED_EVENTS
        {
            bytes += size_of(item);
            if bytes > MAX_REPORT_BYTES && batch.items > 0 {
                break;
            }
            match waiting.items.pop_front() {
                Some(Item::Event(event)) => batch.events.push(event),
                Some(Item::Kept(entry)) => batch.journal.push(entry),
                None => break,
            }
            batch.items += 1;
        }
        batch
    }

    /// The server has so many more.
    pub(super) fn was_taken(&self, items: u64) {
        self.taken.send_modify(|taken| *taken += items);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn put(&mut self, item: Item) {
        self.items.push_back(item);
        self.put += 1;
    }
}

/// Joins an event to the last one where both are text of the same agent; gives it back otherwise.
fn join(items: &mut VecDeque<Item>, event: TurnEvent) -> Option<TurnEvent> {
    if let TurnEvent::Text { agent, delta } = &event
        && let Some(Item::Event(TurnEvent::Text { agent: by, delta: text })) = items.back_mut()
        && agent == by
        && text.len() + delta.len() <= MAX_JOINED_BYTES
    {
        text.push_str(delta);
        return None;
    }
    Some(event)
}

const fn is_text(item: &Item) -> bool {
    matches!(item, Item::Event(TurnEvent::Text { .. }))
}

fn size_of(item: &Item) -> usize {
    serde_json::to_vec(item).map_or(0, |body| body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(agent: &str, delta: &str) -> TurnEvent {
        TurnEvent::Text {
            agent: agent.into(),
            delta: delta.into(),
        }
    }

    fn of(events: impl IntoIterator<Item = TurnEvent>) -> Outbox {
        let outbox = Outbox::default();
        events.into_iter().for_each(|event| outbox.event(event));
        outbox
    }

    #[test]
    fn text_of_one_agent_is_joined_and_nothing_changes_places() {
        let long = "x".repeat(MAX_JOINED_BYTES);
        let outbox = of([
            text("Rover", "Let "),
            text("Rover", "me see."),
            text("Angie", "I "),
            text("Rover", "So"),
            TurnEvent::Started {},
            text("Rover", "Done"),
            text("Rover", &long),
        ]);
        let expected = [
            text("Rover", "Let me see."),
            text("Angie", "I "),
            text("Rover", "So"),
            TurnEvent::Started {},
            text("Rover", "Done"),
            text("Rover", &long),
        ];
        assert_eq!(outbox.take().events, expected);
        assert_eq!(outbox.take(), Batch::default());
    }

    #[tokio::test]
    async fn what_is_kept_goes_with_the_events_before_it_and_is_waited_for() {
        let outbox = of([text("Rover", "Hi")]);
        outbox.keep(kept("a", 1));
        outbox.event(TurnEvent::Started {});
        assert!(outbox.urgent().now_or_never().is_some());
        let taken = outbox.all_taken();
        outbox.event(text("Rover", "So"));
        let batch = outbox.take();
        assert_eq!(
            batch.events,
            [text("Rover", "Hi"), TurnEvent::Started {}, text("Rover", "So")]
        );
        assert_eq!((batch.journal, batch.items), (vec![kept("a", 1)], 4));
        outbox.was_taken(2);
        let mut taken = std::pin::pin!(taken);
        assert!((&mut taken).now_or_never().is_none(), "not all of it yet");
        outbox.was_taken(1);
        assert!(taken.now_or_never().is_some());
        assert!(outbox.all_taken().now_or_never().is_none());
    }

    fn kept(id: &str, bytes: usize) -> JournalEntry {
        JournalEntry::Result {
            tool_call_id: id.into(),
            content: "x".repeat(bytes),
            succeeded: true,
        }
    }

    #[test]
    fn a_report_is_bounded_in_events_and_bytes() {
        let many = of((0..=MAX_REPORTED_EVENTS).map(|_| TurnEvent::Started {}));
        assert_eq!((many.take().items, many.take().items), (MAX_REPORTED_EVENTS as u64, 1));
        let outbox = of([]);
        outbox.keep(kept("a", MAX_REPORT_BYTES - 200));
        outbox.event(TurnEvent::Started {});
        outbox.keep(kept("b", MAX_REPORT_BYTES - 200));
        outbox.keep(kept("c", 2 * MAX_REPORT_BYTES));
        let taken: Vec<u64> = std::iter::repeat_with(|| outbox.take().items).take(4).collect();
        assert_eq!(taken, [2, 1, 1, 0]);
    }

    #[tokio::test]
    async fn text_can_wait_and_the_rest_cannot() {
        let outbox = of([]);
        assert!(outbox.filled().now_or_never().is_none());
        outbox.event(text("Rover", "Hi"));
        assert!(outbox.filled().now_or_never().is_some());
        assert!(outbox.urgent().now_or_never().is_none());
        outbox.event(TurnEvent::Started {});
        assert!(outbox.urgent().now_or_never().is_some());
    }
}
