//! A2A under messages that no client should send: a corpus of right ones of 1.0, 0.3 and
//! AgentVault's profile, mangled, and calls of gRPC whose frames, messages and deadlines are.
//! Whatever comes, there is an answer in time that a client can read, it is no failure of ours, and
//! the next good message is answered as ever.

use crate::a2a::{ADD, SETTINGS, message, project, send};
use crate::fuzz_mcp::{PATIENCE, answered, next, reached, request, whole};
use crate::house::House;
use axum::body::BodyDataStream;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Uri, Version};
use http_body_util::BodyExt;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use server::{A2A_OPERATIONS, VAULT_METHODS};
use std::collections::BTreeMap;
use testkit::fuzz::answers::{Said, check_json, events, ids};
use testkit::fuzz::corpus::{Seed, seeds};
use testkit::fuzz::hunt::Hunt;
use testkit::fuzz::mangle::scratch;
use testkit::fuzz::post::{PATH, Post};
use testkit::http::grpc::{framed, status};
use testkit::sim::rng::Rng;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use wire::a2a::GRPC_SERVICE;
use wire::a2a::proto::status::{HEADER_STATUS, Status};
use wire::a2a::proto::{Operation, write};

/// How many messages the test command sends.
const CASES: u64 = 1_500;
const CALLS: u64 = 1_500;
/// After so many messages a good one must be answered.
const GOOD_EVERY: u64 = 100;
/// After so many there is a new task that waits: messages answer it, or cancel it.
const TASK_EVERY: u64 = 10;
/// Where JSON-RPC is spoken, in 1.0 and 0.3.
const ADDRESS: &str = "/a2a/v1";
const VAULT: &str = "/a2a";

/// Deadlines of calls; some are none.
const TIMEOUTS: &[&[u8]] = &[
    b"1H", b"99999999H", b"30S", b"10M", b"0m", b"1n", b"5u", b"", b"S", b"-1S", b"123456789S",
    b"1.5S", b" 1S", b"1s", b"\xff",
];

/// The server under fire.
struct Target<'a> {
    runtime: &'a Runtime,
    house: House,
    /// A task that waits, unless it was answered since.
    task: String,
    looked: u64,
    /// How often each kind of answer was given.
    tally: BTreeMap<String, u64>,
}

impl<'a> Target<'a> {
    fn new(runtime: &'a Runtime) -> Self {
        // A message that comes again is a new one here.
        let mut project = project(&format!("{SETTINGS}repeat_window = 0\nproxy = true\n"));
        // No task is waited for as long as an answer is, and there is not much room.
        project.config.a2a.limits.a2a_wait_ms_max = 20_000;
        project.config.limits.body_bytes_max = 60_000;
        let house = runtime.block_on(House::build(project, None));
        Self { runtime, house, task: String::new(), looked: 0, tally: BTreeMap::new() }
    }

    /// The message about a task that waits.
    fn placed(&mut self, post: &Post) -> Post {
        if self.looked.is_multiple_of(TASK_EVERY) {
            let asks = message("task", "it/question", json!({"data": {}}));
            let task = self.runtime.block_on(send(&self.house, asks));
            self.task = task["id"].as_str().unwrap_or_default().to_owned();
        }
        post.clone().about_task(&self.task)
    }

    /// Sends a message and looks at what comes back.
    fn look(&mut self, post: &Post) -> Result<(), String> {
        let post = self.placed(post);
        let kinds = self.runtime.block_on(sent(&self.house, &post))?;
        self.count(kinds)
    }

    /// The same for a call of gRPC.
    fn call(&mut self, post: &Post) -> Result<(), String> {
        let post = self.placed(post);
        let ended = self.runtime.block_on(called(&self.house, &post))?;
        self.count(vec![ended])
    }

    fn count(&mut self, kinds: Vec<String>) -> Result<(), String> {
        for kind in kinds {
            *self.tally.entry(kind).or_default() += 1;
        }
        self.looked += 1;
        if self.looked.is_multiple_of(GOOD_EVERY) { self.good() } else { Ok(()) }
    }

    /// A good message is answered as ever.
    fn good(&self) -> Result<(), String> {
        let add = message("good", ADD, json!({"data": {"a": 2, "b": 3}}));
        let task = self.runtime.block_on(send(&self.house, add));
        match task["status"]["state"] == "TASK_STATE_COMPLETED" {
            true => Ok(()),
            false => Err(format!("a good message was answered with {task}")),
        }
    }
}

