//! The word to stop a turn.

use tokio::sync::watch;

/// Why a turn is to stop before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Somebody asked for it.
    Cancelled,
    /// The school's tokens for the day are used up.
    OverBudget,
}

/// Tells a turn when it is to stop.
#[derive(Debug, Clone)]
pub struct Cancellation(watch::Receiver<Option<Stop>>);

impl Cancellation {
    /// For a turn that nobody stops.
    #[must_use]
    pub fn never() -> Self {
        Self(watch::Sender::new(None).subscribe())
    }

    /// Stops the turn when there is a reason. When its sender goes first, nobody does.
    #[must_use]
    pub const fn when(stopped: watch::Receiver<Option<Stop>>) -> Self {
        Self(stopped)
    }

    /// Resolves when the turn is to stop, with the reason.
    pub(crate) async fn stopped(mut self) -> Stop {
        let reason = self.0.wait_for(Option::is_some).await.ok().and_then(|reason| *reason);
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}
