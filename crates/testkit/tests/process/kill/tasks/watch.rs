//! A subscriber of one task that comes back whenever its stream ends before the task does, and
//! keeps every stream as it was: the task at its beginning, and the events after it.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use testkit::http::NoAnswer;
use testkit::http::grpc::{self, Call, Told, Until};
use wire::a2a::task::StreamResponse;

/// No subscriber takes longer for its task, over all kills.
pub(super) const LIMIT: Duration = Duration::from_secs(600);
const CONNECT_LIMIT: Duration = Duration::from_secs(60);
/// How soon a server is tried again that is not there, or not yet.
const PAUSE: Duration = Duration::from_millis(5);
const ADDRESS: &str = "/a2a/v1";
const OVER: [&str; 4] = ["COMPLETED", "FAILED", "CANCELED", "REJECTED"];

/// Where the server is now, and how many streams it left before their task was over.
#[derive(Default)]
pub(super) struct Place {
    address: Mutex<Option<SocketAddr>>,
    cuts: AtomicUsize,
}

impl Place {
    pub(super) fn set(&self, address: SocketAddr) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    pub(super) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }

    fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a subscriber speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    Rpc,
    Rest,
    Grpc,
}

pub(super) const BINDINGS: [Binding; 3] = [Binding::Rpc, Binding::Rest, Binding::Grpc];

/// A task, and the message that begins it.
pub(super) struct Story {
    /// The parameters of the message.
    pub(super) params: Value,
    /// How it is sent.
    pub(super) sender: Binding,
    /// The id of the task, once it is known.
    pub(super) task: OnceLock<String>,
}

/// One stream.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) snapshot: Value,
    pub(super) events: Vec<Value>,
}

impl Segment {
    /// The state in which it leaves the task.
    fn state(&self) -> &str {
        let last = self.events.iter().rev().find_map(state_of);
        last.unwrap_or_else(|| state_in(&self.snapshot))
    }

    /// Whether the task was over with it.
    pub(super) fn is_over(&self) -> bool {
        OVER.contains(&self.state())
    }
}

/// The state that an event tells, if it tells one.
pub(super) fn state_of(event: &Value) -> Option<&str> {
    event.get("statusUpdate").map(state_in)
}

/// The state of a task, or of what tells one.
pub(super) fn state_in(task: &Value) -> &str {
    let state = task["status"]["state"].as_str();
    let state = state.and_then(|state| state.strip_prefix("TASK_STATE_"));
    state.unwrap_or_else(|| panic!("no state: {task}"))
}

/// The outcome of a request for a stream.
enum Heard {
    /// No server is there, or it is not ready yet.
    Nothing,
    /// The task is over.
    Over,
    Stream(Segment),
}

