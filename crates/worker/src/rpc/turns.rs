//! Takes turns from their queue, has them run, answers and acknowledges them; `attend` is one of them.
//!
//! A turn is acknowledged after its end is in the server's books, or its answer was handed to the broker. If the
//! connection goes first, the turns under way are dropped here and delivered again, to this worker or another; the broker
//! counts how often. A turn that is kept goes on then where it stopped. Another is not run again but answered: nothing is
//! kept of how far it came, the model would make its calls under new ids, and what was written could be written twice. What
//! cannot be read is answered with an error where there is a reply address, and is
//! always copied to the dead turns with the reason, without its grant.

use super::{
    answers::Answers,
    attend::{Attendant, Attended},
    books::Books,
    cancels::Cancels,
    declare,
    link::{Link, LinkError, Session, within},
    outgoing::Outgoing,
    pending::Pending,
};
use crate::{tasks::backoff, turn::TurnRunner};
use contract::topology::Topology;
use futures_util::{FutureExt as _, StreamExt as _};
use lapin::{
    Channel, Connection, Consumer,
    options::{
        BasicCancelOptions, BasicConsumeOptions, BasicQosOptions, ConfirmSelectOptions, QueueBindOptions,
        QueueDeclareOptions,
    },
    types::FieldTable,
};
use std::{future::Future, pin::pin, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

/// How long turns under way may take to end after the worker was told to stop. Those that do not are delivered again
/// elsewhere, and go on there; those that are not kept are answered as interrupted.
pub const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// The wait before turns are taken again on a connection that could not be used, doubled for each further time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Where turns are taken and answered, on one connection.
struct Desk {
    books: Books,
    turns: Tray,
    /// Words to stop a turn.
    cancels: Tray,
    outgoing: Outgoing,
}

/// A channel and what is delivered on it.
struct Tray {
    channel: Channel,
    consumer: Consumer,
}

impl Desk {
    /// Closes in order: lapin takes a channel that is dropped while its connection closes for a fault of the
    /// connection.
    async fn close(self) {
        for channel in [self.turns.channel, self.cancels.channel, self.outgoing.into_channel()] {
            if let Err(error) = within("close a channel", channel.close(200, "done".into())).await {
                tracing::debug!(%error, "a channel was gone already");
            }
        }
    }
}

/// Where turns are taken, and how many at once.
#[derive(Clone, Copy)]
pub(super) struct Post<'a> {
    pub(super) link: &'a Link,
    pub(super) answers: &'a Arc<Answers>,
    pub(super) pending: &'a Arc<Pending>,
    pub(super) topology: &'a Arc<Topology>,
    pub(super) concurrency: u16,
}

/// Takes turns until `shutdown` resolves.
pub(super) async fn take_turns(
    post: Post<'_>,
    runner: Arc<TurnRunner>,
    shutdown: impl Future<Output = ()>,
    ready: impl FnOnce(),
) {
    let mut shutdown = pin!(shutdown.fuse());
    // Outlives each connection, as does what a server has said.
    let cancels = Arc::new(Cancels::default());
    let mut ready = Some(ready);
    let mut failures = 0;
    loop {
        let opened = tokio::select! {
            opened = async { open(post.link.session_after(None).await, post).await } => opened,
            () = &mut shutdown => return,
        };
        match opened {
            Ok(desk) => {
                failures = 0;
                tracing::info!(concurrency = post.concurrency, "taking turns");
                if let Some(ready) = ready.take() {
                    ready();
                }
                let attendant = Attendant {
                    runner: runner.clone(),
                    cancels: cancels.clone(),
                    outgoing: desk.outgoing.clone(),
                    books: desk.books.clone(),
                    answers: post.answers.clone(),
                    topology: post.topology.clone(),
                };
                if let Ended::ToldToStop = attend_all(desk, attendant, &mut shutdown).await {
                    return;
                }
            }
            Err(error) => tracing::warn!(%error, "no turns can be taken"),
        }
        tokio::select! {
            () = sleep(backoff(failures, FIRST_WAIT, LONGEST_WAIT)) => failures += 1,
            () = &mut shutdown => return,
        }
    }
}

