//! The one place that reads the clock.

use chrono::{DateTime, Utc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Now.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Milliseconds since 1970, now.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The moment that is `wait` from now, in milliseconds since 1970.
pub(crate) fn deadline_in(wait: Duration) -> i64 {
    now_ms().saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

/// What is left until a moment in milliseconds since 1970; `None` once it has come.
pub(crate) fn left_until(deadline_ms: i64) -> Option<Duration> {
    u64::try_from(deadline_ms.saturating_sub(now_ms()))
        .ok()
        .filter(|ms| *ms > 0)
        .map(Duration::from_millis)
}
