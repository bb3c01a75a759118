//! The log of a runtime's threads, kept in memory at the finest level.

use std::{
    cell::RefCell,
    io,
    sync::{Arc, Mutex},
};
use tokio::runtime::{Builder, Runtime};
use tracing::{
    Dispatch,
    dispatcher::{DefaultGuard, set_default},
    level_filters::LevelFilter,
};

/// What was logged and not yet taken.
#[derive(Clone)]
pub(super) struct Logs {
    sink: Sink,
    /// As long as there is but one subscriber, an event that is first met on a thread without it is off for ever, everywhere. With
    /// two, all are asked about each event.
    _another: Dispatch,
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// What was logged since the last time.
    pub(super) fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.sink.0.lock().unwrap());
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn subscriber(sink: Sink) -> Dispatch {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || sink.clone())
        .finish();
    Dispatch::new(subscriber)
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

thread_local! {
    static GUARD: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) };
}

/// A runtime of several threads whose log, and only theirs, is kept.
pub(super) fn runtime_with_logs() -> (Runtime, Logs) {
    let logs = Logs {
        sink: Sink::default(),
        _another: subscriber(Sink::default()),
    };
    let dispatch = subscriber(logs.sink.clone());
    let runtime = Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .on_thread_start(move || GUARD.set(Some(set_default(&dispatch))))
        .on_thread_stop(|| GUARD.set(None))
        .build()
        .unwrap();
    (runtime, logs)
}

/// Everything that begins here runs on the threads whose log is kept.
pub(super) fn on<T: Send + 'static>(runtime: &Runtime, work: impl Future<Output = T> + Send + 'static) -> T {
    runtime.block_on(runtime.spawn(work)).unwrap()
}
