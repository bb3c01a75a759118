//! Keeps the worker connected to the broker.
//!
//! A lost connection is given up whole, and a new one made with everything on it. lapin's own recovery is left off: it opens a
//! recovered channel for publishing before the reply consumer is back on it, and a request published in between
//! (which is when `wait_for_recovery` returns) closes the channel for good, as "fast reply consumer does not exist". It also keeps the
//! confirmations of a lost connection open until the next one, and a consumer that nobody reads any more may come back with it.

use super::{
    declare,
    pending::{Pending, Signal},
};
use crate::tasks::{backoff, spawn};
use contract::{envelope::DIRECT_REPLY_TO, topology::Topology};
use futures_util::StreamExt as _;
use lapin::{
    Channel, Connection, ConnectionProperties, Consumer, Event,
    options::{BasicConsumeOptions, ConfirmSelectOptions},
    types::FieldTable,
    uri::AMQPUri,
};
use std::{future::Future, pin::pin, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// How long the broker may take for a handshake; lapin waits for ever for a peer that says nothing.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long the broker may take to declare, open, consume or close.
const OPERATION_LIMIT: Duration = Duration::from_secs(5);
/// How often both sides prove that they are there: a broker that fell silent is noticed in twice this time.
const HEARTBEAT_SECONDS: u16 = 10;
/// The wait before the second try to connect, doubled for each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait between tries: consuming again within five seconds of the broker's return leaves no more.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Why the broker could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the broker took too long to {0}")]
    TooSlow(&'static str),
    #[error("the broker did not {0}: {1}")]
    Failed(&'static str, #[source] lapin::Error),
}

/// Does something at the broker within [`OPERATION_LIMIT`].
pub(super) async fn within<T>(
    what: &'static str,
    operation: impl Future<Output = lapin::Result<T>>,
) -> Result<T, LinkError> {
    limited(OPERATION_LIMIT, what, operation).await
}

/// Does something at the broker within a time of its own.
pub(super) async fn limited<T>(
    limit: Duration,
    what: &'static str,
    operation: impl Future<Output = lapin::Result<T>>,
) -> Result<T, LinkError> {
    match timeout(limit, operation).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(LinkError::Failed(what, error)),
        Err(_) => Err(LinkError::TooSlow(what)),
    }
}

/// One connection, from its handshake to its loss.
pub(super) struct Session {
    number: u64,
    connection: Connection,
    /// In confirm mode, with the reply consumer on it: replies come only to the channel that published.
    tools: Channel,
    alive: watch::Sender<bool>,
}

impl Session {
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) const fn tools(&self) -> &Channel {
        &self.tools
    }

    /// Whether the broker takes no messages now. One that is published all the same would be delivered whenever it does again.
    pub(super) fn is_blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    /// Resolves when the connection is lost.
    pub(super) async fn ended(&self) {
        // The sender lives as long as `self`, so that this can only end by the value.
        let _ = self.alive.subscribe().wait_for(|alive| !alive).await;
    }
}

