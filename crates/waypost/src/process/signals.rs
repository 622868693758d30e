//! Signals that stop the process.

use crate::exit::Result;
#[cfg(unix)]
use crate::exit::{Exit, Failure};

/// SIGTERM and SIGINT, each delivered to every listener.
#[cfg(unix)]
pub(crate) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind).map_err(|error| {
                let what = format!("cannot listen for signals: {error}");
                Failure::new(Exit::Failed, "signals", what)
            })
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Done with the next of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Ctrl-C: other systems have no SIGTERM.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self)
    }

    /// Done with the next of them.
    pub(crate) async fn next(&mut self) {
        // Without a handler there is nothing to wait for, and nothing ends us but the system.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
