//! The oracle of the kill tests: a process of its own that writes down every request it was sent
//! and syncs that before it answers. What it has written happened; what it has not never did.

use crate::harness::{self, Process};
use crate::http::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program says before its address.
pub const BANNER: &str = "receiver listening on http://";

/// One line of the receiver's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// A request came; on the disk before its answer was sent.
    Effect(Effect),
    /// The answer to this effect is about to be sent. Before this line no one can have it.
    Answered {
        /// The effect's number.
        answered: u64,
    },
    /// A test set a mark: a server was killed. Connections before this one were its own.
    Mark {
        /// The number of the connection that set it.
        mark: u64,
    },
}

/// One request that the receiver was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Its number, from 1.
    pub n: u64,
    /// The `Idempotency-Key` that came with it.
    pub key: Option<String>,
    /// Its body; text that is no JSON is a string.
    pub body: Value,
    /// The number of the connection that it came over.
    pub connection: u64,
}

/// A moment in the receiver's life: connections made before it are distinguished from later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// A running receiver; it is killed when this is dropped.
#[derive(Debug)]
pub struct Receiver {
    process: Process,
    log: PathBuf,
}

impl Receiver {
    /// Starts it with its log in this folder.
    pub fn start(folder: &Path) -> Self {
        let log = folder.join("effects.jsonl");
        let mut command = Command::new(harness::fixture());
        command.args(["receiver", "--with-parent", "--log"]).arg(&log);
        let process = Process::start(command, &folder.join("receiver.log"), BANNER)
            .unwrap_or_else(|failure| panic!("{failure}"));
        Self { process, log }
    }

    pub fn address(&self) -> SocketAddr {
        self.process.address()
    }

    /// The lines of `waypost.toml` that let plans write to it, and to nothing else.
    pub fn allow(&self) -> String {
        format!("[tools.http]\nallow = [\"{}\"]\n", self.address())
    }

    /// The whole log up to now, in order.
    pub fn lines(&self) -> Vec<Line> {
        let text = fs::read_to_string(&self.log)
            .unwrap_or_else(|error| panic!("no receiver log `{}`: {error}", self.log.display()));
        // A line without its end is still being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(read_line).collect()
    }

    /// All effects up to now, in order.
    pub fn effects(&self) -> Vec<Effect> {
        let effect = |line: Line| match line {
            Line::Effect(effect) => Some(effect),
            Line::Answered { .. } | Line::Mark { .. } => None,
        };
        self.lines().into_iter().filter_map(effect).collect()
    }

    /// Sets a mark, after a server was killed: all that server's connections are older.
    pub fn mark(&self) -> Mark {
        let answer = Client::new(self.address())
            .get("/mark")
            .unwrap_or_else(|error| panic!("the receiver set no mark: {error}"));
        let mark = answer.json()["mark"].as_u64();
        Mark(mark.unwrap_or_else(|| panic!("the receiver answered no mark: {}", answer.body)))
    }

    /// Waits until every connection older than the mark has been read to its end: from then on
    /// the log holds all that came over them.
    pub fn drain(&self, mark: Mark) {
        let path = format!("/drained?before={}", mark.0);
        let answer = Client::new(self.address())
            .get(&path)
            .unwrap_or_else(|error| panic!("the receiver did not drain: {error}"));
        assert_eq!(answer.status, 200, "old connections do not end: {}", answer.body);
    }
}

fn read_line(line: &str) -> Line {
    serde_json::from_str(line)
        .unwrap_or_else(|error| panic!("the receiver wrote `{line}`: {error}"))
}
