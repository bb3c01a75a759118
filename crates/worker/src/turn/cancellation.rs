//! The word to stop a turn.

use tokio::sync::watch;

/// Tells a turn when somebody stops it.
#[derive(Debug, Clone)]
pub struct Cancellation(watch::Receiver<bool>);

impl Cancellation {
    /// For a turn that nobody stops.
    #[must_use]
    pub fn never() -> Self {
        Self(watch::Sender::new(false).subscribe())
    }

    /// Stops the turn when the value becomes true. When its sender goes first, nobody does.
    #[must_use]
    pub const fn when(stopped: watch::Receiver<bool>) -> Self {
        Self(stopped)
    }

    /// Resolves when the turn is to stop.
    pub(crate) async fn stopped(mut self) {
        if self.0.wait_for(|stopped| *stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
