//! Snapshots of a session's state, so that a long journal need not be replayed from its start. A
//! snapshot that this release cannot read is ignored.

use super::Session;
use serde::{Deserialize, Serialize};

/// The version of the state's shape; a change of `Session` or what it holds changes it.
const STATE_VERSION: u32 = 10;

#[derive(Serialize)]
struct WrittenSnapshot<'s> {
    v: u32,
    state: &'s Session,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

#[derive(Deserialize)]
struct ReadSnapshot {
    state: Session,
}

impl Session {
    /// The state as text.
    pub fn to_snapshot(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&WrittenSnapshot { v: STATE_VERSION, state: self })
    }

    /// The state out of a text, if it is of this release's shape.
    pub fn from_snapshot(text: &str) -> Option<Self> {
        let version: Version = serde_json::from_str(text).ok()?;
        if version.v != STATE_VERSION {
            return None;
        }
        serde_json::from_str::<ReadSnapshot>(text).ok().map(|read| read.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ids::{SessionId, SessionKey, Space};

    #[test]
    fn an_unreadable_snapshot_is_ignored() {
        let key = SessionKey::new("r", Space::session(), "s");
        let session = Session::new(SessionId(1), key);
        let text = session.to_snapshot().unwrap();
        assert_eq!(Session::from_snapshot(&text), Some(session));
        let own = format!("\"v\":{STATE_VERSION}");
        let other = "\"v\":1";
        assert_eq!(Session::from_snapshot(&text.replacen(&own, other, 1)), None);
        assert_eq!(Session::from_snapshot("{}"), None);
    }
}
