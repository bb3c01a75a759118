//! The one place where the worker reads the clock.

use chrono::{DateTime, Utc};
use std::time::Duration;

/// This moment.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the worker reads the clock"
)]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// The moment that is `wait` from now, in milliseconds since 1970.
pub(crate) fn deadline_in(wait: Duration) -> i64 {
    now()
        .timestamp_millis()
        .saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

/// What is left until a moment in milliseconds since 1970; nothing once it has passed.
pub(crate) fn left_until(deadline_ms: i64) -> Duration {
    let left_ms = deadline_ms.saturating_sub(now().timestamp_millis());
    Duration::from_millis(u64::try_from(left_ms).unwrap_or(0))
}
