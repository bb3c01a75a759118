//! Reports what happens in a turn to the server's books, in order, each report taken before the next is sent.

use super::{books::Books, cancels::UnderWay, outbox::Outbox};
use crate::{clock, turn::Stop};
use contract::turn::{ReportTaken, TurnEvent, TurnMessage, TurnReport};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

/// The least time between reports that hold text only: what a model writes meanwhile goes into one.
const TEXT_PACE: Duration = Duration::from_millis(40);
/// How long after a turn's deadline its reports are still sent. A server that comes back later ends the turn by itself.
const GRACE: Duration = Duration::from_mins(1);

/// The reports of one run of a turn.
pub(super) struct Reports {
    books: Books,
    turn_id: Uuid,
    grant: String,
    claimed: Claimed,
    /// The place of the next event.
    next: u32,
    until_ms: i64,
}

/// A run that was given its turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claimed {
    pub(super) run: Uuid,
    /// Which attempt at the turn it is.
    pub(super) attempt: u32,
}

/// What came of the reports of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reported {
    /// All were taken, the last one as well.
    Taken,
    /// The turn is no longer this run's.
    Superseded,
    /// They were not taken in their time.
    NotTaken,
}

impl Reports {
    pub(super) fn of(message: &TurnMessage, claimed: Claimed, books: Books) -> Self {
        let grace_ms = i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX);
        Self {
            books,
            turn_id: message.turn_id,
            grant: message.grant.clone(),
            claimed,
            next: 1,
            until_ms: message
                .deadline_ms
                .saturating_add(grace_ms)
                .max(clock::deadline_in(GRACE)),
        }
    }

    /// Sends what comes into the outbox, until the run's end is taken. Passes on what the server says about it: the run is
    /// stopped before it learns that what it told was taken. A hint that it is to stop makes it ask at once, whether or not there is
    /// anything to report.
    pub(super) async fn send_all(mut self, outbox: &Outbox, run: &UnderWay) -> Reported {
        let mut paced = Instant::now();
        loop {
            tokio::select! {
                () = async {
                    run.hinted().await;
                    // whoever says it all the time is not asked for all the time
                    sleep_until(paced).await;
                } => {}
                () = async {
                    outbox.filled().await;
                    tokio::select! {
                        () = sleep_until(paced) => {}
                        () = outbox.urgent() => {}
                    }
                } => {}
            }
            let batch = outbox.take();
            let is_end = matches!(
                batch.events.last(),
                Some(TurnEvent::Ended { .. } | TurnEvent::Waiting {})
            );
            let report = TurnReport {
                turn_id: self.turn_id,
                grant: self.grant.clone(),
                attempt: self.claimed.attempt,
                run: Some(self.claimed.run),
                first: self.next,
                events: batch.events,
                journal: batch.journal,
            };
            let events = u32::try_from(report.events.len()).unwrap_or(u32::MAX);
            match self.books.report(report, self.until_ms).await {
                Some(ReportTaken::GoOn) => {}
                Some(ReportTaken::Cancelled) => run.stop(Stop::Cancelled),
                Some(ReportTaken::OverBudget) => run.stop(Stop::OverBudget),
                Some(ReportTaken::Superseded) => return Reported::Superseded,
                None => return Reported::NotTaken,
            }
            self.next = self.next.saturating_add(events);
            outbox.was_taken(batch.items);
            if is_end {
                return Reported::Taken;
            }
            paced = Instant::now() + TEXT_PACE;
        }
    }
}
