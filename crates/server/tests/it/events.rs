//! `/api/v1/sessions/{id}/events`.

use crate::house::{House, read, refused, request, text};
use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// One event of a stream: its id, its name and its data.
type Told = (String, String, Value);

fn told(stream: &str) -> Vec<Told> {
    let blocks = stream.split("\n\n").filter(|block| !block.trim().is_empty());
    blocks
        .map(|block| {
            let field = |name: &str| {
                let lines = block.lines().filter_map(|line| line.strip_prefix(name));
                lines.map(|value| value.trim_start().to_owned()).collect::<Vec<_>>().join("\n")
            };
            let data = serde_json::from_str(&field("data:")).unwrap_or(Value::Null);
            (field("id:"), field("event:"), data)
        })
        .collect()
}

async fn finished(house: &House) -> String {
    let body = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 1}});
    let done = house.run(body).await;
    format!("/api/v1/sessions/{}/events", text(&done["session"]["id"]))
}

#[tokio::test]
async fn a_finished_session_is_told_from_snapshot_to_end() {
    let house = House::demo().await;
    let path = finished(&house).await;
    let answer = house.get(&path).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "text/event-stream");
    assert!(answer.text.contains("retry: 2000") || answer.text.contains("retry:2000"));
    let events = told(&answer.text);
    let first = &events[0];
    let last = &events[events.len() - 1];
    assert_eq!((first.0.as_str(), first.1.as_str()), ("", "snapshot"));
    assert_eq!(first.2["status"], "completed");
    assert_eq!((last.1.as_str(), &last.2), ("end", &json!({"status": "completed"})));
    let journal = &events[1..events.len() - 1];
    for (index, (id, name, data)) in journal.iter().enumerate() {
        assert_eq!(id, &(index + 1).to_string());
        assert_eq!(name, "");
        assert_eq!(data["seq"], index + 1);
    }
    assert_eq!(journal[0].2["type"], "session.created");
    assert_eq!(journal[journal.len() - 1].2["type"], "run.ended");
}

#[tokio::test]
async fn a_client_that_comes_back_misses_nothing_and_gets_nothing_twice() {
    let house = House::demo().await;
    let path = finished(&house).await;
    let all = told(&house.get(&path).await.text);
    let journal = all.len() - 2;
    for seen in [1, journal - 1, journal] {
        let by_query = house.get(&format!("{path}?after={seen}")).await.text;
        let mut again = request(Method::GET, &format!("{path}?after=0"), Body::empty());
        again.headers_mut().insert("last-event-id", seen.to_string().parse().unwrap());
        let by_header = house.send(again).await.text;
        assert_eq!(told(&by_query), told(&by_header));
        let ids: Vec<String> = told(&by_query).into_iter().map(|(id, _, _)| id).collect();
        let mut expected = vec![String::new()];
        expected.extend((seen + 1..=journal).map(|seq| seq.to_string()));
        expected.push(String::new());
        assert_eq!(ids, expected);
    }
    let mut odd = request(Method::GET, &path, Body::empty());
    odd.headers_mut().insert("last-event-id", "x".parse().unwrap());
    assert_eq!(house.send(odd).await.refusal(), refused(400, "bad_last_event_id", &[]));
    assert_eq!(house.get(&format!("{path}?after=x")).await.status, 400);
}

#[tokio::test]
async fn a_waiting_session_is_followed_until_it_ends() {
    let house = House::demo().await;
    let started = house.greeting().await;
    let session = text(&started["session"]["id"]);
    let path = format!("/api/v1/sessions/{session}/events");
    let stream = house.open(request(Method::GET, &path, Body::empty())).await;
    assert_eq!(stream.status().as_u16(), 200);
    let reading = tokio::spawn(read(stream));
    let ask = format!("/api/v1/asks/{}", text(&started["run"]["asks"][0]["id"]));
    house.post(&ask, json!({"action": "accept", "content": {"name": "Ann"}})).await;
    let answer = tokio::time::timeout(Duration::from_secs(60), reading).await.unwrap().unwrap();
    let events = told(&answer.text);
    let types: Vec<String> = events.iter().map(|(_, _, data)| text(&data["type"])).collect();
    for wanted in ["ask.opened", "ask.decided", "run.ended"] {
        assert!(types.iter().any(|kind| kind == wanted), "{wanted} is not in {types:?}");
    }
    assert_eq!(events[events.len() - 1].1, "end");
}

#[tokio::test]
async fn a_session_that_lost_its_beginning_is_told_from_its_base_on() {
    let house = House::demo().await;
    let body =
        json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 1}, "session": "s"});
    house.run(body).await;
    let path = "/api/v1/sessions/s/events";
    let cut = told(&house.get(path).await.text).len() - 2;
    let started = house.run(json!({"planId": "interaction::greeting", "session": "s"})).await;
    house.trim(1).await;
    let ask = format!("/api/v1/asks/{}", text(&started["run"]["asks"][0]["id"]));
    house.post(&ask, json!({"action": "accept", "content": {"name": "Ann"}})).await;
    let from_the_base = told(&house.get(path).await.text);
    assert_eq!(from_the_base[1].0, cut.to_string());
    assert_eq!(from_the_base[1].2["type"], "base.set");
    let after_it = told(&house.get(&format!("{path}?after={cut}")).await.text);
    assert_eq!(after_it[1..], from_the_base[2..]);
    let mut last = request(Method::GET, path, Body::empty());
    last.headers_mut().insert("last-event-id", "1".parse().unwrap());
    assert_eq!(house.send(last).await.refusal(), refused(410, "cursor_gone", &[]));
}

#[tokio::test]
async fn streams_are_counted() {
    let house = House::limited("streams_max = 1").await;
    let started = house.greeting().await;
    let path = format!("/api/v1/sessions/{}/events", text(&started["session"]["id"]));
    let held = house.open(request(Method::GET, &path, Body::empty())).await;
    let second = house.get(&path).await;
    assert_eq!(second.refusal(), refused(429, "too_many_streams", &[]));
    assert_eq!(second.header("retry-after"), "1");
    drop(held);
    let third = house.open(request(Method::GET, &path, Body::empty())).await;
    assert_eq!(third.status().as_u16(), 200);
}
