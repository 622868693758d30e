//! A message on its way: a seed of the corpus with the headers that a client of its era sends, and
//! the same made wrong.

use super::corpus::Seed;
use super::hunt::Input;
use super::mangle::{mangle, scratch};
use crate::sim::rng::Rng;
use serde_json::Value;
use std::fmt::Write;

/// Stands in headers for the id of the session that is open.
pub const SESSION: &str = "SESSION";
/// Stands in messages for a task: as long as the id of one, so that lengths before it still hold.
pub const TASK: &str = "run_00000000000000000000000000000000";
/// The header that is none: the path, where a folder of the corpus has messages for several.
pub const PATH: &str = ":path";

/// Where messages of A2A go, by how their names begin.
const A2A_PATHS: &[(&str, &str)] = &[
    ("v1-rpc-", "/a2a/v1"),
    ("v1-send-", "/a2a/v1/message:send"),
    ("v1-stream-", "/a2a/v1/message:stream"),
    ("v1-cancel-", "/a2a/v1/tasks/run_00000000000000000000000000000000:cancel"),
    ("v1-webhook-", "/a2a/v1/tasks/run_00000000000000000000000000000000/pushNotificationConfigs"),
    ("v03-rpc-", "/a2a/v1"),
    ("v03-send-", "/a2a/v1/v1/message:send"),
    ("v03-stream-", "/a2a/v1/v1/message:stream"),
    ("v03-cancel-", "/a2a/v1/v1/tasks/run_00000000000000000000000000000000:cancel"),
    (
        "v03-webhook-",
        "/a2a/v1/v1/tasks/run_00000000000000000000000000000000/pushNotificationConfigs",
    ),
    ("vault-", "/a2a"),
];

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

const METHODS: &[&str] = &["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"];

const NAMES: &[&str] = &[
    "accept", "content-type", "content-encoding", "mcp-protocol-version", "mcp-method", "mcp-name",
    "mcp-session-id", "mcp-param-a", "mcp-param-", "last-event-id", "origin", "authorization",
    "idempotency-key", "x-forwarded-host", "expect",
];

const VALUES: &[&[u8]] = &[
    b"",
    b"0",
    b"null",
    b"*/*",
    b"*/*;q=0",
    b"text/event-stream",
    b"application/json",
    b"application/json; charset=utf-16",
    b"text/plain",
    b"multipart/form-data; boundary=x",
    b"gzip",
    b"2026-07-28",
    b"2025-11-25",
    b"2026-07-28, 2025-11-25",
    b"1900-01-01",
    b"tools/call",
    b"TOOLS/CALL",
    b"math__add",
    b"=?base64??=",
    b"=?base64?bWF0aF9fYWRk?=",
    b"=?base64?bWF0aF9fYWRk",
    b"=?base64?!!!!?=",
    b"=?base64?/////w==?=",
    b"=?BASE64?bWF0aF9fYWRk?=",
    b"\xff\xfe\xc3\x28",
    b"Bearer ",
    b"http://localhost:8420",
    b"http://evil.test",
    b"1-1",
    b"0-18446744073709551615",
    b"99999999999999999999-1",
    b"00000000000000000000000000000000",
    b"SESSION",
];

