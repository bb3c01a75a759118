//! Which turns have news: told by whoever stores it, heard by whoever follows a turn, here and in every other server.
//!
//! News only wakes; what happened is read from the rows. So nothing is lost with a piece of news that is.

use super::Conversations;
use crate::db::news::News;
use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, broadcast};
use uuid::Uuid;

/// News of how many turns a slow follower may be behind; beyond it, it looks whatever the news is.
const BACKLOG: usize = 1024;
/// How long news is gathered before other servers are told of it: a person does not see it, and the database is asked less often.
const GATHER: Duration = Duration::from_millis(20);
/// The wait before listening again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// News of turns in this process.
pub(crate) struct Hub {
    heard: broadcast::Sender<Uuid>,
    untold: Mutex<HashSet<Uuid>>,
    wake: Notify,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            heard: broadcast::Sender::new(BACKLOG),
            untold: Mutex::new(HashSet::new()),
            wake: Notify::new(),
        }
    }

    /// Something of a turn was stored here.
    pub(crate) fn stored(&self, turn: Uuid) {
        // nobody may be following
        let _ = self.heard.send(turn);
        self.untold.lock().unwrap_or_else(PoisonError::into_inner).insert(turn);
        self.wake.notify_one();
    }

    /// The news from now on.
    pub(crate) fn follow(&self) -> broadcast::Receiver<Uuid> {
        self.heard.subscribe()
    }

    /// Tells the other servers, for as long as it is polled.
    pub(crate) async fn tell_others(&self, conversations: &Conversations) {
        loop {
            self.wake.notified().await;
            tokio::time::sleep(GATHER).await;
            let untold = std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner));
            let turns: Vec<Uuid> = untold.into_iter().collect();
            if let Err(error) = conversations.tell(&turns).await {
                // whoever follows looks again by itself
                tracing::warn!(%error, "other servers could not be told of news");
            }
        }
    }

    /// Hears the other servers, for as long as it is polled.
    pub(crate) async fn hear_others(&self, conversations: &Conversations) {
        loop {
            let ended = match News::listen(conversations.database()).await {
                Ok(mut news) => loop {
                    match news.next().await {
                        Ok(turns) => turns.into_iter().for_each(|turn| drop(self.heard.send(turn))),
                        Err(error) => break error,
                    }
                },
                Err(error) => error,
            };
            tracing::warn!(error = %ended, "news of other servers is not heard; listening again");
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }
}
