//! Ctrl-C and friends, for the commands that have something to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// As a shell says that a signal ended a command.
const FORCED: i32 = 130;

/// Whether this process was asked to stop.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on the first signal is only noted; a second one ends the process at once, and the watchdogs do the rest.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_shutdown(signal, FORCED, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
                .context("listening for signals")?;
        }
        Ok(Self(flag))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// For the steps of a start: ends it where it is.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.is_set() {
            bail!("interrupted");
        }
        Ok(())
    }
}