async fn open(session: Arc<Session>, post: Post<'_>) -> Result<Desk, LinkError> {
    let books = Books {
        session: session.clone(),
        pending: post.pending.clone(),
        queue: post.topology.reports_queue.as_str().into(),
    };
    let connection = session.connection();
    declare::turn_queues(connection, post.topology).await?;
    declare::report_queues(connection, post.topology).await?;
    declare::cancel_exchange(connection, post.topology).await?;
    // Before the turns: a word about one must not be missed that is taken already.
    let cancels = open_cancels(connection, &post.topology.cancel_exchange).await?;
    within("open the channels for turns", async {
        let outgoing = connection.create_channel().await?;
        outgoing.confirm_select(ConfirmSelectOptions::default()).await?;
        let turns = connection.create_channel().await?;
        turns.basic_qos(post.concurrency, BasicQosOptions::default()).await?;
        let queue = post.topology.turns_queue.as_str();
        let options = BasicConsumeOptions::default();
        let consumer = turns
            .basic_consume(queue.into(), "".into(), options, FieldTable::default())
            .await?;
        Ok(Desk {
            books,
            turns: Tray {
                channel: turns,
                consumer,
            },
            cancels,
            outgoing: Outgoing::over(outgoing),
        })
    })
    .await
}

/// A queue of this worker's own at the exchange for cancels, which goes with the connection.
async fn open_cancels(connection: &Connection, exchange: &str) -> Result<Tray, LinkError> {
    within("open the channel for cancels", async {
        let channel = connection.create_channel().await?;
        let own = QueueDeclareOptions {
            exclusive: true,
            auto_delete: true,
            ..QueueDeclareOptions::default()
        };
        let queue = channel.queue_declare("".into(), own, FieldTable::default()).await?;
        let (bind, none) = (QueueBindOptions::default(), FieldTable::default());
        channel
            .queue_bind(queue.name().clone(), exchange.into(), "".into(), bind, none)
            .await?;
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let consumer = channel
            .basic_consume(queue.name().clone(), "".into(), options, FieldTable::default())
            .await?;
        Ok(Tray { channel, consumer })
    })
    .await
}

/// Why a desk was left.
enum Ended {
    ToldToStop,
    Broken,
}

/// Attends to what is delivered to one desk. The broker's prefetch bounds how much that is at once.
async fn attend_all(mut desk: Desk, attendant: Attendant, mut shutdown: impl Future<Output = ()> + Unpin) -> Ended {
    let mut at_work = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut shutdown => {
                drain(&desk, at_work).await;
                desk.close().await;
                return Ended::ToldToStop;
            }
            word = desk.cancels.consumer.next() => if let Some(Ok(word)) = word {
                attendant.cancels.take(&word.data);
            } else {
                tracing::warn!(at_work = at_work.len(), "the words to stop a turn are no longer delivered");
                return Ended::Broken;
            },
            delivery = desk.turns.consumer.next() => match delivery {
                Some(Ok(delivery)) => {
                    at_work.spawn(attendant.clone().attend(delivery));
                }
                // With the set, the turns under way are dropped: nobody could be told of their end.
                Some(Err(error)) => {
                    tracing::warn!(%error, at_work = at_work.len(), "turns are no longer delivered");
                    return Ended::Broken;
                }
                None => {
                    tracing::warn!(at_work = at_work.len(), "the broker ended the consumer of turns");
                    return Ended::Broken;
                }
            },
            Some(attended) = at_work.join_next() => if !matches!(attended, Ok(Attended::Done)) {
                tracing::warn!("a turn could not be answered or acknowledged");
                return Ended::Broken;
            },
        }
    }
}

/// Takes no more turns, and waits for those under way.
async fn drain(desk: &Desk, mut at_work: JoinSet<Attended>) {
    let all_done = async {
        let tag = desk.turns.consumer.tag();
        if let Err(error) = desk
            .turns
            .channel
            .basic_cancel(tag, BasicCancelOptions::default())
            .await
        {
            tracing::debug!(%error, "the consumer of turns was gone already");
        }
        while at_work.join_next().await.is_some() {}
    };
    if timeout(DRAIN_LIMIT, all_done).await.is_err() {
        tracing::warn!(
            left = at_work.len(),
            "stopping with turns under way; they are delivered again elsewhere"
        );
    }
}
