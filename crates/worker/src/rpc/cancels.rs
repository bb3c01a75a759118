//! The word to stop a turn, as it comes from a server to every worker.
//!
//! It can come before the turn does: a turn waits in its queue, and is then delivered to any worker. So what is said of
//! a turn that is not here is remembered for a while.

use crate::turn::{Cancellation, Stop};
use contract::turn::CancelTurn;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};
use uuid::Uuid;

/// How many turns that are not here are remembered; the oldest go first.
const MAX_REMEMBERED: usize = 1000;
/// For how long. Longer than a turn waits in its queue before its time is over.
const REMEMBERED_FOR: Duration = Duration::from_mins(15);

/// The turns under way in this worker, and those that are to be stopped when they come.
#[derive(Default)]
pub(super) struct Cancels(Mutex<State>);

#[derive(Default)]
struct State {
    /// By a number of each delivery: a turn that was published twice can be here twice.
    under_way: HashMap<u64, (Uuid, watch::Sender<Option<Stop>>)>,
    next: u64,
    remembered: VecDeque<(Uuid, Instant)>,
}

/// A turn's place among those under way; given up when it is dropped, however the turn ends.
pub(super) struct UnderWay {
    cancels: Arc<Cancels>,
    number: u64,
}

impl UnderWay {
    /// Stops this delivery of the turn, and no other.
    pub(super) fn stop(&self, reason: Stop) {
        if let Some((_, sender)) = self.cancels.lock().under_way.get(&self.number) {
            stop(sender, reason);
        }
    }
}

/// The first reason holds.
fn stop(sender: &watch::Sender<Option<Stop>>, reason: Stop) {
    sender.send_if_modified(|stopped| {
        let is_first = stopped.is_none();
        stopped.get_or_insert(reason);
        is_first
    });
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.cancels.lock().under_way.remove(&self.number);
    }
}

impl Cancels {
    /// Takes a turn up. One that was stopped before it came is told at once.
    pub(super) fn begin(self: &Arc<Self>, turn_id: Uuid) -> (UnderWay, Cancellation) {
        let mut state = self.lock();
        let stopped = state.is_remembered(turn_id, Instant::now()).then_some(Stop::Cancelled);
        let (sender, receiver) = watch::channel(stopped);
        let number = state.next;
        state.next += 1;
        state.under_way.insert(number, (turn_id, sender));
        drop(state);
        let under_way = UnderWay {
            cancels: self.clone(),
            number,
        };
        (under_way, Cancellation::when(receiver))
    }

    /// Stops what the body of a message names.
    pub(super) fn take(&self, body: &[u8]) {
        match serde_json::from_slice::<CancelTurn>(body) {
            Ok(CancelTurn { turn_id }) => self.stop(turn_id, Instant::now()),
            Err(error) => tracing::warn!(kind = ?error.classify(), "a word to stop a turn that cannot be read"),
        }
    }

    fn stop(&self, turn_id: Uuid, now: Instant) {
        let mut state = self.lock();
        // Remembered even where it is under way: should this delivery be lost, another may follow.
        state.remember(turn_id, now);
        for (_, sender) in state.under_way.values().filter(|(id, _)| *id == turn_id) {
            tracing::info!(turn = %turn_id, "a turn is stopped");
            stop(sender, Stop::Cancelled);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remember(&mut self, turn_id: Uuid, now: Instant) {
        self.forget_old(now);
        if self.remembered.len() == MAX_REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back((turn_id, now));
    }

    fn is_remembered(&mut self, turn_id: Uuid, now: Instant) -> bool {
        self.forget_old(now);
        self.remembered.iter().any(|(id, _)| *id == turn_id)
    }

    fn forget_old(&mut self, now: Instant) {
        let is_old = |(_, since): &(Uuid, Instant)| now.duration_since(*since) > REMEMBERED_FOR;
        while self.remembered.front().is_some_and(is_old) {
            self.remembered.pop_front();
        }
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

    fn is_stopped(cancellation: Cancellation) -> bool {
        cancellation.stopped().now_or_never().is_some()
    }

    #[tokio::test]
    async fn stops_the_turn_that_it_names_and_no_other() {
        let cancels = Arc::new(Cancels::default());
        let (here, there) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let (_place, first) = cancels.begin(here);
        let (_again, second) = cancels.begin(here);
        let (_other, other) = cancels.begin(there);
        cancels.take(&body(here));
        cancels.take(b"{");
        assert!(is_stopped(first) && is_stopped(second) && !is_stopped(other));
    }

    #[tokio::test]
    async fn one_delivery_can_be_stopped_for_a_reason_of_its_own() {
        let cancels = Arc::new(Cancels::default());
        let id = Uuid::from_u128(1);
        let (place, first) = cancels.begin(id);
        let (_again, second) = cancels.begin(id);
        place.stop(Stop::OverBudget);
        cancels.take(&body(Uuid::from_u128(2)));
        place.stop(Stop::Cancelled);
        assert_eq!(
            first.stopped().now_or_never(),
            Some(Stop::OverBudget),
            "the first reason holds"
        );
        assert!(!is_stopped(second));
    }

    #[tokio::test]
    async fn a_turn_that_comes_after_the_word_is_stopped_as_well() {
        let cancels = Arc::new(Cancels::default());
        cancels.take(&body(Uuid::from_u128(1)));
        assert!(is_stopped(cancels.begin(Uuid::from_u128(1)).1));
        assert!(!is_stopped(cancels.begin(Uuid::from_u128(2)).1));
    }

    #[tokio::test]
    async fn a_turn_that_has_ended_leaves_its_place() {
        let cancels = Arc::new(Cancels::default());
        let (place, _) = cancels.begin(Uuid::from_u128(1));
        assert_eq!(cancels.lock().under_way.len(), 1);
        drop(place);
        assert!(cancels.lock().under_way.is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded_in_number_and_time() {
        let (mut state, begun) = (State::default(), Instant::now());
        let ids = 0..=u128::try_from(MAX_REMEMBERED).unwrap();
        ids.for_each(|id| state.remember(Uuid::from_u128(id), begun));
        assert_eq!(state.remembered.len(), MAX_REMEMBERED);
        assert!(!state.is_remembered(Uuid::from_u128(0), begun) && state.is_remembered(Uuid::from_u128(1), begun));
        assert!(state.is_remembered(Uuid::from_u128(1), begun + REMEMBERED_FOR));
        assert!(!state.is_remembered(Uuid::from_u128(1), begun + REMEMBERED_FOR + Duration::from_secs(1)));
        assert!(state.remembered.is_empty());
    }
}
