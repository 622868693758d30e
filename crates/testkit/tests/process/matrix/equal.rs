//! What a realm is answered does not depend on its neighbour: the same script has the same answers,
//! byte by byte, whether the other realm is absent, idle, busy or failing. Ids, times and cursors
//! are left out of the comparison, and so are the places of sinks, which follow in their own time.

use super::neighbours::two_written;
use super::sending::{Key, LIMIT, Sending, answered};
use super::site::Site;
use super::{files, neighbours};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use testkit::caller::Era;
use testkit::harness::wait_for;
use testkit::http::{Answer, Client};

/// What the other realm does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbour {
    Absent,
    Idle,
    Busy,
    Failing,
}

/// A request of a script: method, path and body.
type Line = (&'static str, &'static str, &'static str);

/// A server that is not there, for the other realm alone.
const FAR: &str = "\n[mcp.servers.far]\nurl = \"http://127.0.0.1:1/mcp\"\nrealms = [\"acme\"]\n";

const SCRIPT: &[Line] = &[
    ("GET", "/api/v1/whoami", ""),
    ("GET", "/api/v1/realms", ""),
    ("GET", "/api/v1/realms/acme", ""),
    ("GET", "/api/v1/principals", ""),
    ("GET", "/api/v1/policies", ""),
    ("GET", "/api/v1/upstreams", ""),
    ("GET", "/api/v1/upstreams/far", ""),
    ("POST", "/api/v1/runs", r#"{"planId": "matrix::echo", "session": "one", "input": {"a": 1}}"#),
    ("POST", "/api/v1/runs", r#"{"planId": "matrix::ask", "session": "two"}"#),
    ("POST", "/api/v1/runs", r#"{"planId": "matrix::stuck", "session": "three"}"#),
    ("POST", "/api/v1/runs", r#"{"planId": "matrix::ecko"}"#),
    ("POST", "/api/v1/runs", r#"{"planId": 1}"#),
    ("GET", "/api/v1/sessions", ""),
    ("GET", "/api/v1/sessions?limit=1", ""),
    ("GET", "/api/v1/sessions?limit=1&cursor=made-up", ""),
    ("GET", "/api/v1/sessions/one", ""),
    ("GET", "/api/v1/sessions/one/history", ""),
    ("GET", "/api/v1/sessions/two/context", ""),
    ("GET", "/api/v1/sessions/four", ""),
    ("GET", "/api/v1/asks", ""),
    ("POST", "/sessions/two/resume", r#"{"input": {"name": "Ann"}}"#),
    ("GET", "/sessions/two", ""),
    ("POST", "/run", r#"{"thread_id": "t", "user_request": "add it", "agent": "clerk"}"#),
    ("GET", "/api/v1/sessions/t?space=thread", ""),
    ("POST", "/desk/cases", r#"{"tradeId": "T-1", "reason": "Missing ISIN"}"#),
    ("GET", "/api/v1/pipelines", ""),
    ("GET", "/api/v1/pipelines/desk", ""),
    ("GET", "/api/v1/pipelines/desk/stats", ""),
    ("GET", "/api/v1/plans", ""),
    ("GET", "/api/v1/plans/matrix%3A%3Aask", ""),
    ("GET", "/api/v1/plans/matrix%3A%3Aecko", ""),
    ("GET", "/api/v1/tools", ""),
    ("GET", "/api/v1/tools/math%3A%3Aadd", ""),
    ("GET", "/api/v1/tools/far.echo", ""),
    ("POST", "/api/v1/tools/math%3A%3Aadd/call", r#"{"arguments": {"a": 1, "b": 2}}"#),
    ("POST", "/api/v1/tools/test%3A%3Aalways_fail/call", r#"{"arguments": {}}"#),
    ("PUT", "/api/v1/agents/spare", r#"{"llmConfigRef": "rules"}"#),
    ("GET", "/api/v1/agents", ""),
    ("GET", "/api/v1/agents/clerk", ""),
    ("GET", "/capabilities", ""),
    ("POST", "/capabilities/discover", r#"{"query": "add"}"#),
    ("GET", "/openapi.json", ""),
    ("GET", "/readyz", ""),
    ("GET", "/metrics", ""),
];

/// The methods of MCP that the script asks for, in both eras.
const METHODS: [(&str, &str); 5] = [
    ("tools/list", "{}"),
    ("prompts/list", "{}"),
    ("resources/templates/list", "{}"),
    ("prompts/get", r#"{"name": "matrix::echo"}"#),
    ("tools/call", r#"{"name": "math__add", "arguments": {"a": 1, "b": 2}}"#),
];

const BUSY: &[Line] = &[
    ("POST", "/api/v1/runs", r#"{"planId": "matrix::echo", "input": {"a": 2}}"#),
    ("POST", "/api/v1/runs", r#"{"planId": "matrix::ask"}"#),
    ("POST", "/run", r#"{"thread_id": "t", "user_request": "hello", "agent": "clerk"}"#),
    ("POST", "/desk/cases", r#"{"tradeId": "T-1", "reason": "Missing ISIN"}"#),
    ("PUT", "/api/v1/agents/spare", r#"{"llmConfigRef": "rules", "description": "changed"}"#),
    ("GET", "/api/v1/tools", ""),
    ("GET", "/api/v1/sessions", ""),
];

const FAILING: &[Line] = &[
    ("POST", "/api/v1/runs", r#"{"planId": "matrix::stuck"}"#),
    ("POST", "/api/v1/runs", r#"{"planId": "matrix::none"}"#),
    ("POST", "/api/v1/runs", "{"),
    ("POST", "/api/v1/tools/test%3A%3Aalways_fail/call", r#"{"arguments": {}}"#),
    ("POST", "/api/v1/upstreams/far/check", ""),
    ("POST", "/desk/cases", r#"{"reason": "Missing ISIN"}"#),
    ("GET", "/api/v1/sessions?cursor=made-up", ""),
];

#[test]
fn a_realm_is_answered_the_same_whatever_its_neighbour_does() {
    let _turn = crate::my_turn();
    let expected = answers_beside(Neighbour::Absent);
    for neighbour in [Neighbour::Idle, Neighbour::Busy, Neighbour::Failing] {
        let found = answers_beside(neighbour);
        assert_eq!(found.len(), expected.len(), "{neighbour:?}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "beside a realm that is {neighbour:?}");
        }
    }
}

/// All answers of the script in the realm `default`, each with its request.
fn answers_beside(neighbour: Neighbour) -> Vec<String> {
    let mut site = Site::of(|folder| match neighbour {
        Neighbour::Absent => {
            let project = files::written(folder);
            neighbours::put_defaults(folder);
            project
        }
        Neighbour::Failing => two_written(folder, FAR),
        Neighbour::Idle | Neighbour::Busy => two_written(folder, ""),
    });
    let lines = match neighbour {
        Neighbour::Absent | Neighbour::Idle => None,
        Neighbour::Busy => Some(BUSY),
        Neighbour::Failing => Some(FAILING),
    };
    let stir = lines.map(|lines| {
        let key = site.made_in("acme", "admin", &[]);
        Stir::start(site.address(), key, lines)
    });
    let key = site.made_in("default", "admin", &[]);
    let answers = script(&mut site, &key);
    if let Some(stir) = stir {
        stir.stop();
    }
    site.stop();
    answers
}

fn script(site: &mut Site, key: &Key) -> Vec<String> {
    let (root, address) = (site.keys.root.id.clone(), site.address().to_string());
    let shown = |what: &str, answer: &Answer| {
        let body = comparable(what, &answer.body);
        let body = body.replace(&key.id, "#").replace(&root, "#").replace(&address, "#");
        let kind = answer.header("content-type").unwrap_or_default();
        format!("{what}: {} {kind} {}", answer.status, masked(&body))
    };
    let mut answers = Vec::new();
    for (method, path, body) in SCRIPT {
        let sending = Sending { key: Some(key), headers: Vec::new(), method, path, body };
        answers.push(shown(&format!("{method} {path}"), &site.send(&sending)));
    }
    // Whether there is such a realm is nobody's business who may not enter it.
    let headers = vec![("x-realm", "acme".to_owned())];
    let (method, path) = ("GET", "/api/v1/whoami");
    let entered = site.send(&Sending { key: Some(key), headers, method, path, body: "" });
    assert_eq!(entered.status, 403, "{entered:?}");
    answers.push(shown("another realm", &entered));
    for era in [Era::Legacy, Era::Modern] {
        for (method, params) in METHODS {
            let mut headers = Vec::new();
            let body = site.message(era, method, params, key, &mut headers);
            let (key, path) = (Some(key), "/mcp");
            let answer = site.send(&Sending { key, headers, method: "POST", path, body: &body });
            answers.push(shown(&format!("{method} of MCP, {era:?}"), &answer));
        }
    }
    answers
}

/// Requests that come one after the other until they are stopped.
struct Stir {
    is_over: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    /// So many rounds were over when the script began.
    begun: usize,
    thread: JoinHandle<()>,
}

impl Stir {
    fn start(address: SocketAddr, key: Key, lines: &'static [Line]) -> Self {
        let (is_over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (over, counted) = (Arc::clone(&is_over), Arc::clone(&rounds));
        let thread = thread::spawn(move || {
            let mut client = Client::new(address).limit(LIMIT);
            while !over.load(Ordering::Relaxed) {
                for (method, path, body) in lines {
                    let (key, headers) = (Some(&key), Vec::new());
                    let answer =
                        answered(&mut client, &Sending { key, headers, method, path, body });
                    assert_ne!(answer.status, 500, "{path}: {answer:?}");
                }
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let begun = wait_for("the other realm to be at work", LIMIT, || {
            assert!(!thread.is_finished(), "the other realm does not work");
            Some(rounds.load(Ordering::Relaxed)).filter(|rounds| *rounds > 1)
        });
        Self { is_over, rounds, begun, thread }
    }

    /// Ends it; it must have gone on all the time.
    fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        assert!(self.thread.join().is_ok(), "the other realm was not answered");
        assert!(self.rounds.load(Ordering::Relaxed) > self.begun, "the other realm did nothing");
    }
}

/// The part of a body that is the same at any time: of the metrics not those of sinks and ages.
fn comparable(what: &str, body: &str) -> String {
    if !what.ends_with("/metrics") {
        return body.to_owned();
    }
    let is_timed =
        |line: &&str| ["sink", "event", "_oldest"].iter().any(|word| line.contains(word));
    let lines: Vec<&str> = body.lines().filter(|line| !is_timed(line)).collect();
    assert!(lines.iter().any(|line| line.contains("sessions_open")), "no sessions in {body}");
    lines.join("\n")
}

/// The text with `#` for all ids, times, cursors and durations.
fn masked(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let (mut masked, mut at) = (String::new(), 0);
    while at < letters.len() {
        let end = end_of_word(&letters, at);
        if end == at {
            masked.push(letters[at]);
            at += 1;
            continue;
        }
        let word: String = letters[at..end].iter().collect();
        let is_own = is_of_the_moment(&word, &masked);
        masked.push_str(if is_own { "#" } else { &word });
        at = end;
    }
    masked
}

/// Where the word ends that begins here; a time is one word.
fn end_of_word(letters: &[char], begin: usize) -> usize {
    let is_number = letters[begin].is_ascii_digit();
    let is_digit = |at: usize| letters.get(at).is_some_and(char::is_ascii_digit);
    let is_part = |at: &usize| match letters[*at] {
        ':' | '.' => is_number && is_digit(at - 1) && is_digit(at + 1),
        letter => letter.is_ascii_alphanumeric() || letter == '_' || letter == '-',
    };
    (begin..letters.len()).take_while(is_part).last().map_or(begin, |last| last + 1)
}

/// Whether a word is an id, a time, a cursor or, by the name before it, a duration or a port.
fn is_of_the_moment(word: &str, before: &str) -> bool {
    let has_digit = word.contains(|letter: char| letter.is_ascii_digit());
    let is_long = word.len() >= 32 || (word.len() >= 20 && has_digit);
    let is_time = word.len() >= 12 && word.starts_with("20") && word.contains('T');
    let is_moment = word.len() >= 12 && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_named = ["Ms\":", "port\":"].iter().any(|name| before.ends_with(name));
    is_long || is_time || is_moment || (is_named && has_digit)
}

#[test]
fn only_what_differs_by_nature_is_masked() {
    let id = "ses_019a857c3f0e7c0d9d6c5a4be2f1a0b3";
    let answer = serde_json::json!({"id": format!("{id}.9"), "at": "2026-11-15T09:30:00.123Z",
        "tookMs": 12, "count": 12, "plan": "matrix::echo", "version": "2025-11-25"});
    let shown = serde_json::from_str::<Value>(&masked(&answer.to_string()).replace(":#", ":0"));
    let kept = serde_json::json!({"id": "#.9", "at": "#", "tookMs": 0, "count": 12,
        "plan": "matrix::echo", "version": "2025-11-25"});
    assert_eq!(shown.unwrap(), kept);
}
