//! `expected.json` of a recorded folder: what the release said of it before it was killed.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// All of it.
#[derive(Debug, Deserialize)]
pub(super) struct Noted {
    pub(super) hub: Hub,
    pub(super) sessions: Vec<NotedSession>,
    pub(super) asks: Vec<NotedAsk>,
    pub(super) removed: Removed,
    pub(super) keyed: Keyed,
    /// The events that the sink had taken.
    pub(super) delivered: Vec<String>,
    /// Events that it had not.
    pub(super) rest: Vec<String>,
    pub(super) blobs: Vec<String>,
    /// The calls that were under way, by the key of their session.
    pub(super) calls: BTreeMap<String, String>,
}

impl Noted {
    /// The session of this key.
    pub(super) fn session(&self, key: &str) -> &NotedSession {
        let found = self.sessions.iter().find(|session| session.key == key);
        found.unwrap_or_else(|| panic!("no session `{key}` was recorded"))
    }

    /// The ask that was open in the session of this key.
    pub(super) fn ask(&self, key: &str) -> &NotedAsk {
        let found = self.asks.iter().find(|ask| ask.session == key);
        found.unwrap_or_else(|| panic!("no ask of `{key}` was recorded"))
    }
}

/// The server where somebody has logged in.
#[derive(Debug, Deserialize)]
pub(super) struct Hub {
    /// What the login is bound to.
    pub(super) address: SocketAddr,
    pub(super) refresh: String,
    pub(super) callback: String,
}

/// A session as it was listed.
#[derive(Debug, Deserialize)]
pub(super) struct NotedSession {
    pub(super) id: String,
    pub(super) space: String,
    pub(super) key: String,
    pub(super) status: String,
    /// Its newest run.
    pub(super) run: String,
}

/// An ask that was open.
#[derive(Debug, Deserialize)]
pub(super) struct NotedAsk {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) session: String,
}

/// What retention had removed.
#[derive(Debug, Deserialize)]
pub(super) struct Removed {
    /// A whole session, by its key.
    pub(super) session: String,
    /// Runs of a session that stays.
    pub(super) runs: Vec<String>,
}

/// A request under a key.
#[derive(Debug, Deserialize)]
pub(super) struct Keyed {
    pub(super) key: String,
    pub(super) body: Value,
    /// Its outcome.
    pub(super) run: String,
    pub(super) answer: Value,
}
