//! Real child processes that do all that a server may do wrong.
#![allow(clippy::disallowed_methods, reason = "tests run on tokio itself, by its clock")]

use super::super::line::{Incoming, Line, Outgoing, PeerError, PeerErrorKind, Replies};
use super::super::peer::{Era, EraChoice, Peer};
use super::ChildLine;
use crate::children::Program;
use crate::{HOPS_MAX, RemoteParts, Secret};
use futures::future::{BoxFuture, join_all, pending};
use kernel::contracts::{Clock, Entropy, Spawn};
use kernel::limits::Limits;
use kernel::tool::call::CallProgress;
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use wire::jsonrpc::Id;

/// Longer than anything here takes on a busy machine.
const LONG_MS: u64 = 240_000;
/// How soon a sleeper sees that the clock was put forward.
const STEP: Duration = Duration::from_millis(10);

/// A server that does what the method says.
const SERVER: &str = r#"
import json, os, signal, subprocess, sys, threading, time

lock = threading.Lock()

def say(message):
    with lock:
        sys.stdout.write(message if isinstance(message, str) else json.dumps(message))
        sys.stdout.write("\n")
        sys.stdout.flush()

def answer(message, result):
    say({"jsonrpc": "2.0", "id": message["id"], "result": result})

def tell(method, params):
    say({"jsonrpc": "2.0", "method": method, "params": params})

def flood():
    # One write each, which a pipe does not mix with others.
    flood = {"jsonrpc": "2.0", "method": "notifications/flood", "params": {"x": "x" * 1000}}
    while True:
        os.write(1, json.dumps(flood).encode() + b"\n")

for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params")
    if method == "echo":
        answer(message, params)
    elif method == "echo as text":
        message["id"] = str(message["id"])
        answer(message, params)
    elif method == "progress":
        token = params["_meta"]["progressToken"]
        for step in range(3):
            tell("notifications/progress", {"progressToken": token, "progress": step})
        tell("notifications/tools/list_changed", {})
        answer(message, {})
    elif method == "group":
        answer(message, {"group": os.getpgrp(), "env": sorted(os.environ)})
    elif method == "child":
        subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
        answer(message, {"group": os.getpgrp()})
    elif method == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        answer(message, {"group": os.getpgrp()})
        time.sleep(1000)
    elif method == "garbage":
        for number in range(params["lines"]):
            say("line %d is no message" % number)
        answer(message, {})
    elif method == "long":
        answer(message, {"x": "x" * params["bytes"]})
    elif method == "long, id last":
        result = {"x": "x" * params["bytes"]}
        say({"result": result, "jsonrpc": "2.0", "id": message["id"]})
    elif method == "flood":
        threading.Thread(target=flood, daemon=True).start()
        answer(message, {})
    elif method == "die":
        sys.stderr.write("I die\n")
        os._exit(3)
    elif method == "last words":
        subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
        answer(message, {"group": os.getpgrp()})
        os._exit(0)
    elif method == "ask":
        say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}})
        asked = message
    elif method == "notifications/cancelled":
        tell("notifications/heard", params)
    elif message.get("id") == "q":
        answer(asked, message["result"])
"#;

/// A server that reads nothing, and says when there is something that it could read.
const DEAF: &str = r#"
import select, sys, time

select.select([sys.stdin], [], [])
print('{"jsonrpc": "2.0", "method": "notifications/there"}', flush=True)
time.sleep(1000)
"#;

/// A server that takes so long to start that it finds two questions in its pipe. It serves the
/// stateless version from its first answer on.
const LATE: &str = r#"
import json, sys