/// The kinds of answers that a message got.
async fn sent(house: &House, post: &Post) -> Result<Vec<String>, String> {
    let path = post.path().filter(|path| path.parse::<Uri>().is_ok()).unwrap_or(ADDRESS);
    let response = answered(house, request(path, post)).await?;
    let status = response.status().as_u16();
    let is_stream = media_type(response.headers()) == "text/event-stream";
    let body = response.into_body().into_data_stream();
    let text = match is_stream {
        true => first(body).await?.unwrap_or_default(),
        false => whole(body).await?,
    };
    if status >= 500 {
        return Err(format!("status {status}: {text}"));
    }
    let mut kinds = vec![status.to_string()];
    if !text.is_empty() {
        let is_called = post.method == "POST" && [ADDRESS, VAULT].contains(&path) && !is_stream;
        let asked = ids(&post.body);
        let kind = judged(&Place { path, is_called }, &text, &asked);
        kinds.push(kind.map_err(|wrong| format!("{path}, status {status}: {wrong}"))?);
    }
    Ok(kinds)
}

/// Where an answer came from.
struct Place<'a> {
    path: &'a str,
    /// Whether it must be one of JSON-RPC.
    is_called: bool,
}

/// What kind of answer this is; an error where it is none that a client can read.
fn judged(place: &Place<'_>, text: &str, asked: &[String]) -> Result<String, String> {
    // Ids come back as they are, also where they are half a character.
    let answer: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(text).map_err(|error| format!("no JSON ({error}): {text}"))?;
    if !answer.contains_key("jsonrpc") {
        let error = answer.get("error").map(|raw| serde_json::from_str::<Value>(raw.get()));
        let error = error.and_then(Result::ok).unwrap_or_default();
        return match (place.is_called, error["code"].as_i64()) {
            (true, _) => Err(format!("no answer of JSON-RPC: {text}")),
            (false, Some(code)) => Ok(format!("error {code}")),
            (false, None) => Ok("body".to_owned()),
        };
    }
    // Clients of AgentVault wait for an answer to what has no id.
    let is_unnamed = place.path.starts_with(VAULT)
        && !place.path.starts_with(ADDRESS)
        && asked.iter().all(|id| id == "null")
        && answer.get("id").is_none_or(|id| id.get() == "null")
        && answer.contains_key("result");
    if is_unnamed {
        return Ok("result".to_owned());
    }
    match check_json(text, asked)?.as_slice() {
        [Said::Response(None)] => Ok("result".to_owned()),
        [Said::Response(Some(code))] => Ok(code.to_string()),
        other => Err(format!("one answer was expected: {other:?}")),
    }
}

/// The first event of a stream, which may have no end while its task waits.
async fn first(mut body: BodyDataStream) -> Result<Option<String>, String> {
    let mut text = String::new();
    loop {
        if let Some(event) = events(&text).into_iter().next() {
            return Ok(Some(event));
        }
        let Some(chunk) = next(&mut body).await? else { return Ok(None) };
        text.push_str(std::str::from_utf8(&chunk).map_err(|error| error.to_string())?);
    }
}

fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().to_owned()
}

/// How a call of gRPC ended.
async fn called(house: &House, post: &Post) -> Result<String, String> {
    // What is made smaller may have lost it.
    let Some(path) = post.path() else { return Ok("nowhere".to_owned()) };
    let mut request = request(path, post);
    *request.version_mut() = Version::HTTP_2;
    let (head, mut body) = answered(house, request).await?.into_parts();
    if media_type(&head.headers) != "application/grpc" {
        let status = head.status.as_u16();
        return if status < 500 { Ok(status.to_string()) } else { Err(format!("status {status}")) };
    }
    if head.headers.contains_key(HEADER_STATUS) {
        return told(&status(&head.headers));
    }
    let is_stream = path.ends_with("/SendStreamingMessage") || path.ends_with("/SubscribeToTask");
    loop {
        let frame = timeout(PATIENCE, body.frame()).await;
        let frame = frame.map_err(|_| format!("an answer that stops for {PATIENCE:?}"))?;
        let frame = frame.ok_or("an answer without a status")?.map_err(|why| why.to_string())?;
        match frame.into_trailers() {
            Ok(trailers) => return told(&status(&trailers)),
            Err(_) if is_stream => return Ok("event".to_owned()),
            Err(_) => {}
        }
    }
}

