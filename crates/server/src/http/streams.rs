//! How many streams of events there may be, of one account and of all. A stream keeps its connection for as long as its turn takes; the
//! others are for requests that are answered at once, and for whoever asks whether the process lives.

use super::{Problem, connections::MAX_CONNECTIONS};
use axum::http::StatusCode;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The most of one account: a window each, on a few devices, and those that have gone and of which nobody knows yet.
const MAX_OF_ONE: usize = 16;
/// The most of all.
const MAX_OF_ALL: usize = MAX_CONNECTIONS / 4 * 3;
/// When to come again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The open streams.
#[derive(Default)]
pub(crate) struct Streams(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// By address of the account, in small letters.
    of: HashMap<String, usize>,
    all: usize,
}

/// One open stream; given up when it is dropped, however it ends.
pub(super) struct OpenStream {
    streams: Arc<Streams>,
    account: String,
}

impl Streams {
    /// Takes the place of one more.
    pub(super) fn open(self: &Arc<Self>, email: &str) -> Result<OpenStream, Problem> {
        let account = email.to_ascii_lowercase();
        let mut counts = self.lock();
        if counts.all >= MAX_OF_ALL {
            let detail = "There are too many streams of events at the moment. Please try again.";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(RETRY_AFTER));
        }
        let own = counts.of.entry(account.clone()).or_default();
        if *own >= MAX_OF_ONE {
            let detail = format!(
                "You follow {MAX_OF_ONE} streams of events, and there may be no more at once. Close one of them."
            );
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(RETRY_AFTER));
        }
        *own += 1;
        counts.all += 1;
        drop(counts);
        Ok(OpenStream {
            streams: Arc::clone(self),
            account,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut counts = self.streams.lock();
        counts.all = counts.all.saturating_sub(1);
        if let Some(own) = counts.of.get_mut(&self.account) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                counts.of.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_has_a_few_and_leaves_the_others_theirs() {
        let streams = Arc::new(Streams::default());
        let mut of_one: Vec<_> = (0..MAX_OF_ONE)
            .map(|_| streams.open("Head@Hilltop.example").ok().unwrap())
            .collect();
        assert!(streams.open("head@hilltop.EXAMPLE").is_err(), "it is the same account");
        assert!(streams.open("other@hilltop.example").is_ok());
        of_one.pop();
        let again = streams.open("head@hilltop.example");
        assert!(again.is_ok() && streams.open("head@hilltop.example").is_err());
        drop((of_one, again));
        let counts = streams.lock();
        assert!(counts.of.is_empty() && counts.all == 0);
    }

    #[test]
    fn all_together_leave_room_for_short_requests() {
        let streams = Arc::new(Streams::default());
        let open = |number: usize| streams.open(&format!("{number}@hilltop.example"));
        let all: Vec<_> = (0..MAX_OF_ALL).map(|number| open(number).ok().unwrap()).collect();
        assert!(all.len() < MAX_CONNECTIONS && open(MAX_OF_ALL).is_err());
        drop(all);
        assert!(open(MAX_OF_ALL).is_ok());
    }
}
