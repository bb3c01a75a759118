//! The word that a turn is to be stopped, as it comes from a server to every worker.
//!
//! It is a hint: nothing proves who sent it. Whoever has the turn asks the books about it at once, and stops where these say so. A
//! turn that is not here needs no hint, since its claim is refused.

use crate::turn::{Cancellation, Stop};
use contract::turn::CancelTurn;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

/// The turns under way in this worker.
#[derive(Default)]
pub(super) struct Cancels(Mutex<State>);

#[derive(Default)]
struct State {
    /// By a number of each delivery: a turn that was published twice can be here twice.
    under_way: HashMap<u64, (Uuid, Arc<Notify>)>,
    next: u64,
}

/// A turn's place among those under way; given up when it is dropped, however the turn ends.
pub(super) struct UnderWay {
    cancels: Arc<Cancels>,
    number: u64,
    hinted: Arc<Notify>,
    stopped: watch::Sender<Option<Stop>>,
}

impl UnderWay {
    /// Stops this delivery of the turn, and no other. The first reason holds.
    pub(super) fn stop(&self, reason: Stop) {
        self.stopped.send_if_modified(|stopped| {
            let is_first = stopped.is_none();
            stopped.get_or_insert(reason);
            is_first
        });
    }

    /// Resolves when somebody said since that the turn is to be stopped, however often.
    pub(super) async fn hinted(&self) {
        self.hinted.notified().await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.cancels.lock().under_way.remove(&self.number);
    }
}

impl Cancels {
    /// Takes a turn up.
    pub(super) fn begin(self: &Arc<Self>, turn_id: Uuid) -> (UnderWay, Cancellation) {
        let (stopped, receiver) = watch::channel(None);
        let hinted = Arc::new(Notify::new());
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.under_way.insert(number, (turn_id, Arc::clone(&hinted)));
        drop(state);
        let under_way = UnderWay {
            cancels: Arc::clone(self),
            number,
            hinted,
            stopped,
        };
        (under_way, Cancellation::when(receiver))
    }

    /// Passes on what the body of a message names.
    pub(super) fn take(&self, body: &[u8]) {
        let CancelTurn { turn_id } = match serde_json::from_slice(body) {
            Ok(word) => word,
            Err(error) => return tracing::warn!(kind = ?error.classify(), "a word to stop a turn that cannot be read"),
        };
        for (_, hinted) in self.lock().under_way.values().filter(|(id, _)| *id == turn_id) {
            tracing::info!(turn = %turn_id, "a turn may be to be stopped; the books are asked");
            // kept until somebody waits for it
            hinted.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use serde_json::json;

    fn body(turn_id: Uuid) -> Vec<u8> {
        json!({"turnId": turn_id}).to_string().into_bytes()
    }

    fn is_hinted(place: &UnderWay) -> bool {
        place.hinted().now_or_never().is_some()
    }

    #[tokio::test]
    async fn a_word_is_passed_on_to_the_turn_that_it_names_and_stops_none() {
        let cancels = Arc::new(Cancels::default());
        let (here, there) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let (place, cancellation) = cancels.begin(here);
        let (again, _) = cancels.begin(here);
        let (other, _) = cancels.begin(there);
        for word in [&body(here)[..], &body(here), b"{", b""] {
            cancels.take(word);
        }
        assert!(is_hinted(&place) && is_hinted(&again) && !is_hinted(&other));
        assert!(!is_hinted(&place), "however often it was said");
        assert!(cancellation.stopped().now_or_never().is_none());
    }

    #[tokio::test]
    async fn one_delivery_is_stopped_for_the_first_reason() {
        let cancels = Arc::new(Cancels::default());
        let id = Uuid::from_u128(1);
        let (place, first) = cancels.begin(id);
        let (_again, second) = cancels.begin(id);
        place.stop(Stop::OverBudget);
        place.stop(Stop::Cancelled);
        assert_eq!(first.stopped().now_or_never(), Some(Stop::OverBudget));
        assert!(second.stopped().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_turn_that_has_ended_leaves_its_place() {
        let cancels = Arc::new(Cancels::default());
        let (place, _) = cancels.begin(Uuid::from_u128(1));
        assert_eq!(cancels.lock().under_way.len(), 1);
        drop(place);
        assert!(cancels.lock().under_way.is_empty());
    }
}
