//! Who has used up what it may use: a member of a realm with little room, which stored its share,
//! has its only stream open, and called a tool as often as it may.

use super::a2a;
use super::files::{self, SETTINGS, put};
use super::sending::{Key, LIMIT, Sending, listening};
use super::site::{Facts, Site, filled, text};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::harness::{Project, wait_for, wait_long_for};

/// Its realm.
pub(super) const REALM: &str = "tight";

/// One caller gets a quarter of what the realm has, and at least one.
const LIMITS: &str = r#"
[a2a]
expose = ["matrix::*"]
proxy = true

[realms.tight.limits]
stored_bytes_max = 40000
streams_max = 1

[tools.limits."validate::is_positive"]
per_minute = 1
"#;

/// The tool that may be called once a minute, and for how long a call of it is relied on.
const CALL: &str = "/api/v1/tools/validate%3A%3Ais_positive/call";
const CALLED_FOR: Duration = Duration::from_secs(40);

/// How many letters a run stores that fills the share.
const LETTERS: usize = 4_000;
/// What is stored is measured every second, and on a busy machine less often; for so long it must
/// stay too much.
const STEADY: Duration = Duration::from_secs(8);

/// The project of the matrix with such a realm.
pub(super) fn written(folder: &Path) -> Project {
    let project = files::written(folder);
    put(folder, "waypost.toml", &format!("{SETTINGS}{LIMITS}"));
    project
}

/// Who has used it all up.
pub(super) struct Busy {
    pub(super) key: Key,
    /// What stands for the words in angle brackets there.
    facts: Facts,
    /// When the tool was called.
    called: Instant,
    _stream: TcpStream,
}

impl Busy {
    /// Makes what its doors name, and then uses all of it up.
    pub(super) fn furnished(site: &mut Site) -> Self {
        let key = site.made_in(REALM, "member", &[]);
        site.done(&key, "POST", "/sessions", &json!({"sessionId": "matrix-plain"}));
        let task = a2a::task(site, &key, Some(REALM), "busy");
        let sessions = site.done(&key, "GET", "/api/v1/sessions", &Value::Null);
        let session = text(&sessions["items"][0]["id"]);
        fill(site, &key);
        let called = Instant::now();
        site.done(&key, "POST", CALL, &json!({"arguments": {"num": 1}}));
        let (method, path, body) = ("GET", "/api/v1/events", "");
        let sending = Sending { key: Some(&key), headers: Vec::new(), method, path, body };
        let begun = |heard: &str| heard.contains("event:");
        let (stream, heard) = listening(site.address(), &sending, "the feed to begin", begun);
        assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
        let tasks = a2a::TASKS.map(|word| (word, task.clone()));
        let facts = [("<session>", session)].into_iter().chain(tasks).collect();
        Self { key, facts, called, _stream: stream }
    }

    /// Calls the tool again once that may be, where the minute of its last call is nearly over.
    pub(super) fn call_again(&mut self, site: &mut Site) {
        if self.called.elapsed() < CALLED_FOR {
            return;
        }
        let body = json!({"arguments": {"num": 1}}).to_string();
        wait_long_for("the tool to be called again", LIMIT, || {
            self.called = Instant::now();
            let (key, method, headers) = (Some(&self.key), "POST", Vec::new());
            let answer = site.send(&Sending { key, headers, method, path: CALL, body: &body });
            match answer.status {
                200..=299 => Some(()),
                429 => None,
                _ => panic!("neither done nor refused: {answer:?}"),
            }
        });
    }

    /// The text with its own things, and with the tool that it called too often.
    pub(super) fn filled(&self, text: &str) -> String {
        filled(text, &self.facts)
            .replace("math%3A%3Aadd", "validate%3A%3Ais_positive")
            .replace("math__add", "validate__is_positive")
            .replace(r#"{"a": 1, "b": 2}"#, r#"{"num": 1}"#)
    }
}

/// Stores more until nothing more may be stored, also after it was measured.
fn fill(site: &mut Site, key: &Key) {
    let words: String = (b'a'..=b'w').cycle().take(LETTERS).map(char::from).collect();
    let body = json!({"planId": "matrix::echo", "input": {"text": words}}).to_string();
    let mut refused_since: Option<Instant> = None;
    wait_for("the share of stored bytes to be used up", LIMIT, || {
        let (method, path, headers) = ("POST", "/api/v1/runs", Vec::new());
        let sending = Sending { key: Some(key), headers, method, path, body: &body };
        let answer = site.send(&sending);
        match answer.status {
            429 => {
                let since = *refused_since.get_or_insert_with(Instant::now);
                (since.elapsed() > STEADY).then_some(())
            }
            200 => {
                refused_since = None;
                None
            }
            _ => panic!("neither done nor refused: {answer:?}"),
        }
    });
}
