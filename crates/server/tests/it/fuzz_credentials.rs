//! Credentials and what comes beside them, as no client should send them, at the endpoints of a
//! server that asks for them. Whatever comes, there is an answer in time, it is no failure of ours,
//! nobody is let in without the whole key, and who has it is let in as ever.

use crate::credentials::Guarded;
use crate::house::request;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request};
use kernel::identity::roles::Role;
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::fuzz::hunt::Hunt;
use testkit::fuzz::mangle::scratch;
use testkit::fuzz::post::Post;
use testkit::sim::rng::Rng;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// How many requests the test command sends.
const CASES: u64 = 2_000;
/// After so many of them a good one must be answered.
const GOOD_EVERY: u64 = 100;
/// No answer of these tests takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// The server is behind a proxy, so that requests can come from many addresses.
const SETTINGS: &str = "[server.tls]\nby = \"proxy\"\n";
const TOKEN: &str = "/oauth/token";
/// Stands for the path among the headers of a post, which has none.
const PATH: &str = ":path";

/// What says who calls, for whom and where, and what may be taken for it.
const NAMES: &[&str] = &[
    "authorization",
    "authorization",
    "x-api-key",
    "x-api-key",
    "x-realm",
    "x-impersonate-subject",
    "x-impersonate-userid",
    "x-acting-on-behalf-of-userid",
    "x-agent-session-id",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-real-ip",
    "cookie",
    "proxy-authorization",
    "origin",
    "www-authenticate",
    "content-type",
];
const VALUES: &[&[u8]] = &[
    b"",
    b" ",
    b"Bearer",
    b"Bearer ",
    b"bearer\t",
    b"Basic Og==",
    b"Basic %",
    b"Negotiate x",
    b"wp_",
    b"wpt_",
    b"wpt_AAAA",
    b"wp_aaaaaaaaaa_a",
    b"a.b.c",
    b"..",
    b"eyJhbGciOiJub25lIn0.e30.",
    b"default",
    b"*",
    b"acme-*",
    b"../default",
    b"admin",
    b"local",
    b"ann",
    b"\xff\xfe",
    b"\x7f",
    b"127.0.0.1",
    b"::1",
    b"1.2.3.4, 5.6.7.8",
    b"for=\"[::1]\"",
    b"https",
    b"http",
    b"null",
];
const PATHS: &[&str] = &[
    "/api/v1/whoami",
    "/api/v1/whoami?access_token=wp_a",
    "/api/v1/tools",
    "/api/v1/keys",
    "/api/v1/whoami?realm=default",
    "/api/v1/whoami?realm=*&realm=a",
    "/api/v1/audit/head",
];

/// A server under fire, and a key that is good for reading.
struct Target<'a> {
    runtime: &'a Runtime,
    guarded: Guarded,
    key: String,
    looked: u64,
    /// How often each status was answered.
    tally: BTreeMap<u16, u64>,
}

impl Target<'_> {
    /// Sends a request and looks at what comes back.
    fn look(&mut self, post: &Post) -> Result<(), String> {
        let status = self.status(sent(post))?;
        *self.tally.entry(status).or_default() += 1;
        let is_in =
            |bytes: &[u8]| bytes.windows(self.key.len()).any(|part| part == self.key.as_bytes());
        let is_given = post.headers.iter().any(|(_, value)| is_in(value)) || is_in(&post.body);
        if status >= 500 {
            return Err(format!("status {status}"));
        }
        if status < 300 && !is_given {
            return Err(format!("status {status}, and the key was not sent"));
        }
        self.looked += 1;
        if self.looked.is_multiple_of(GOOD_EVERY) { self.good() } else { Ok(()) }
    }

    /// Who has the key is let in.
    fn good(&self) -> Result<(), String> {
        let mut good = request(Method::GET, "/api/v1/whoami", Body::empty());
        let key = HeaderValue::from_str(&self.key).map_err(|error| error.to_string())?;
        good.headers_mut().insert("x-api-key", key);
        match self.status(good)? {
            200 => Ok(()),
            status => Err(format!("a good request was answered with {status}")),
        }
    }

    fn status(&self, request: Request<Body>) -> Result<u16, String> {
        let answered = self.runtime.block_on(timeout(PATIENCE, self.guarded.send(request)));
        let answer = answered.map_err(|_| format!("no answer within {PATIENCE:?}"))?;
        Ok(answer.status().as_u16())
    }
}

/// The request that this is: the first header names its path. Headers that HTTP cannot carry are
/// left out.
fn sent(post: &Post) -> Request<Body> {
    let mut path = "/api/v1/whoami";
    let mut headers = post.headers.as_slice();
    if let Some(((name, value), rest)) = headers.split_first()
        && name == PATH
    {
        let named = std::str::from_utf8(value).ok().filter(|path| path.starts_with('/'));
        path = named.unwrap_or(path);
        headers = rest;
    }
    let method = if path == TOKEN { Method::POST } else { Method::GET };
    let mut request = request(method, path, Body::from(post.body.clone()));
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            request.headers_mut().append(name, value);
        }
    }
    request
}

/// A request out of pieces, with this key in some of them, whole or not.
fn made(rng: &mut Rng, key: &str) -> Post {
    let to_token = rng.chance(25);
    let path = if to_token { TOKEN } else { rng.pick(PATHS).copied().unwrap_or_default() };
    let mut headers = vec![(PATH.to_owned(), path.as_bytes().to_vec())];
    let from = format!("10.{}.{}.{}", rng.below(256), rng.below(256), rng.below(256));
    headers.push(("x-forwarded-for".to_owned(), from.into_bytes()));
    for _ in 0..rng.below(4) {
        let name = rng.pick(NAMES).copied().unwrap_or_default();
        headers.push((name.to_owned(), value(rng, key)));
    }
    let mut body = Vec::new();
    if to_token {
        let id = key.split('_').nth(1).unwrap_or_default();
        body = format!("grant_type=client_credentials&client_id={id}&client_secret={key}").into();
        for _ in 0..rng.below(3) {
            scratch(rng, &mut body, key.as_bytes());
        }
    }
    Post { method: "GET".to_owned(), headers, body }
}

fn value(rng: &mut Rng, key: &str) -> Vec<u8> {
    let mut value = match rng.below(10) {
        0..=4 => rng.pick(VALUES).copied().unwrap_or_default().to_vec(),
        5 | 6 => key.as_bytes().to_vec(),
        7 | 8 => format!("Bearer {key}").into_bytes(),
        _ => format!("Bearer {}", "a".repeat(rng.below(40_000) as usize)).into_bytes(),
    };
    if rng.chance(30) {
        scratch(rng, &mut value, key.as_bytes());
    }
    value
}

#[test]
fn no_request_without_the_whole_key_is_served() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let guarded = runtime.block_on(Guarded::start(SETTINGS));
    let key = runtime.block_on(guarded.key(Role::Viewer));
    let looked = 0;
    let tally = BTreeMap::new();
    let mut target = Target { runtime: &runtime, guarded, key: key.clone(), looked, tally };
    target.good().unwrap();
    let make = |rng: &mut Rng| made(rng, &key);
    let looked = Hunt::new("credentials", CASES).run(make, |post| target.look(post));
    target.good().unwrap();
    // A hunt that is always turned away, or never, shows nothing.
    let missing: Vec<u16> =
        [200, 400, 401, 403].into_iter().filter(|kind| !target.tally.contains_key(kind)).collect();
    assert!(looked < CASES || missing.is_empty(), "never {missing:?}: {:?}", target.tally);
}
