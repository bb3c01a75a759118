//! A guard before the client library: properties of a message that the library cannot read never reach it.
//!
//! AMQP's texts and tables are bytes that the broker hands on as a sender wrote them. lapin ends the connection at a text that is not
//! UTF-8, and its parser descends into nested tables until the stack ends, and the process with it. Either way the message stays
//! unacked, comes again, and does it again: one packet would stop every process that takes it for good. So the stream between lapin and
//! the broker is read here first, and readable properties are put in the place of such ones, with [`UNREADABLE_HEADER`] among them;
//! the message is then rejected like any other malformed one. The server and the worker connect through [`connect`]; which messages
//! there are, nothing here knows.

mod frames;

use self::frames::Frames;
use async_rs::{
    Runtime, Tokio,
    traits::{Executor, Reactor, RuntimeKit},
    util::Task,
};
use futures_util::{
    Stream,
    io::{AsyncRead, AsyncWrite},
};
use lapin::{Connect, Connection, ConnectionProperties, tcp::OwnedTLSConfig};
use std::{
    future::Future,
    io::{self, IoSlice, Read, Write},
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd},
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

/// How much is read at once: a frame of the usual largest size.
const READ_BYTES: usize = 128 * 1024;

/// Header in the place of properties that could not be read. Who sets it otherwise rejects only their own message.
pub const UNREADABLE_HEADER: &str = "x-unreadable-properties";

/// Connects to the broker behind the guard.
///
/// # Errors
///
/// As lapin's own [`Connection::connect`].
///
/// # Panics
///
/// Outside a runtime of tokio.
pub async fn connect(address: impl Connect, properties: ConnectionProperties) -> Result<Connection, lapin::Error> {
    let runtime = Runtime::new(Guarded(Tokio::current()));
    address
        .connect_with_config(properties, OwnedTLSConfig::default(), runtime)
        .await
}

/// Tokio, but for the streams that it connects.
#[derive(Debug, Clone)]
struct Guarded(Tokio);

impl RuntimeKit for Guarded {}

impl Executor for Guarded {
    type Task<T: Send + 'static> = <Tokio as Executor>::Task<T>;

    fn block_on<T, F: Future<Output = T>>(&self, future: F) -> T {
        self.0.block_on(future)
    }

    fn spawn<T: Send + 'static, F: Future<Output = T> + Send + 'static>(&self, future: F) -> Task<Self::Task<T>> {
        self.0.spawn(future)
    }

    fn spawn_blocking<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(&self, work: F) -> Task<Self::Task<T>> {
        self.0.spawn_blocking(work)
    }
}

impl Reactor for Guarded {
    type TcpStream = Guard<<Tokio as Reactor>::TcpStream>;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Read + Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.0.register(socket)
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.0.sleep(duration)
    }

    fn interval(&self, duration: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(duration)
    }

    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        let connecting = self.0.tcp_connect_addr(address);
        async move { Ok(Guard::new(connecting.await?)) }
    }
}

/// A stream whose incoming frames are looked at before they are handed on.
struct Guard<S> {
    stream: S,
    read: Box<[u8]>,
    frames: Frames,
}

impl<S> Guard<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            read: vec![0; READ_BYTES].into(),
            frames: Frames::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        let Self { stream, read, frames } = self.get_mut();
        loop {
            let handed_on = frames.hand_on(out);
            if handed_on > 0 || out.is_empty() {
                return Poll::Ready(Ok(handed_on));
            }
            let size = ready!(Pin::new(&mut *stream).poll_read(context, read))?;
            if size == 0 {
                return Poll::Ready(Ok(0));
            }
            frames.take_in(read.get(..size).unwrap_or_default())?;
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_close(context)
    }
}
