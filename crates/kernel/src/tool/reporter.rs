//! Progress and log lines of a running call. Nothing of it is stored.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Receiver of a call's progress and log lines. Nothing is stored.
#[derive(Clone, Default)]
pub struct CallReporter(Option<Arc<dyn Listener>>);

/// Receives updates of running calls. Must not block.
pub trait Listener: Send + Sync {
    fn hear(&self, update: CallUpdate);

    /// The lowest log level that it receives; `None` for no log lines.
    fn log_level(&self) -> Option<LogLevel> {
        None
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum CallUpdate {
    Progress {
        /// Grows with every telling.
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    /// A line for a log.
    Log {
        /// How grave it is.
        level: LogLevel,
        logger: Option<String>,
        data: Value,
    },
}

/// How grave a line of a log is, as in syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For those who look for a fault.
    Debug,
    /// Normal.
    Info,
    /// Normal, but worth knowing.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl CallReporter {
    /// Tells this listener.
    pub fn new(listener: Arc<dyn Listener>) -> Self {
        Self(Some(listener))
    }

    /// Whether anybody listens.
    pub fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// From which level on the listener wants the log.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.0.as_ref().and_then(|listener| listener.log_level())
    }

    /// Tells it, if anybody listens.
    pub fn tell(&self, update: CallUpdate) {
        if let Some(listener) = &self.0 {
            listener.hear(update);
        }
    }
}

impl fmt::Debug for CallReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "CallReporter(heard)" } else { "CallReporter" })
    }
}
