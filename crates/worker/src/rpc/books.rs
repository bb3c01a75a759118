//! The server's books of turns: a claim or a report goes there, and what the server says to it comes back.
//!
//! A message is sent until there is a reply, since the server stores each once; and the next only after that.

use super::{
    Sent, confirmed,
    link::Session,
    pending::{Pending, Signal},
    properties,
};
use crate::{clock, tasks::spawn};
use contract::turn::{ReportTaken, ToTheBooks, TurnClaim, TurnClaimed, TurnReport};
use lapin::options::BasicPublishOptions;
use serde::de::DeserializeOwned;
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{sleep, timeout},
};
use uuid::Uuid;

/// How long a reply is waited for before the message is sent again, doubled for each further time.
const FIRST_WAIT: Duration = Duration::from_secs(3);
/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// The way to the books, over the connection by which the turns come: when it is lost, so are they.
#[derive(Clone)]
pub(super) struct Books {
    pub(super) session: Arc<Session>,
    pub(super) pending: Arc<Pending>,
    pub(super) queue: Arc<str>,
}

impl Books {
    /// Asks for the right to run a turn; no answer where there is none until that moment.
    pub(super) async fn claim(&self, claim: TurnClaim, until_ms: i64) -> Option<TurnClaimed> {
        self.ask(&ToTheBooks::Claim(claim), until_ms).await
    }

    /// Reports what happened; no answer where there is none until that moment.
    pub(super) async fn report(&self, report: TurnReport, until_ms: i64) -> Option<ReportTaken> {
        self.ask(&ToTheBooks::Report(report), until_ms).await
    }

    async fn ask<R: DeserializeOwned>(&self, message: &ToTheBooks, until_ms: i64) -> Option<R> {
        let body: Arc<[u8]> = serde_json::to_vec(message)
            .expect("it is made of JSON values, texts and ids")
            .into();
        let mut wait = FIRST_WAIT;
        loop {
            let left = clock::left_until(until_ms);
            if left.is_zero() {
                return None;
            }
            let (waiting, signal) = self.pending.wait_for(Uuid::new_v4().to_string());
            let replied = timeout(left, self.reply(&body, &waiting.correlation(), signal, &mut wait)).await;
            match replied {
                Ok(Some(reply)) => match serde_json::from_slice(&reply) {
                    Ok(reply) => return Some(reply),
                    Err(error) => tracing::error!(kind = ?error.classify(), "a reply of the books that cannot be read"),
                },
                Ok(None) => tracing::warn!("nobody keeps the books of turns yet"),
                Err(_) => return None,
            }
            sleep(wait.min(clock::left_until(until_ms))).await;
        }
    }

    /// Sends one message until there is a reply to any of its copies; none when it came back.
    async fn reply(
        &self,
        body: &Arc<[u8]>,
        correlation: &Arc<str>,
        signal: oneshot::Receiver<Signal>,
        wait: &mut Duration,
    ) -> Option<Vec<u8>> {
        let mut signal = pin!(signal);
        let mut sending = self.send(body.clone(), correlation.clone());
        loop {
            match timeout(*wait, &mut signal).await {
                Ok(Ok(Signal::Reply(reply))) => return Some(reply),
                Ok(Ok(Signal::Unroutable) | Err(_)) => return None,
                // A broker that has not taken the last copy needs no other.
                Err(_) if sending.is_finished() => {
                    tracing::warn!("the books of turns do not reply; it is sent again");
                    sending = self.send(body.clone(), correlation.clone());
                }
                Err(_) => {}
            }
            *wait = wait.saturating_mul(2).min(LONGEST_WAIT);
        }
    }

    /// Publishes in a task of its own, as tool calls are.
    fn send(&self, body: Arc<[u8]>, correlation: Arc<str>) -> JoinHandle<Sent> {
        let channel = self.session.tools().clone();
        let (queue, pending) = (self.queue.clone(), self.pending.clone());
        spawn(async move {
            let options = BasicPublishOptions {
                mandatory: true,
                ..BasicPublishOptions::default()
            };
            let properties = properties::to_the_books(&correlation);
            let published = channel
                .basic_publish("".into(), (&*queue).into(), options, &body, properties)
                .await;
            confirmed(published, &queue, &pending).await
        })
    }
}
