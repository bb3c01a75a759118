//! Points at which a test can stop a call. Without the feature `test-hooks`, which only the tests turn on, they are nothing.

/// After a write's commit, before its reply: where a killed server has done what its caller does not know.
#[cfg(not(feature = "test-hooks"))]
pub(crate) async fn between_effect_and_reply() {}

#[cfg(feature = "test-hooks")]
pub(crate) use pause::between_effect_and_reply;
#[cfg(feature = "test-hooks")]
pub use pause::pause_between_effect_and_reply;

#[cfg(feature = "test-hooks")]
mod pause {
    use std::{
        sync::atomic::{AtomicU64, Ordering},
        time::Duration,
    };

    static PAUSE_MS: AtomicU64 = AtomicU64::new(0);

    /// Makes every write of this process wait between its commit and its reply, so that a kill finds some there.
    pub fn pause_between_effect_and_reply(pause: Duration) {
        PAUSE_MS.store(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) async fn between_effect_and_reply() {
        let ms = PAUSE_MS.load(Ordering::Relaxed);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
}