asked = [json.loads(sys.stdin.readline()) for _ in range(2)]
for message in asked:
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "server/discover":
        answer["result"] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    else:
        text = "this connection is serving the 2026-07-28 protocol"
        answer["error"] = {"code": -32022, "message": text}
    print(json.dumps(answer), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/list":
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": []}}
        print(json.dumps(answer), flush=True)
"#;

struct Tasks;

impl Spawn for Tasks {
    fn task(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        tokio::spawn(future);
    }

    fn thread(&self, name: &'static str, _future: BoxFuture<'static, ()>) {
        panic!("no thread is needed, but `{name}` is one");
    }
}

/// The machine's clock, which a test can put forward: what takes long then takes no time.
#[derive(Clone, Default)]
struct Wall(Arc<AtomicI64>);

impl Wall {
    fn pass(&self, ms: u64) {
        self.0.fetch_add(i64::try_from(ms).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for Wall {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Millis(i64::try_from(since.as_millis()).unwrap() + self.0.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now().0.unsigned_abs())
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        let wall = self.clone();
        Box::pin(async move {
            while wall.now() < then {
                tokio::time::sleep(STEP).await;
            }
        })
    }
}

/// A clock that stands still: what is waited for comes, however long it takes.
struct Still;

impl Clock for Still {
    fn now(&self) -> Millis {
        Millis(0)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }
}

struct Seven;

impl Entropy for Seven {
    fn bits(&self) -> u128 {
        7
    }
}

fn parts(limits: Limits, clock: Arc<dyn Clock>) -> RemoteParts {
    RemoteParts {
        spawn: Arc::new(Tasks),
        vault: Arc::new(crate::MemoryVault::new(clock.clone())),
        clock,
        entropy: Arc::new(Seven),
        limits: Arc::new(limits),
        hops_max: HOPS_MAX,
        supervisor: None,
        login: None,
        scope: crate::Scope::default(),
    }
}

fn start_with(limits: Limits, clock: Arc<dyn Clock>, words: &[&str]) -> Arc<dyn Line> {
    let args: Vec<String> = words[1..].iter().map(|arg| (*arg).to_owned()).collect();
    let env = [("TOKEN".to_owned(), Secret::from("t"))];
    let program = Program { command: words[0], args: &args, env: &env, cwd: None };
    ChildLine::start("fake", &program, &parts(limits, clock)).unwrap()
}

fn impatient() -> Limits {
    Limits { upstream_stop_ms: 200, ..Limits::default() }
}

fn server_by(clock: Arc<dyn Clock>) -> Arc<dyn Line> {
    start_with(impatient(), clock, &["python3", "-c", SERVER])
}

fn server() -> Arc<dyn Line> {
    server_by(Arc::new(Wall::default()))
}

fn outgoing(id: u64, method: &str, params: Value) -> Outgoing {
    Outgoing {
        id: Id::number(id),
        method: method.to_owned(),
        params: params.into(),
        name: None,
        param_headers: Vec::new(),
        timeout_ms: LONG_MS,
        is_watched: false,
    }
}

async fn next(replies: &mut Replies) -> Option<Incoming> {
    in_time(replies.recv()).await
}

async fn in_time(coming: impl Future<Output = Option<Incoming>>) -> Option<Incoming> {
    let next = tokio::time::timeout(Duration::from_millis(LONG_MS), coming);
    next.await.expect("nothing came in time")
}

/// The answer to a request, which must be all that comes.
async fn ask(line: &Arc<dyn Line>, id: u64, method: &str, params: Value) -> Incoming {
    let mut replies = line.request(outgoing(id, method, params)).await.unwrap();
    let answer = next(&mut replies).await.unwrap();
    assert_eq!(next(&mut replies).await, None, "the answer is the last");
    answer
}

async fn group_of(line: &Arc<dyn Line>, id: u64, method: &str) -> i64 {
    match ask(line, id, method, json!({})).await {
        Incoming::Result(result) => result["group"].as_i64().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn broken(incoming: Incoming) -> PeerError {
    match incoming {
        Incoming::Broken(error) => error,
        other => panic!("not broken: {other:?}"),
    }
}

/// The processes of a group that live; one that is dead and not reaped by its parent does not.
fn living(group: i64) -> Vec<String> {
    let stats = fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let of_group = |stat: &String| {
        let fields: Vec<&str> =
            stat.rsplit_once(')').unwrap_or_default().1.split_whitespace().collect();
        matches!(fields.as_slice(), [state, _, of, ..]
            if *state != "Z" && of.parse::<i64>() == Ok(group))
    };
    stats.filter(of_group).collect()
}

/// No one of the group is left, at once or in a moment.
async fn gone(group: i64) {
    let begun = Instant::now();
    while !living(group).is_empty() {
        let waited = begun.elapsed();
        assert!(waited < Duration::from_millis(LONG_MS), "left behind: {:?}", living(group));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn news_of(server_messages: &mut mpsc::Receiver<Incoming>, wanted: &str) -> Incoming {
    loop {
        let incoming = in_time(server_messages.recv()).await.expect("the news ended");
        match &incoming {
            Incoming::Notification { method, .. } | Incoming::Request { method, .. }
                if method == wanted =>
            {
                return incoming;
            }
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_share_a_child_and_each_gets_its_own_answer() {
    // It ends by itself, and no one gives up waiting for that.
    let patient = Limits { upstream_stop_ms: LONG_MS, ..Limits::default() };
    let line = start_with(patient, Arc::new(Wall::default()), &["python3", "-c", SERVER]);
    let asks = (1..=200).map(|id| ask(&line, id, "echo", json!({"of": id, "text": "a\nb"})));
    for (index, answer) in join_all(asks).await.into_iter().enumerate() {
        assert_eq!(answer, Incoming::Result(json!({"of": index + 1, "text": "a\nb"})));
    }
    let answer = ask(&line, 500, "echo as text", json!({})).await;
    assert_eq!(answer, Incoming::Result(json!({})), "an id that became a text is known");
    let group = group_of(&line, 501, "group").await;
    line.close().await;
    assert!(living(group).is_empty(), "a closed line has no process");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_gets_its_own_variables_and_few_of_ours() {
    let line = server();
    let Incoming::Result(result) = ask(&line, 1, "group", json!({})).await else { panic!() };
    let names: Vec<&str> =
        result["env"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(names.contains(&"TOKEN") && names.contains(&"PATH"), "{names:?}");
    let foreign = |name: &&str| name.starts_with("CARGO") || name.starts_with("WAYPOST");
    assert!(!names.iter().any(foreign), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_with_a_progress_token_go_to_their_request() {
    let line = server();
    let mut server_messages = line.server_messages().unwrap();
    assert!(line.server_messages().is_none(), "given once");
    let params = json!({"_meta": {"progressToken": "t"}});
    let mut replies = line.request(outgoing(1, "progress", params)).await.unwrap();
    for step in 0..3 {
        let params = json!({"progressToken": "t", "progress": step});
        let method = "notifications/progress".to_owned();
        assert_eq!(next(&mut replies).await, Some(Incoming::Notification { method, params }));
    }
    assert_eq!(next(&mut replies).await, Some(Incoming::Result(json!({}))));
    news_of(&mut server_messages, "notifications/tools/list_changed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_pauses_the_timeout_until_answered() {
    let wall = Wall::default();
    let line = server_by(Arc::new(wall.clone()));
    let mut server_messages = line.server_messages().unwrap();
    let mut replies = line.request(outgoing(1, "ask", json!({}))).await.unwrap();
    let question = news_of(&mut server_messages, "elicitation/create").await;
    let Incoming::Request { id, .. } = question else { panic!("{question:?}") };
    // What comes after it is answered, so it was taken in whole.
    assert_eq!(ask(&line, 2, "echo", json!({})).await, Incoming::Result(json!({})));
    wall.pass(2 * LONG_MS);
    // A caller that kept counting would give up meanwhile.
    tokio::time::sleep(10 * STEP).await;
    line.send(wire::jsonrpc::result(&id, r#"{"action":"accept"}"#)).await.unwrap();
    let answer = next(&mut replies).await;
    assert_eq!(answer, Some(Incoming::Result(json!({"action": "accept"}))));
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_request_cancels_it() {
    let line = server();
    let mut server_messages = line.server_messages().unwrap();
    let hanging = line.request(outgoing(7, "hang", json!({}))).await.unwrap();
    // What comes after it is answered, so it was sent: one that was not needs no cancelling.
    assert_eq!(ask(&line, 8, "echo", json!({})).await, Incoming::Result(json!({})));
    drop(hanging);
    let heard = news_of(&mut server_messages, "notifications/heard").await;
    let Incoming::Notification { params, .. } = heard else { panic!("{heard:?}") };
    assert_eq!(params["requestId"], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_is_cancelled_as_well() {
    let wall = Wall::default();
    let line = server_by(Arc::new(wall.clone()));
    let mut server_messages = line.server_messages().unwrap();
    let mut replies = line.request(outgoing(8, "hang", json!({}))).await.unwrap();
    // What comes after it is answered, so it was sent.
    assert_eq!(ask(&line, 9, "echo", json!({})).await, Incoming::Result(json!({})));
    wall.pass(LONG_MS);
    let error = broken(next(&mut replies).await.unwrap());
    assert_eq!((error.how, error.kind), (CallProgress::Unknown, PeerErrorKind::Timeout));
    news_of(&mut server_messages, "notifications/heard").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_a_child_fails_all_active_calls() {
    // Its exit code may be known later than that it is silent, and is waited for.
    let line = server_by(Arc::new(Still));
    let mut server_messages = line.server_messages().unwrap();
    let mut waiting = line.request(outgoing(1, "hang", json!({}))).await.unwrap();
    let error = broken(ask(&line, 2, "die", json!({})).await);
    assert_eq!((error.how, error.kind), (CallProgress::Unknown, PeerErrorKind::Closed));
    assert!(error.message.contains("exit code 3"), "{error}");
    assert_eq!(line.last_words().as_deref(), Some("I die"));
    assert_eq!(broken(next(&mut waiting).await.unwrap()).how, CallProgress::Unknown);
    let error = line.request(outgoing(3, "echo", json!({}))).await.unwrap_err();
    assert_eq!((error.how, error.kind), (CallProgress::NotSent, PeerErrorKind::Closed));
    while in_time(server_messages.recv()).await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn final_output_is_read_and_descendants_of_a_dead_child_are_killed() {
    let line = server_by(Arc::new(Still));
    let group = group_of(&line, 1, "last words").await;
    gone(group).await;
    line.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stubborn_child_is_killed_with_its_descendants() {
    let line = server();
    let group = group_of(&line, 1, "child").await;
    assert_eq!(group_of(&line, 2, "stubborn").await, group);
    line.close().await;
    gone(group).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_line_ends_its_child_and_descendants() {
    let line = server();
    let group = group_of(&line, 1, "child").await;
    assert_eq!(living(group).len(), 2);
    drop(line);
    gone(group).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn some_garbage_is_tolerated_and_much_ends_the_child() {
    let line = server();
    let some = ask(&line, 1, "garbage", json!({"lines": 500})).await;
    assert_eq!(some, Incoming::Result(json!({})));
    let again = ask(&line, 2, "garbage", json!({"lines": 900})).await;
    assert_eq!(again, Incoming::Result(json!({})), "a message in between makes it good");
    let error = broken(ask(&line, 3, "garbage", json!({"lines": 2_000})).await);
    assert_eq!(error.kind, PeerErrorKind::NotMcp, "{error}");
    line.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_answer_ends_its_call_and_an_endless_line_the_child() {
    let limits = Limits { call_output_bytes_max: 150_000, ..impatient() };
    let line = start_with(limits, Arc::new(Wall::default()), &["python3", "-c", SERVER]);
    let group = group_of(&line, 1, "group").await;
    // A little too large, and so large that it is not kept while it is read.
    for (id, method, bytes) in
        [(2, "long", 150_000), (3, "long", 2_000_000), (4, "long, id last", 2_000_000)]
    {
        let mut waiting = line.request(outgoing(10 + id, "hang", json!({}))).await.unwrap();
        let error = broken(ask(&line, id, method, json!({"bytes": bytes})).await);
        assert_eq!((error.how, error.kind), (CallProgress::Unknown, PeerErrorKind::TooLarge));
        let answer = ask(&line, 20 + id, "echo", json!({})).await;
        assert_eq!(answer, Incoming::Result(json!({})), "the child goes on");
        let other = futures::FutureExt::now_or_never(waiting.recv());
        assert_eq!(other, None, "another call has nothing to do with it");
    }
    assert_eq!(group_of(&line, 30, "group").await, group, "it is the same child");
    let error = broken(ask(&line, 31, "long", json!({"bytes": 10_000_000})).await);
    assert_eq!(error.kind, PeerErrorKind::TooLarge);
    assert!(error.message.contains("was stopped"), "{error}");
    gone(group).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_throttled_and_answers_still_arrive() {
    let line = server();
    assert_eq!(ask(&line, 1, "flood", json!({})).await, Incoming::Result(json!({})));
    // No one reads the news: what it has no room for is left out.
    for id in 2..5 {
        assert_eq!(ask(&line, id, "echo", json!({})).await, Incoming::Result(json!({})));
    }
    let group = group_of(&line, 5, "group").await;
    line.close().await;
    gone(group).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_does_not_read_leaves_calls_unsent() {
    let wall = Wall::default();
    let line = start_with(impatient(), Arc::new(wall.clone()), &["python3", "-c", DEAF]);
    let mut server_messages = line.server_messages().unwrap();
    let large = json!({"x": "x".repeat(500_000)});
    let stuck = Outgoing { timeout_ms: 10 * LONG_MS, ..outgoing(1, "echo", large) };
    let mut stuck = line.request(stuck).await.unwrap();
    news_of(&mut server_messages, "notifications/there").await;
    let mut queued = line.request(outgoing(2, "echo", json!({}))).await.unwrap();
    wall.pass(LONG_MS);
    let error = broken(next(&mut queued).await.unwrap());
    assert_eq!((error.how, error.kind), (CallProgress::NotSent, PeerErrorKind::Timeout));
    line.close().await;
    assert_eq!(broken(next(&mut stuck).await.unwrap()).how, CallProgress::Unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_process_is_not_restarted() {
    let limits = Limits { upstream_connect_timeout_ms: 500, ..impatient() };
    let parts = parts(limits.clone(), Arc::new(Wall::default()));
    let line = start_with(limits, parts.clock.clone(), &["python3", "-c", LATE]);
    let connecting = Peer::connect(line.clone(), &parts, EraChoice::Any(None), &[]);
    let (peer, _news) = connecting.await.unwrap();
    assert_eq!(peer.era(), Era::Modern);
    let listed = peer.ask("tools/list", json!({}), None, LONG_MS).await.unwrap();
    assert_eq!(listed, json!({"tools": []}));
    line.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_is_named() {
    let parts = parts(Limits::default(), Arc::new(Still));
    let program = Program { command: "no-such-program", args: &[], env: &[], cwd: None };
    let error = ChildLine::start("fake", &program, &parts).err().unwrap();
    assert_eq!((error.how, error.kind), (CallProgress::NotSent, PeerErrorKind::Unreachable));
    assert!(error.message.contains("`no-such-program`"), "{error}");
}
