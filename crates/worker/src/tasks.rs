//! The one place where the worker starts tasks of its own, and the jitter of their waits.

use std::{future::Future, time::Duration};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Starts a task. Whoever starts one bounds how many there are, and how long each lasts.
#[expect(clippy::disallowed_methods, reason = "the one place where the worker starts tasks")]
pub(crate) fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}

/// The wait before try `attempt` (from 0): doubling from `first` up to `longest`, of which half is drawn by lot, so that many who
/// lost the same peer do not return to it at once.
pub(crate) fn backoff(attempt: u32, first: Duration, longest: Duration) -> Duration {
    let full = first.saturating_mul(2_u32.saturating_pow(attempt.min(16))).min(longest);
    let half_ms = u64::try_from(full.as_millis() / 2).unwrap_or(u64::MAX);
    let (lot, _) = Uuid::new_v4().as_u64_pair();
    Duration::from_millis(half_ms + lot % (half_ms + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_stay_within_bounds() {
        let (first, longest) = (Duration::from_millis(200), Duration::from_secs(2));
        for attempt in 0..40 {
            let full = first.saturating_mul(2_u32.pow(attempt.min(16))).min(longest);
            let wait = backoff(attempt, first, longest);
            assert!(wait >= full / 2 && wait <= full, "try {attempt}: {wait:?} of {full:?}");
        }
    }
}
