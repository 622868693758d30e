//! The few reads of `/api/v1` that several tests need: each succeeds or ends the test with what
//! the server said.

use serde::de::DeserializeOwned;
use serde_json::Value;
use testkit::http::Client;
use testkit::kill::{Ask, Run, read};

const PAGE_ITEMS: usize = 200;
const PAGES_MAX: usize = 10_000;

/// The body of a GET that must answer 200.
pub(crate) fn get(client: &mut Client, path: &str) -> Value {
    let answer = client.get(path).unwrap_or_else(|error| panic!("GET {path}: {error}"));
    assert_eq!(answer.status, 200, "GET {path}: {}", answer.body);
    answer.json()
}

/// A run that must be there.
pub(crate) fn run(client: &mut Client, id: &str) -> Run {
    read(&get(client, &format!("/api/v1/runs/{id}"))["run"])
}

/// A run, unless it was removed.
pub(crate) fn find_run(client: &mut Client, id: &str) -> Option<Run> {
    find(client, &format!("/api/v1/runs/{id}")).map(|body| read(&body["run"]))
}

/// An ask, unless it was removed.
pub(crate) fn find_ask(client: &mut Client, id: &str) -> Option<Ask> {
    find(client, &format!("/api/v1/asks/{id}")).map(|body| read(&body))
}

/// The body of a GET that must answer 200 or 404.
fn find(client: &mut Client, path: &str) -> Option<Value> {
    let answer = client.get(path).unwrap_or_else(|error| panic!("GET {path}: {error}"));
    match answer.status {
        404 => None,
        status => {
            assert_eq!(status, 200, "GET {path}: {}", answer.body);
            Some(answer.json())
        }
    }
}

/// Open asks, of one session if a key is given.
pub(crate) fn open_asks(client: &mut Client, session: Option<&str>) -> Vec<Ask> {
    let only = session.map_or(String::new(), |key| format!("&session={}", encoded(key)));
    all(client, &format!("/api/v1/asks?status=open{only}"))
}

/// All items of a list, page by page; the path has a query already.
pub(crate) fn all<T: DeserializeOwned>(client: &mut Client, path: &str) -> Vec<T> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    for _ in 0..PAGES_MAX {
        let page = get(client, &format!("{path}&limit={PAGE_ITEMS}{cursor}"));
        items.extend(read::<Vec<T>>(&page["items"]));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={}", encoded(next)),
            None => return items,
        }
    }
    panic!("`{path}` has more than {PAGES_MAX} pages");
}

/// Percent-encoded for a query.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