/// The connection, whichever it is now.
pub(super) struct Link {
    sessions: watch::Receiver<Option<Arc<Session>>>,
    stop: watch::Sender<bool>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Link {
    /// Starts to connect, and to hand the replies that come to those who wait for them.
    pub(super) fn start(mut address: AMQPUri, topology: Arc<Topology>, pending: Arc<Pending>) -> Self {
        address.query.heartbeat.get_or_insert(HEARTBEAT_SECONDS);
        let (sessions_sender, sessions) = watch::channel(None);
        let (stop, stopped) = watch::channel(false);
        let keeper = spawn(keep((address, topology), pending, sessions_sender, stopped));
        Self {
            sessions,
            stop,
            keeper: Mutex::new(Some(keeper)),
        }
    }

    /// The connection that is open now or next, and is not the one with this number.
    pub(super) async fn session_after(&self, last: Option<u64>) -> Arc<Session> {
        let mut sessions = self.sessions.clone();
        loop {
            let open = sessions.borrow_and_update().clone();
            match open {
                Some(session) if Some(session.number) != last => return session,
                _ if sessions.changed().await.is_err() => std::future::pending().await,
                _ => {}
            }
        }
    }

    /// Closes the connection and stops to make new ones.
    pub(super) async fn close(&self) {
        self.stop.send_replace(true);
        if let Some(keeper) = self.keeper.lock().await.take()
            && timeout(OPERATION_LIMIT, keeper).await.is_err()
        {
            tracing::warn!("the connection to the broker was not closed in time");
        }
    }
}

/// Connects, serves, and connects again, until told to stop or nobody holds the link any more.
async fn keep(
    (address, topology): (AMQPUri, Arc<Topology>),
    pending: Arc<Pending>,
    sessions: watch::Sender<Option<Arc<Session>>>,
    mut stopped: watch::Receiver<bool>,
) {
    let (mut number, mut failures) = (0, 0);
    loop {
        number += 1;
        let attempt = async {
            match open(&address, &topology, number).await {
                Ok((session, replies)) => {
                    tracing::info!("connected to the broker");
                    failures = 0;
                    sessions.send_replace(Some(session));
                    serve(&sessions, replies, &pending).await;
                }
                Err(error) => tracing::warn!(%error, "no connection to the broker"),
            }
        };
        let told = until_told(&mut stopped, attempt).await;
        if let Some(session) = sessions.send_replace(None) {
            session.alive.send_replace(false);
            end(&session).await;
        }
        let wait = sleep(backoff(failures, FIRST_WAIT, LONGEST_WAIT));
        failures += 1;
        if told.is_none() || until_told(&mut stopped, wait).await.is_none() {
            return;
        }
    }
}

/// What comes of something; none when the link is told to stop first, or nobody is left to tell it.
async fn until_told<T>(stopped: &mut watch::Receiver<bool>, something: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        result = something => Some(result),
        _ = stopped.wait_for(|stop| *stop) => None,
    }
}

/// Connects under a name that the broker's operators see.
pub(super) async fn connect(address: &AMQPUri, name: &'static str) -> Result<Connection, LinkError> {
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    let connecting = broker_guard::connect(address.clone(), properties);
    limited(CONNECT_LIMIT, "answer", connecting).await
}

async fn open(address: &AMQPUri, topology: &Topology, number: u64) -> Result<(Arc<Session>, Consumer), LinkError> {
    let connection = connect(address, "worker").await?;
    if let Err(error) = declare::tools_exchange(&connection, topology).await {
        // It may be there with other properties; then requests still find it.
        tracing::warn!(%error, "the exchange for tool calls is not as it should be");
    }
    let (tools, replies) = within("open the channel for tool calls", async {
        let tools = connection.create_channel().await?;
        tools.confirm_select(ConfirmSelectOptions::default()).await?;
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let replies = tools
            .basic_consume(DIRECT_REPLY_TO.into(), "".into(), options, FieldTable::default())
            .await?;
        Ok((tools, replies))
    })
    .await?;
    Ok((
        Arc::new(Session {
            number,
            connection,
            tools,
            alive: watch::Sender::new(true),
        }),
        replies,
    ))
}

/// Hands out replies until their consumer ends, which it does with its channel and with the connection.
async fn serve(sessions: &watch::Sender<Option<Arc<Session>>>, mut replies: Consumer, pending: &Pending) {
    let Some(events) = sessions
        .borrow()
        .as_ref()
        .map(|session| session.connection.events_listener())
    else {
        return;
    };
    // The one listener: listeners take events from each other.
    let mut events = pin!(events);
    loop {
        tokio::select! {
            reply = replies.next() => match reply {
                Some(Ok(reply)) => {
                    if let Some(id) = reply.properties.correlation_id() {
                        pending.settle(id.as_str(), Signal::Reply(reply.data));
                    }
                }
                Some(Err(error)) => return tracing::warn!(%error, "lost the connection to the broker"),
                None => return tracing::warn!("the broker ended the consumer of replies"),
            },
            Some(event) = events.next() => log(event),
        }
    }
}

fn log(event: Event) {
    if let Event::ConnectionBlocked(reason) = event {
        tracing::warn!(reason, "the broker takes no messages");
    } else if let Event::ConnectionUnblocked = event {
        tracing::info!("the broker takes messages again");
    }
}

/// Closes what may still be open of a connection, so that the broker takes back what it has delivered to it.
async fn end(session: &Session) {
    if let Err(error) = within("close", session.connection.close(200, "done".into())).await {
        tracing::debug!(%error, "the connection was gone already");
    }
}