/// The name of a status that is no failure of ours.
fn told(status: &Status) -> Result<String, String> {
    match status.name() {
        "INTERNAL" | "UNKNOWN" => Err(format!("it ended with {status:?}")),
        name => Ok(name.to_owned()),
    }
}

/// A call out of these messages of JSON-RPC, made wrong as bytes.
fn mangled_call(rng: &mut Rng, seeds: &[Seed]) -> Post {
    let written = |seed: Option<&Seed>| {
        let bytes = seed.map(|seed| seed.bytes.as_slice()).unwrap_or_default();
        let message: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        // A message of 0.3 names its method otherwise.
        let operation = Operation::named(&method).unwrap_or(Operation::SendMessage);
        let params = write(operation.request(), &message["params"]);
        (method, params)
    };
    let (method, mut params) = written(rng.pick(seeds));
    let (_, other) = written(rng.pick(seeds));
    if rng.chance(70) {
        for _ in 0..=rng.below(3) {
            scratch(rng, &mut params, &other);
        }
    }
    let mut body = framed(&params);
    if rng.chance(20) {
        scratch(rng, &mut body, &other);
    }
    let mut headers: Vec<(String, Vec<u8>)> = [
        (PATH, format!("{GRPC_SERVICE}/{method}").as_str()),
        ("content-type", "application/grpc"),
        ("a2a-version", "1.0"),
    ]
    .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
    .to_vec();
    if rng.chance(40) {
        let mut deadline = rng.pick(TIMEOUTS).map(|text| text.to_vec()).unwrap_or_default();
        if rng.chance(30) {
            scratch(rng, &mut deadline, b"");
        }
        headers.push(("grpc-timeout".to_owned(), deadline));
    }
    Post { method: "POST".to_owned(), headers, body }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a2a_answers_whatever_it_is_sent() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut target = Target::new(&runtime);
    let all = seeds("a2a");
    for seed in &all {
        let right = target.look(&Post::of(seed));
        right.unwrap_or_else(|wrong| panic!("{}: {wrong}", seed.name));
    }
    target.good().unwrap();
    let make = |rng: &mut Rng| Post::mangled(rng, &all);
    let looked = Hunt::new("a2a", CASES).run(make, |post| target.look(post));
    target.good().unwrap();
    let kinds = [
        "result", "body", "200", "400", "error 400", "-32700", "-32600", "-32601", "-32602",
        "-32001",
    ];
    reached(looked, &target.tally, &kinds);
}

#[test]
fn grpc_answers_whatever_it_is_sent() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut target = Target::new(&runtime);
    let mut all = seeds("a2a");
    all.retain(|seed| seed.name.starts_with("v1-rpc-"));
    let make = |rng: &mut Rng| mangled_call(rng, &all);
    let looked = Hunt::new("a2a over gRPC", CALLS).run(make, |post| target.call(post));
    target.good().unwrap();
    reached(looked, &target.tally, &["OK", "event", "INVALID_ARGUMENT", "NOT_FOUND"]);
}

/// The methods of messages whose names begin so.
fn methods(begin: &str) -> Vec<String> {
    let all = seeds("a2a").into_iter().filter(|seed| seed.name.starts_with(begin));
    all.map(|seed| {
        let message: Value = serde_json::from_slice(&seed.bytes).unwrap();
        message["method"].as_str().unwrap_or_default().to_owned()
    })
    .collect()
}

#[test]
fn the_corpus_has_every_operation_of_a2a_in_every_version() {
    let new = methods("v1-rpc-");
    for operation in A2A_OPERATIONS {
        assert!(new.iter().any(|method| method == operation.method), "{}", operation.method);
    }
    let old = methods("v03-rpc-");
    for method in [
        "message/send",
        "message/stream",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotificationConfig/delete",
        "agent/getAuthenticatedExtendedCard",
    ] {
        assert!(old.iter().any(|known| known == method), "{method}");
    }
    let vault = methods("vault-");
    for (method, _) in VAULT_METHODS {
        assert!(vault.iter().any(|known| known == method), "{method}");
    }
}