/// Follows a task to its end, from server to server.
pub(super) fn follow(place: &Place, story: &Story, binding: Binding) -> Vec<Segment> {
    let begun = Instant::now();
    let mut segments = Vec::new();
    loop {
        assert!(begun.elapsed() < LIMIT, "no end of {:?} within {LIMIT:?}", story.task);
        let wanted = match story.task.get() {
            Some(task) => Some(Wanted::Followed(task)),
            None if story.sender == binding => Some(Wanted::Begun(&story.params)),
            None => None,
        };
        let asked = wanted.zip(place.address());
        let heard = asked.map(|(wanted, address)| match binding {
            Binding::Rpc | Binding::Rest => heard(binding, address, &request(binding, &wanted)),
            Binding::Grpc => called(address, &wanted),
        });
        match heard.unwrap_or(Heard::Nothing) {
            Heard::Nothing => thread::sleep(PAUSE),
            Heard::Over => return segments,
            Heard::Stream(segment) => {
                let id = segment.snapshot["id"].as_str().unwrap_or_default();
                let known = story.task.get_or_init(|| id.to_owned());
                assert_eq!(known, id, "one message, two tasks");
                let is_over = segment.is_over();
                segments.push(segment);
                if is_over {
                    return segments;
                }
                place.cuts.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// What a subscriber asks for.
enum Wanted<'a> {
    /// A task that this message begins.
    Begun(&'a Value),
    /// The task of this id.
    Followed(&'a str),
}

impl Wanted<'_> {
    /// The operation with its parameters.
    fn operation(&self) -> (&'static str, Value) {
        match self {
            Wanted::Begun(params) => ("SendStreamingMessage", (*params).clone()),
            Wanted::Followed(task) => ("SubscribeToTask", json!({"id": task})),
        }
    }
}

/// A request: its line without the version of HTTP, and its body.
struct Asked {
    line: String,
    body: String,
}

fn request(binding: Binding, wanted: &Wanted<'_>) -> Asked {
    let (line, body) = match (binding, wanted) {
        (Binding::Rest, Wanted::Begun(params)) => {
            (format!("POST {ADDRESS}/message:stream"), params.to_string())
        }
        (Binding::Rest, Wanted::Followed(task)) => {
            (format!("POST {ADDRESS}/tasks/{task}:subscribe"), String::new())
        }
        (Binding::Rpc | Binding::Grpc, wanted) => {
            let (method, params) = wanted.operation();
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            (format!("POST {ADDRESS}"), body.to_string())
        }
    };
    Asked { line, body }
}

/// The same by a call of gRPC.
fn called(address: SocketAddr, wanted: &Wanted<'_>) -> Heard {
    let (method, params) = wanted.operation();
    let headers = [("a2a-version", "1.0")];
    let call = Call { method, headers: &headers, params: &params, until: Until::Ended };
    let Told { messages, status, .. } = match grpc::called(address, &call, LIMIT) {
        Ok(told) => told,
        Err(NoAnswer::Late(limit)) => panic!("`{method}` does not end within {limit:?}"),
        Err(_) => return Heard::Nothing,
    };
    let mut events = messages.into_iter().map(in_json);
    let Some(first) = events.next() else {
        let details = status.map(|status| status.details).unwrap_or_default();
        let has = |reason: &str| details.iter().any(|detail| detail["reason"] == reason);
        assert!(!has("TASK_NOT_FOUND"), "a task that was told is gone: {details:?}");
        return if has("UNSUPPORTED_OPERATION") { Heard::Over } else { Heard::Nothing };
    };
    begun_with(&first, events.collect())
}

/// An event in the words of the other bindings.
fn in_json(event: Value) -> Value {
    let event: StreamResponse = serde_json::from_value(event).unwrap();
    serde_json::to_value(event).unwrap()
}

/// A stream of these events.
fn begun_with(first: &Value, events: Vec<Value>) -> Heard {
    let snapshot = first["task"].clone();
    assert!(snapshot.is_object(), "a stream begins with the task: {first}");
    Heard::Stream(Segment { snapshot, events })
}

/// Asks, and reads until the stream ends, in whatever way.
fn heard(binding: Binding, address: SocketAddr, request: &Asked) -> Heard {
    let Some(bytes) = read(address, request) else { return Heard::Nothing };
    let end = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let Some(end) = end else { return Heard::Nothing };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let body = &bytes[end + 4..];
    if !head.contains("text/event-stream") {
        let body = String::from_utf8_lossy(body);
        assert!(!body.contains("TASK_NOT_FOUND"), "a task that was told is gone: {body}");
        let is_over = body.contains("UNSUPPORTED_OPERATION");
        return if is_over { Heard::Over } else { Heard::Nothing };
    }
    let mut events = events_of(binding, &chunks(body)).into_iter();
    let Some(first) = events.next() else { return Heard::Nothing };
    begun_with(&first, events.collect())
}

/// All that comes over a connection of its own.
fn read(address: SocketAddr, Asked { line, body }: &Asked) -> Option<Vec<u8>> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT).ok()?;
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\na2a-version: 1.0\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let (mut bytes, mut some) = (Vec::new(), [0; 4_096]);
    // An error is the end of a server that was killed.
    while let Ok(count @ 1..) = stream.read(&mut some) {
        bytes.extend_from_slice(&some[..count]);
        assert!(begun.elapsed() < LIMIT, "`{line}` does not end within {LIMIT:?}");
    }
    Some(bytes)
}

/// The chunks that came whole, without their marks.
fn chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = rest.windows(2).position(|bytes| bytes == b"\r\n") {
        let digits = String::from_utf8_lossy(&rest[..end]);
        let size = usize::from_str_radix(digits.trim(), 16).unwrap_or_default();
        let start = end + 2;
        let Some(chunk) = rest.get(start..start + size).filter(|chunk| !chunk.is_empty()) else {
            break;
        };
        whole.extend_from_slice(chunk);
        rest = rest.get(start + size + 2..).unwrap_or_default();
    }
    whole
}

/// The events that came whole, whatever binding told them.
fn events_of(binding: Binding, body: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(body);
    // Behind the last empty line stands what was cut off.
    let whole = text.rsplit_once("\n\n").map(|(whole, _)| whole).unwrap_or_default();
    let data = whole.lines().filter_map(|line| line.strip_prefix("data:"));
    let events = data.map(|data| serde_json::from_str::<Value>(data.trim()).unwrap());
    // One that says that the server cannot go on is none of the task's.
    let events = events.filter(|event| event.get("error").is_none());
    events
        .map(|event| match binding {
            Binding::Rpc => event["result"].clone(),
            Binding::Rest | Binding::Grpc => event,
        })
        .collect()
}
