//! Clients of the event streams that are cut at random moments, again and again, and come back with
//! the last `id` they have whole: each sees every event once and in order, in one session's stream
//! and in that of all, while the events are being made. `WAYPOST_SEED` asks for the cuts of an
//! earlier run.

use crate::api;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testkit::harness::{DEMO_TOOLS, Project, Server, StartOptions, wait_for};
use testkit::http::Client;
use testkit::kill::{Rng, Run, read};

const CUTS_MIN: usize = 100;
/// The session that one of the clients follows, and those that only the other one sees.
const FOLLOWED: &str = "followed";
const OTHERS: [&str; 3] = ["other-1", "other-2", "other-3"];
const RUNS: usize = 3;
const FOLLOWED_ITEMS: usize = 300;
const OTHER_ITEMS: usize = 60;
/// Between two runs, so that a client also waits at the end of a stream for what comes next.
const BREATH: Duration = Duration::from_millis(1_500);
/// A connection is cut after fewer bytes than these; all that there is to read is 100 times more.
const FOLLOWED_BYTES_MAX: u64 = 12 * 1024;
const ALL_BYTES_MAX: u64 = 24 * 1024;
const CONNECT_LIMIT: Duration = Duration::from_secs(60);
/// A client that hears nothing for so long hangs up by itself; that is no cut.
const IDLE: Duration = Duration::from_secs(5);
/// A client that reads a stream in one go is not so impatient.
const UNCUT_IDLE: Duration = Duration::from_secs(120);
const LIMIT: Duration = Duration::from_secs(600);

const MANY: &str = r#"planId: streams/many
description: adds ten to each item
parameters: {type: object}
startStepId: each
steps:
  - id: each
    type: loop_over_items
    collectionPath: {jsonPath: $.promptInput.items}
    itemAlias: item
    loopPlan:
      - id: add
        type: tool_call
        toolId: "math::add"
        arguments: {a: {jsonPath: $.context.item}, b: 10}
        saveAs: more
    nextStepId: end
  - {id: end, type: final_response, message: done}
"#;

#[test]
fn a_stream_that_is_cut_a_hundred_times_shows_every_event_once_and_in_order() {
    let _turn = crate::my_turn();
    let seed = seed();
    crate::tell(&format!("streams: WAYPOST_SEED={seed}"));
    let folder = tempfile::Builder::new().prefix("waypost-streams-").tempdir().unwrap();
    let files = [("streams/many.yaml", MANY)];
    let project = Project::write(&folder.path().join("project"), &files, DEMO_TOOLS);
    let data = folder.path().join("data");
    let options = StartOptions { project: project.path(), data: &data, args: &[] };
    let mut server = Server::start(&options);
    server.wait_until_ready();
    let address = server.address();
    // A session must be there before somebody can follow it.
    run(&mut server.client(), FOLLOWED, FOLLOWED_ITEMS);

    let goals = [AtomicUsize::new(usize::MAX), AtomicUsize::new(usize::MAX)];
    let (one, all, truth) = thread::scope(|scope| {
        let mut one = Follower::new(address, &events_of(FOLLOWED), IDLE);
        let mut all = Follower::new(address, "/api/v1/events", IDLE);
        let [one_goal, all_goal] = &goals;
        let one = scope.spawn(move || {
            one.follow(&mut Rng::new(seed), FOLLOWED_BYTES_MAX, one_goal);
            one
        });
        let all = scope.spawn(move || {
            all.follow(&mut Rng::new(seed.wrapping_add(1)), ALL_BYTES_MAX, all_goal);
            all
        });
        make_events(address);
        let truth = truth(address);
        one_goal.store(truth[FOLLOWED].len(), Ordering::SeqCst);
        all_goal.store(truth.values().map(Vec::len).sum(), Ordering::SeqCst);
        (one.join().unwrap(), all.join().unwrap(), truth)
    });
    check_one(&one, &truth[FOLLOWED]);
    check_all(&all, &truth);
    crate::tell(&format!(
        "streams: one session: {} events, {} cuts, {} connections; all: {} events of {} sessions, \
         {} cuts, {} connections; each seen once and in order, WAYPOST_SEED={seed}",
        one.seen.len(),
        one.cuts,
        one.connections,
        all.seen.len(),
        truth.len(),
        all.cuts,
        all.connections,
    ));
}

/// The client of one session saw what is there, and nothing else.
fn check_one(one: &Follower, truth: &[Message]) {
    assert!(one.cuts >= CUTS_MIN, "only {} cuts of the session's stream", one.cuts);
    for (message, seq) in one.seen.iter().zip(1_u64..) {
        assert_eq!(message.id, seq.to_string(), "not the next one: {message:?}");
        assert_eq!(message.json()["seq"], seq, "{message:?}");
    }
    assert_eq!(one.seen.len(), truth.len(), "as many as the session has");
    assert!(one.seen == truth, "an event was not the same in pieces as in one go");
}