/// A request to one of the endpoints that take JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// The HTTP method.
    pub method: String,
    /// The headers beside host and length; `SESSION` stands for the open session's id.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Post {
    /// A message as a client sends it.
    pub fn of(seed: &Seed) -> Self {
        Self {
            method: "POST".to_owned(),
            headers: headers(seed, &seed.bytes),
            body: seed.bytes.clone(),
        }
    }

    /// One of these messages, made wrong.
    pub fn mangled(rng: &mut Rng, seeds: &[Seed]) -> Self {
        let (Some(seed), Some(other)) = (rng.pick(seeds), rng.pick(seeds)) else {
            return Self { method: "POST".to_owned(), headers: Vec::new(), body: Vec::new() };
        };
        let mut post = Self::of(seed);
        if rng.chance(80) {
            post.body = mangle(rng, &seed.bytes, &other.bytes);
            // Mostly the headers say what the body says, or nothing behind them is ever reached.
            if rng.chance(80) {
                post.headers = headers(seed, &post.body);
            }
        }
        if rng.chance(25) {
            for _ in 0..=rng.below(3) {
                post.mangle_headers(rng);
            }
        }
        if rng.chance(5) {
            post.method = rng.pick(METHODS).map_or(String::new(), |method| (*method).to_owned());
        }
        post
    }

    fn mangle_headers(&mut self, rng: &mut Rng) {
        let at = rng.below(self.headers.len() as u64) as usize;
        match rng.below(4) {
            0 if at < self.headers.len() => drop(self.headers.remove(at)),
            1 => {
                if let Some((_, known)) = self.headers.get_mut(at) {
                    *known = value(rng);
                }
            }
            2 => {
                if let Some((_, known)) = self.headers.get_mut(at) {
                    scratch(rng, known, b"");
                }
            }
            _ => {
                let name = rng.pick(NAMES).map_or(String::new(), |name| (*name).to_owned());
                self.headers.push((name, value(rng)));
            }
        }
    }

    /// The same with the id of the session that is open.
    #[must_use]
    pub fn in_session(mut self, id: &str) -> Self {
        for (_, value) in &mut self.headers {
            if value == SESSION.as_bytes() {
                *value = id.as_bytes().to_vec();
            }
        }
        self
    }

    /// The same about this task.
    #[must_use]
    pub fn about_task(mut self, id: &str) -> Self {
        assert_eq!(id.len(), TASK.len(), "`{id}` is no id of a task");
        self.headers.iter_mut().for_each(|(_, value)| name_task(value, id));
        name_task(&mut self.body, id);
        self
    }

    /// The path among its headers, if it is one.
    pub fn path(&self) -> Option<&str> {
        let (_, path) = self.headers.iter().find(|(name, _)| name == PATH)?;
        std::str::from_utf8(path).ok().filter(|path| path.starts_with('/'))
    }

    /// As HTTP/1.1 to this path of this host.
    pub fn to_http(&self, host: &str, path: &str) -> Vec<u8> {
        let mut bytes = format!("{} {path} HTTP/1.1\r\nhost: {host}\r\n", self.method).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend(value.iter().filter(|byte| !matches!(byte, b'\r' | b'\n')));
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// What a client of the seed's era sends with this body.
fn headers(seed: &Seed, body: &[u8]) -> Vec<(String, Vec<u8>)> {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut headers = Vec::new();
    let mut add = |name: &str, value: &str| {
        headers.push((name.to_owned(), value.as_bytes().to_vec()));
    };
    add("content-type", "application/json");
    add("accept", "application/json, text/event-stream");
    if seed.name.starts_with("modern") {
        let params = &message["params"];
        add("mcp-protocol-version", params["_meta"][META_VERSION].as_str().unwrap_or(MODERN));
        add("mcp-method", message["method"].as_str().unwrap_or_default());
        let about = ["name", "uri", "taskId"].into_iter().find_map(|key| params[key].as_str());
        if let Some(about) = about {
            add("mcp-name", about);
        }
    } else if seed.name.starts_with("legacy") && message["method"] != "initialize" {
        add("mcp-session-id", SESSION);
        add("mcp-protocol-version", LEGACY);
    }
    let place = A2A_PATHS.iter().find(|(begin, _)| seed.name.starts_with(begin));
    if let Some((begin, path)) = place {
        if begin.starts_with("v1-") {
            add("a2a-version", "1.0");
        }
        add(PATH, path);
    }
    headers
}

fn name_task(bytes: &mut [u8], id: &str) {
    let mut at = 0;
    while let Some(found) = position(&bytes[at..], TASK.as_bytes()) {
        at += found;
        bytes[at..at + id.len()].copy_from_slice(id.as_bytes());
        at += id.len();
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn value(rng: &mut Rng) -> Vec<u8> {
    if rng.chance(10) {
        return b"a".repeat(rng.below(4_000) as usize);
    }
    rng.pick(VALUES).map_or(Vec::new(), |value| value.to_vec())
}

impl Input for Post {
    fn smaller(&self) -> Box<dyn Iterator<Item = Self> + '_> {
        let fewer = (0..self.headers.len()).map(move |at| {
            let mut smaller = self.clone();
            smaller.headers.remove(at);
            smaller
        });
        let shorter = self.body.smaller().map(move |body| Self { body, ..self.clone() });
        Box::new(fewer.chain(shorter))
    }

    fn shown(&self) -> String {
        let mut shown = format!("{}\n", self.method);
        for (name, value) in &self.headers {
            // Writing to a string cannot fail.
            let _ = writeln!(shown, "{name}: {}", value.escape_ascii());
        }
        shown.push('\n');
        shown.push_str(&self.body.shown());
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(name: &str, text: &str) -> Seed {
        Seed { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    fn shown(seed: &Seed) -> String {
        Post::of(seed).in_session("s1").shown()
    }

    #[test]
    fn a_message_gets_the_headers_of_its_era() {
        let call = r#"{"method":"tools/call","params":{"name":"a"}}"#;
        let modern = shown(&seed("modern-x", call));
        for line in
            ["mcp-protocol-version: 2026-07-28\n", "mcp-method: tools/call\n", "mcp-name: a\n"]
        {
            assert!(modern.contains(line), "{modern}");
        }
        let legacy = shown(&seed("legacy-x", call));
        assert!(
            legacy.contains("mcp-session-id: s1\n") && !legacy.contains("mcp-method"),
            "{legacy}"
        );
        let hello = shown(&seed("legacy-y", r#"{"method":"initialize"}"#));
        assert!(!hello.contains("mcp-session-id"), "{hello}");
    }

    #[test]
    fn a_message_of_a2a_knows_its_path_and_its_task() {
        let body = format!("[\"{TASK}\",\"{TASK}\"]");
        let id = format!("run_{}", "7".repeat(32));
        let post = Post::of(&seed("v1-cancel-x", &body)).about_task(&id);
        assert_eq!(post.path(), Some(format!("/a2a/v1/tasks/{id}:cancel").as_str()));
        assert_eq!(post.body, body.replace(TASK, &id).into_bytes());
        assert!(post.shown().contains("a2a-version: 1.0\n"), "{}", post.shown());
        let old = Post::of(&seed("v03-rpc-x", "{}"));
        assert!(old.path() == Some("/a2a/v1") && !old.shown().contains("a2a-version"));
        assert_eq!(Post::of(&seed("modern-x", "{}")).path(), None);
    }

    #[test]
    fn smaller_posts_have_fewer_headers_or_a_shorter_body() {
        let post = Post::of(&seed("x", "{}"));
        let smaller: Vec<Post> = post.smaller().collect();
        assert_eq!(smaller.len(), 4);
        assert!(smaller[..2].iter().all(|smaller| smaller.headers.len() == 1));
        assert!(smaller[2..].iter().all(|smaller| smaller.body.len() == 1));
        let http = String::from_utf8(post.to_http("h", "/mcp")).unwrap();
        assert!(http.starts_with("POST /mcp HTTP/1.1\r\nhost: h\r\n"), "{http}");
        assert!(http.ends_with("content-length: 2\r\n\r\n{}"), "{http}");
    }
}
