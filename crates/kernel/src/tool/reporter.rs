//! What a call tells while it runs: how far it is, and lines for a log. Nothing of it is kept.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Whom a call tells how far it is, while it runs. Reports are not kept.
#[derive(Clone, Default)]
pub struct CallReporter(Option<Arc<dyn Listener>>);

/// Hears what calls tell while they run. It must not block.
pub trait Listener: Send + Sync {
    /// This was reported.
    fn hear(&self, told: CallUpdate);

    /// From which level on it wants to hear the log; not at all where there is none.
    fn log_level(&self) -> Option<LogLevel> {
        None
    }
}

/// What a call tells while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum CallUpdate {
    /// How far it is.
    Progress {
        /// Grows with every telling.
        progress: f64,
        /// Where it ends, if that is known.
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
    pub fn tell(&self, told: CallUpdate) {
        if let Some(listener) = &self.0 {
            listener.hear(told);
        }
    }
}

impl fmt::Debug for CallReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "CallReporter(heard)" } else { "CallReporter" })
    }
}
