//! Where a turn tells what happens in it, as it happens, and has kept what it goes on from.

use contract::turn::{JournalEntry, TurnEvent};
use futures_util::future::{BoxFuture, FutureExt as _, ready};

/// Whoever wants to know what happens in a turn, and keeps what it needs to go on. What is told and what is kept stay in
/// one order.
pub trait Reporter: Send + Sync {
    /// Takes the next event. Never waits: a turn does not stand still because nobody listens.
    fn event(&self, event: TurnEvent);

    /// Takes what is to be kept. Never waits.
    fn keep(&self, entry: JournalEntry);

    /// Resolves when all that was told and given to be kept before is stored, and the turn may go on.
    fn all_taken(&self) -> BoxFuture<'_, ()>;
}

/// For a turn of which only the answer is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Unreported;

impl Reporter for Unreported {
    fn event(&self, _event: TurnEvent) {}

    fn keep(&self, _entry: JournalEntry) {}

    fn all_taken(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

/// Remembers what it is told.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Collected(std::sync::Mutex<(Vec<TurnEvent>, Vec<JournalEntry>)>);

#[cfg(test)]
impl Collected {
    pub(crate) fn events(&self) -> Vec<TurnEvent> {
        self.0.lock().unwrap().0.clone()
    }

    pub(crate) fn kept(&self) -> Vec<JournalEntry> {
        self.0.lock().unwrap().1.clone()
    }
}

#[cfg(test)]
impl Reporter for Collected {
    fn event(&self, event: TurnEvent) {
        self.0.lock().unwrap().0.push(event);
    }

    fn keep(&self, entry: JournalEntry) {
        self.0.lock().unwrap().1.push(entry);
    }

    fn all_taken(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}
