//! `/api/v1/events`.

use crate::house::{House, refused, request, text};
use axum::body::{Body, BodyDataStream};
use axum::http::{Method, Response};
use futures::StreamExt;
use project::folder::Project;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const PATH: &str = "/api/v1/events";
/// No event of these tests takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// One event of the feed: its id, its name and its data.
type Told = (String, String, Value);

/// A client that reads events one by one.
struct Client {
    bytes: BodyDataStream,
    text: String,
}

impl Client {
    /// Connects, and gives the snapshot.
    async fn connect(house: &House, path: &str, last: Option<&str>) -> (Self, Value) {
        let response = open(house, path, last).await;
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut client =
            Self { bytes: response.into_body().into_data_stream(), text: String::new() };
        let (id, name, data) = client.next().await;
        assert_eq!((id.as_str(), name.as_str()), ("", "snapshot"));
        (client, data)
    }

    async fn next(&mut self) -> Told {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let told = told(block);
                self.text = rest.to_owned();
                return told;
            }
            let read = tokio::time::timeout(PATIENCE, self.bytes.next()).await;
            let bytes = read.expect("an event should have come").unwrap().unwrap();
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    async fn take(&mut self, count: usize) -> Vec<Told> {
        let mut events = Vec::new();
        while events.len() < count {
            events.push(self.next().await);
        }
        events
    }
}

async fn open(house: &House, path: &str, last: Option<&str>) -> Response<Body> {
    let mut request = request(Method::GET, path, Body::empty());
    if let Some(last) = last {
        request.headers_mut().insert("last-event-id", last.parse().unwrap());
    }
    house.open(request).await
}

fn told(block: &str) -> Told {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(|value| value.trim_start().to_owned()).collect::<Vec<_>>().join("\n")
    };
    let data = serde_json::from_str(&field("data:")).unwrap_or(Value::Null);
    (field("id:"), field("event:"), data)
}

async fn finished(house: &House, key: &str) -> Value {
    let input = json!({"a": 1, "b": 1});
    house.run(json!({"planId": "math::conditional_add", "input": input, "session": key})).await
}

/// How many events all sessions have together.
async fn count(house: &House, keys: &[&str]) -> usize {
    let mut count = 0;
    for key in keys {
        let export = house.get(&format!("/api/v1/sessions/{key}/export")).await;
        count += export.body["events"].as_array().unwrap().len();
    }
    count
}

#[tokio::test]
async fn the_feed_sends_all_sessions_in_order() {
    let house = House::demo().await;
    let first = finished(&house, "a").await;
    let waiting = house.greeting().await;
    let (mut client, snapshot) = Client::connect(&house, PATH, None).await;
    assert_eq!(snapshot["realm"], "default");
    assert_eq!(snapshot["asks"], json!([waiting["run"]["asks"][0]["id"]]));
    let events = client.take(count(&house, &["a"]).await).await;
    for (index, (id, name, data)) in events.iter().enumerate() {
        assert!(id.starts_with('w') && id.len() == 41 && name.is_empty(), "{id} {name}");
        assert_eq!(data["session"], first["session"]["id"]);
        assert_eq!(data["event"]["seq"], index + 1);
    }
    let unlike: BTreeSet<&String> = events.iter().map(|(id, _, _)| id).collect();
    assert_eq!(unlike.len(), events.len(), "each has its own place");
    let (_, _, next) = client.next().await;
    assert_eq!(next["session"], waiting["session"]["id"]);
    assert_eq!(next["event"]["type"], "session.created");
}

#[tokio::test]
async fn an_event_is_sent_when_it_happens() {
    let house = House::demo().await;
    finished(&house, "a").await;
    let (client, snapshot) = Client::connect(&house, PATH, None).await;
    drop(client);
    let path = format!("{PATH}?after={}", text(&snapshot["cursor"]));
    let (mut client, _) = Client::connect(&house, &path, None).await;
    let later = finished(&house, "b").await;
    let events = client.take(count(&house, &["b"]).await).await;
    assert!(events.iter().all(|(_, _, data)| data["session"] == later["session"]["id"]));
    assert_eq!(events[0].2["event"]["type"], "session.created");
    assert_eq!(events[events.len() - 1].2["event"]["type"], "run.ended");
}