/// The client of all sessions saw each one's events, whole and in order, whatever lay between.
fn check_all(all: &Follower, truth: &BTreeMap<&str, Vec<Message>>) {
    assert!(all.cuts >= CUTS_MIN, "only {} cuts of the stream of all", all.cuts);
    let mut seen: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for message in &all.seen {
        let whole = message.json();
        let session = whole["session"].as_str().unwrap_or_else(|| panic!("whose? {message:?}"));
        let events = seen.entry(session.to_owned()).or_default();
        let next = events.len() + 1;
        assert_eq!(whole["event"]["seq"], next, "not the next one of {session}: {message:?}");
        events.push(whole["event"].clone());
    }
    assert_eq!(seen.len(), truth.len(), "as many sessions as there are");
    for (key, messages) in truth {
        let known: Vec<Value> = messages.iter().map(Message::json).collect();
        let session = known[0]["data"]["id"].as_str().expect("the session's id in its first event");
        let events = seen.get(session).unwrap_or_else(|| panic!("nothing of `{key}`"));
        assert_eq!(events.len(), known.len(), "as many events as `{key}` has");
        assert!(*events == known, "an event of `{key}` is another in the stream of all");
    }
}

/// Runs in all sessions at the same time, one after the other in each.
fn make_events(address: SocketAddr) {
    thread::scope(|scope| {
        for key in OTHERS {
            scope.spawn(move || runs(address, key, OTHER_ITEMS));
        }
        runs(address, FOLLOWED, FOLLOWED_ITEMS);
    });
}

fn runs(address: SocketAddr, key: &str, items: usize) {
    let mut client = Client::new(address);
    for _ in 0..RUNS {
        run(&mut client, key, items);
        thread::sleep(BREATH);
    }
}

fn run(client: &mut Client, key: &str, items: usize) {
    let items: Vec<usize> = (0..items).collect();
    let body = json!({"planId": "streams/many", "session": key, "input": {"items": items}});
    let answer = client
        .post("/api/v1/runs", &body)
        .unwrap_or_else(|error| panic!("a run in `{key}`: {error}"));
    // On a busy machine it may take longer than the server waits for it.
    assert!([200, 202].contains(&answer.status), "a run in `{key}`: {}", answer.body);
    let run: Run = read(&answer.json()["run"]);
    wait_for(&format!("the run `{}` in `{key}` to be completed", run.id), LIMIT, || {
        (api::run(client, &run.id).status == "completed").then_some(())
    });
}

/// The events of every session, each read in one go to the end and counted against its export.
fn truth(address: SocketAddr) -> BTreeMap<&'static str, Vec<Message>> {
    let mut client = Client::new(address);
    let mut truth = BTreeMap::new();
    for key in OTHERS.into_iter().chain([FOLLOWED]) {
        let path = format!("{}?after=0", events_of(key));
        let mut reader = Follower::new(address, &path, UNCUT_IDLE);
        let ended = reader.connection(u64::MAX);
        assert_eq!(ended, Ended::Over, "`{path}` did not come to its end in one go");
        let export = api::get(&mut client, &format!("/api/v1/sessions/{key}/export"));
        let events = export["events"].as_array().map(Vec::len);
        assert_eq!(events, Some(reader.seen.len()), "as many events of `{key}` as exported");
        truth.insert(key, reader.seen);
    }
    truth
}

fn events_of(key: &str) -> String {
    format!("/api/v1/sessions/{key}/events")
}

fn seed() -> u64 {
    match std::env::var("WAYPOST_SEED") {
        Ok(text) => {
            text.parse::<u64>().unwrap_or_else(|error| panic!("WAYPOST_SEED is `{text}`: {error}"))
        }
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64,
    }
}

/// One event as it came.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    id: String,
    data: String,
}

impl Message {
    fn json(&self) -> Value {
        serde_json::from_str(&self.data)
            .unwrap_or_else(|error| panic!("an event that is not JSON ({error}): {self:?}"))
    }
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// It was cut after the bytes it was given.
    Cut,
    /// Nothing came for a while.
    Idle,
    /// The server said that this was all.
    Over,
}

/// A client of a stream: what it saw over all its connections.
struct Follower {
    address: SocketAddr,
    path: String,
    idle: Duration,
    seen: Vec<Message>,
    cuts: usize,
    connections: usize,
}

impl Follower {
    fn new(address: SocketAddr, path: &str, idle: Duration) -> Self {
        let path = path.to_owned();
        Self { address, path, idle, seen: Vec::new(), cuts: 0, connections: 0 }
    }

