//! The events of one turn that are yet to be reported: what comes while a report is on its way waits here for the next.

use crate::turn::Reporter;
use contract::turn::{MAX_REPORTED_EVENTS, TurnEvent};
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// The longest text that parts are joined to. A model writes a few letters a part; a reader is served a sentence as
/// well.
const MAX_JOINED_BYTES: usize = 16 * 1024;
/// About the most that one report holds, in bytes.
const MAX_REPORT_BYTES: usize = 256 * 1024;

/// What waits, in order. How much that can be is bounded by what a turn may hold.
#[derive(Default)]
pub(super) struct Outbox {
    events: Mutex<VecDeque<TurnEvent>>,
    /// For the one that takes.
    put: Notify,
}

impl Reporter for Outbox {
    fn event(&self, event: TurnEvent) {
        let mut events = self.lock();
        if let Some(event) = join(&mut events, event) {
            events.push_back(event);
        }
        drop(events);
        self.put.notify_one();
    }
}

impl Outbox {
    /// Resolves when something waits.
    pub(super) async fn filled(&self) {
        self.until(|events| !events.is_empty()).await;
    }

    /// Resolves when something else than text waits.
    pub(super) async fn urgent(&self) {
        self.until(|events| !events.iter().all(is_text)).await;
    }

    async fn until(&self, condition: impl Fn(&VecDeque<TurnEvent>) -> bool) {
        // A permit is kept of what is put in between, there being one that waits.
        while !condition(&self.lock()) {
            self.put.notified().await;
        }
    }

    /// The events of the next report, oldest first.
    pub(super) fn take(&self) -> Vec<TurnEvent> {
        let mut events = self.lock();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(event) = events.front()
            && taken.len() < MAX_REPORTED_EVENTS
        {
            bytes += size_of(event);
            if bytes > MAX_REPORT_BYTES && !taken.is_empty() {
                break;
            }
            taken.extend(events.pop_front());
        }
        taken
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<TurnEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins an event to the last one where both are text of the same agent; gives it back otherwise.
fn join(events: &mut VecDeque<TurnEvent>, event: TurnEvent) -> Option<TurnEvent> {
    if let TurnEvent::Text { agent, delta } = &event
        && let Some(TurnEvent::Text { agent: by, delta: text }) = events.back_mut()
        && agent == by
        && text.len() + delta.len() <= MAX_JOINED_BYTES
    {
        text.push_str(delta);
        return None;
    }
    Some(event)
}

const fn is_text(event: &TurnEvent) -> bool {
    matches!(event, TurnEvent::Text { .. })
}

fn size_of(event: &TurnEvent) -> usize {
    serde_json::to_vec(event).map_or(0, |body| body.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

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
        assert_eq!(outbox.take(), expected);
        assert!(outbox.take().is_empty());
    }

    #[test]
    fn a_report_is_bounded_in_events_and_bytes() {
        let many = of((0..=MAX_REPORTED_EVENTS).map(|_| TurnEvent::Started {}));
        assert_eq!((many.take().len(), many.take().len()), (MAX_REPORTED_EVENTS, 1));
        let large = TurnEvent::Messages {
            messages: vec!["x".repeat(MAX_REPORT_BYTES - 100).into()],
        };
        let outbox = of([large.clone(), TurnEvent::Started {}, large.clone(), large]);
        let taken: Vec<usize> = std::iter::repeat_with(|| outbox.take().len()).take(4).collect();
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