#[tokio::test]
async fn a_client_that_is_cut_off_after_any_event_misses_nothing() {
    let house = House::demo().await;
    finished(&house, "a").await;
    finished(&house, "b").await;
    let count = count(&house, &["a", "b"]).await;
    let (mut client, _) = Client::connect(&house, PATH, None).await;
    let all = client.take(count).await;
    let mut seen: Vec<Told> = Vec::new();
    while seen.len() < count {
        let last = seen.last().map(|(id, _, _)| id.as_str());
        // What the header says counts, not the older place in the address.
        let path = match last {
            Some(_) => format!("{PATH}?after={}", all[0].0),
            None => PATH.to_owned(),
        };
        let (mut client, _) = Client::connect(&house, &path, last).await;
        seen.push(client.next().await);
    }
    assert_eq!(seen, all);
}

#[tokio::test]
async fn a_malformed_feed_cursor_is_refused() {
    let house = House::demo().await;
    finished(&house, "a").await;
    for place in ["x", "", "7", "1-0", "ffff-0", "0-0", "1-0-0"] {
        let answer = house.get(&format!("{PATH}?after={place}")).await;
        assert_eq!(answer.refusal(), refused(400, "bad_cursor", &[]), "{place}");
        assert_eq!(open(&house, PATH, Some(place)).await.status().as_u16(), 400, "{place}");
    }
    assert_eq!(house.get(&format!("{PATH}?from=1")).await.status, 400);
}

#[tokio::test]
async fn a_cursor_of_a_list_is_no_feed_cursor() {
    let house = House::demo().await;
    finished(&house, "a").await;
    finished(&house, "b").await;
    let (mut client, _) = Client::connect(&house, PATH, None).await;
    let (id, _, _) = client.next().await;
    let cursor = text(&house.get("/api/v1/sessions?limit=1").await.body["nextCursor"]);
    let answer = house.get(&format!("{PATH}?after={cursor}")).await;
    assert_eq!(answer.refusal(), refused(400, "bad_cursor", &[]));
    let answer = house.get(&format!("/api/v1/sessions?cursor={id}")).await;
    assert_eq!(answer.refusal(), refused(400, "bad_cursor", &[]));
}

#[tokio::test]
async fn feed_cursors_are_the_same_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(Project::demo, &data, None).await;
    finished(&house, "a").await;
    let (mut client, before) = Client::connect(&house, PATH, None).await;
    let events = client.take(count(&house, &["a"]).await).await;
    drop(client);
    stopper.stop().await;
    drop(house);

    let (house, stopper) = House::over(Project::demo, &data, None).await;
    let (mut client, after) = Client::connect(&house, PATH, Some(&events[1].0)).await;
    assert_eq!(after["cursor"], before["cursor"]);
    assert_eq!(client.take(events.len() - 2).await, events[2..]);
    drop(client);
    stopper.stop().await;
}

#[tokio::test]
async fn a_feed_cursor_before_removed_events_is_gone() {
    let house = House::demo().await;
    finished(&house, "a").await;
    let (mut client, _) = Client::connect(&house, PATH, None).await;
    let (first, _, _) = client.next().await;
    drop(client);
    let waiting = house.greeting().await;
    house.prune(1).await;
    let gone = house.get(&format!("{PATH}?after={first}")).await;
    assert_eq!(gone.refusal(), refused(410, "cursor_gone", &[]));
    assert!(text(&gone.body["hint"]).contains("from its beginning"), "{gone:?}");
    assert_eq!(open(&house, PATH, Some(&first)).await.status().as_u16(), 410);
    // Without a place it begins with what is kept, and a place after the gap is as good as before.
    let (mut client, snapshot) = Client::connect(&house, PATH, None).await;
    let (place, _, next) = client.next().await;
    assert_eq!(next["session"], waiting["session"]["id"]);
    assert_eq!(next["event"]["type"], "session.created");
    for place in [place, text(&snapshot["cursor"])] {
        Client::connect(&house, PATH, Some(&place)).await;
    }
}