    /// Connects and is cut until it has seen as many events as the goal says, and then hears no
    /// more: what came twice would come here.
    fn follow(&mut self, rng: &mut Rng, bytes_max: u64, goal: &AtomicUsize) {
        let begun = Instant::now();
        loop {
            let goal = goal.load(Ordering::SeqCst);
            let ended = self.connection(1 + rng.below(bytes_max));
            if ended != Ended::Cut && self.seen.len() >= goal {
                return;
            }
            assert!(
                begun.elapsed() < LIMIT,
                "waited {LIMIT:?} in vain for {goal} events of `{}`; {} came, with {} cuts",
                self.path,
                self.seen.len(),
                self.cuts
            );
        }
    }

    /// One connection, dropped after so many bytes, wherever that is.
    fn connection(&mut self, bytes_max: u64) -> Ended {
        self.connections += 1;
        let mut stream = self.connect();
        let mut wire = Wire::default();
        let (begun, mut left) = (Instant::now(), bytes_max);
        let mut buffer = [0; 4096];
        let mut greeted = false;
        while left > 0 {
            assert!(begun.elapsed() < LIMIT, "one connection to `{}` for {LIMIT:?}", self.path);
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let count = match stream.read(&mut buffer[..most]) {
                Ok(0) => panic!("the server hung up on `{}` without an end", self.path),
                Ok(count) => count,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ended::Idle,
                    ErrorKind::Interrupted => continue,
                    _ => panic!("`{}` broke: {error}", self.path),
                },
            };
            left -= count as u64;
            for text in wire.take(&buffer[..count]) {
                if self.hear(&text, &mut greeted) {
                    return Ended::Over;
                }
            }
        }
        self.cuts += 1;
        Ended::Cut
    }

    fn connect(&self) -> TcpStream {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT_LIMIT)
            .unwrap_or_else(|error| panic!("no connection for `{}`: {error}", self.path));
        stream.set_read_timeout(Some(self.idle)).unwrap();
        stream.set_write_timeout(Some(CONNECT_LIMIT)).unwrap();
        let mut request = format!("GET {} HTTP/1.1\r\nhost: {}\r\n", self.path, self.address);
        if let Some(last) = self.seen.last() {
            request.push_str(&format!("last-event-id: {}\r\n", last.id));
        }
        request.push_str("accept: text/event-stream\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Takes one whole message; true if it was the stream's last.
    fn hear(&mut self, text: &str, greeted: &mut bool) -> bool {
        let field = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.next().map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
        };
        let event = field("event:");
        if event.is_none() && field("data:").is_none() {
            // A comment that says that the server is still here.
            return false;
        }
        let first = !std::mem::replace(greeted, true);
        assert_eq!(first, event.as_deref() == Some("snapshot"), "a snapshot, first: {text}");
        match (event.as_deref(), field("id:"), field("data:")) {
            (Some("snapshot"), None, Some(_)) => false,
            (Some("end"), None, Some(_)) => true,
            (None, Some(id), Some(data)) => {
                self.seen.push(Message { id, data });
                false
            }
            _ => panic!("an odd message in `{}`: {text}", self.path),
        }
    }
}

/// What came over one connection, down to whole messages: HTTP's head, its chunks, blank lines.
#[derive(Default)]
struct Wire {
    raw: Vec<u8>,
    head: bool,
    body: Vec<u8>,
}

impl Wire {
    /// The messages that are whole with these bytes.
    fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        self.raw.extend_from_slice(bytes);
        if !self.head {
            let Some(end) = find(&self.raw, b"\r\n\r\n") else {
                return Vec::new();
            };
            let whole = String::from_utf8_lossy(&self.raw).into_owned();
            let head = String::from_utf8_lossy(&self.raw[..end]).to_ascii_lowercase();
            assert!(head.starts_with("http/1.1 200 "), "refused: {whole}");
            assert!(head.contains("content-type: text/event-stream"), "no stream: {whole}");
            assert!(head.contains("transfer-encoding: chunked"), "not in chunks: {whole}");
            self.raw.drain(..end + 4);
            self.head = true;
        }
        while self.chunk() {}
        let mut messages = Vec::new();
        while let Some(end) = find(&self.body, b"\n\n") {
            let message: Vec<u8> = self.body.drain(..end + 2).collect();
            messages.push(String::from_utf8(message).expect("a stream is UTF-8"));
        }
        messages
    }

    /// Moves one whole chunk into the body, if there is one.
    fn chunk(&mut self) -> bool {
        let Some(end) = find(&self.raw, b"\r\n") else {
            return false;
        };
        let line = String::from_utf8_lossy(&self.raw[..end]).into_owned();
        let size = usize::from_str_radix(&line, 16)
            .unwrap_or_else(|error| panic!("chunk size `{line}`: {error}"));
        let (from, to) = (end + 2, end + 2 + size);
        // The empty chunk is the last; a stream's own end has come before it.
        if size == 0 || self.raw.len() < to + 2 {
            return false;
        }
        self.body.extend_from_slice(&self.raw[from..to]);
        self.raw.drain(..to + 2);
        true
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
