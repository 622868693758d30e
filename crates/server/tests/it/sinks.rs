//! `/api/v1/sinks`: where events go, how each got there, an event sent once more, and a sink that
//! is not configured any more.

use crate::house::{Answer, House, encoded, refused, request, text, wait_for};
use axum::body::Body;
use axum::http::Method;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::OnceLock;
use std::thread;

/// The listener at `PORT` wants nothing, and nothing is tried again.
const SETTINGS: &str = "[limits]\ndelivery_attempts_max = 1\ndelivery_backoff_ms = 1\n\
     [events.sinks.lines]\ntype = \"file\"\npath = \"events.jsonl\"\n\
     [events.sinks.hook]\ntype = \"webhook\"\n\
     url = \"http://u:hunter2@127.0.0.1:PORT/in?k=hunter2\"\n\
     secret = \"whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVu\"\ntypes = [\"waypost.run.*\"]\n";
const RESEND: &str = "/api/v1/sinks/hook/deliveries/ses_1.1/resend";

/// The port of a receiver that answers everything with 400, as long as the tests run.
fn port() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| receiver("400 No"))
}

/// The port of a receiver that answers everything with this status, as long as the tests run.
fn receiver(status: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| {
            thread::spawn(move || refuse(stream, status));
        });
    });
    port
}

/// Reads one request and refuses it; who breaks off is let go.
fn refuse(stream: TcpStream, status: &str) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if line == "\r\n" {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(told) = line.strip_prefix("content-length:") {
            length = told.trim().parse().unwrap();
        }
    }
    if reader.read_exact(&mut vec![0; length]).is_ok() {
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let _ = reader.get_mut().write_all(answer.as_bytes());
    }
}

fn project(port: u16) -> Project {
    project_of(&SETTINGS.replace("PORT", &port.to_string()))
}

fn project_of(settings: &str) -> Project {
    let mut config = Config::parse("waypost.toml", settings).unwrap();
    config.limits.unsent_wait_ms = 100;
    Project { config, ..Project::demo() }
}

/// A house in which one run is over.
async fn house(admin_key: Option<&str>) -> House {
    let house = House::build(project(port()), admin_key).await;
    house.run(json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 1}})).await;
    house
}

async fn looked(house: &House, path: &str, is_there: impl Fn(&Answer) -> bool) -> Answer {
    let look = async || {
        let answer = house.get(path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer
    };
    wait_for(&format!("what `{path}` should say"), look, is_there).await
}

/// The sinks, once both have dealt with everything.
async fn settled(house: &House) -> Answer {
    looked(house, "/api/v1/sinks", |answer| {
        let items = answer.body["items"].as_array().unwrap();
        items.iter().all(|sink| sink["lag"] == 0 && sink["retrying"] == 0)
    })
    .await
}

/// The failed deliveries of the webhook.
async fn failed(house: &House) -> Vec<Value> {
    let path = "/api/v1/sinks/hook/deliveries?status=failed";
    let is_there = |answer: &Answer| answer.body["items"].as_array().unwrap().len() == 2;
    let answer = looked(house, path, is_there).await;
    answer.body["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn sinks_are_shown_without_secrets() {
    let house = house(None).await;
    let answer = settled(&house).await;
    assert!(!answer.text.contains("hunter2") && !answer.text.contains("whsec_"), "{answer:?}");
    let [hook, lines] = answer.body["items"].as_array().unwrap().as_slice() else {
        panic!("{answer:?}")
    };
    assert_eq!((&hook["name"], &hook["type"]), (&json!("hook"), &json!("webhook")));
    assert_eq!(hook["status"], "sending");
    assert_eq!(hook["target"], format!("http://127.0.0.1:{}/in", port()));
    assert_eq!(hook["types"], json!(["waypost.run.*"]));
    assert_eq!((&hook["delivered"], &hook["failed"]), (&json!(0), &json!(2)));
    assert!(hook["lastError"].is_string(), "{hook}");
    assert_eq!((&lines["name"], &lines["type"]), (&json!("lines"), &json!("file")));
    assert!(lines["target"].as_str().unwrap().ends_with("/data/events.jsonl"), "{lines}");
    assert_eq!((&lines["delivered"], &lines["failed"]), (&json!(2), &json!(0)));
    assert_eq!((lines.get("types"), lines.get("lastError")), (None, None));
    let page = house.get("/api/v1/sinks?limit=1").await.body;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["items"][0]), (1, hook));
    let rest = house.get(&format!("/api/v1/sinks?cursor={}", encoded(&page["nextCursor"]))).await;
    assert_eq!(rest.body["items"], json!([lines]));
    // Where a sink stands is a place of the feed.
    let ahead = format!("/api/v1/events?after={}", text(&hook["place"]));
    let feed = house.open(request(Method::GET, &ahead, Body::empty())).await;
    assert_eq!(feed.status().as_u16(), 200, "{ahead}");
}

#[tokio::test]
async fn a_file_gets_a_line_for_each_event() {
    let house = house(None).await;
    let sinks = settled(&house).await;
    let path = sinks.body["items"][1]["target"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(kinds, ["waypost.run.started.v1", "waypost.run.completed.v1"]);
    for line in &lines {
        assert_eq!(line["specversion"], "1.0");
        assert_eq!(line["source"], "waypost/default");
    }
}

#[tokio::test]
async fn the_log_says_how_it_went() {
    let house = house(None).await;
    let rows = failed(&house).await;
    let kinds: Vec<&Value> = rows.iter().map(|row| &row["type"]).collect();
    assert!(kinds.contains(&&json!("waypost.run.completed.v1")), "{rows:?}");
    for row in &rows {
        assert_eq!((&row["sink"], &row["attempts"]), (&json!("hook"), &json!(1)), "{row}");
        assert!(row["error"].is_string() && row.get("nextAt").is_none(), "{row}");
        let event = row["event"].as_str().unwrap();
        let session = row["session"].as_str().unwrap();
        assert_eq!(event, format!("{session}.{}", row["seq"]));
    }
    let path = "/api/v1/sinks/hook/deliveries?limit=1";
    let first = house.get(path).await.body;
    let cursor = encoded(&first["nextCursor"]);
    let second = house.get(&format!("{path}&cursor={cursor}")).await.body;
    assert_ne!(first["items"][0]["event"], second["items"][0]["event"]);
    let other = house.get(&format!("{path}&status=failed&cursor={cursor}")).await;
    assert_eq!(other.refusal(), refused(400, "bad_cursor", &[]));
    let none = house.get("/api/v1/sinks/hook/deliveries?status=delivered").await.body;
    assert_eq!(none["items"], json!([]));
}

#[tokio::test]
async fn an_event_is_sent_again_by_an_administrator() {
    let house = house(Some("secret")).await;
    let rows = failed(&house).await;
    let event = rows[0]["event"].as_str().unwrap();
    let path = format!("/api/v1/sinks/hook/deliveries/{event}/resend");
    assert_eq!(house.post(&path, json!({})).await.status, 401);
    let key = [("authorization", "Bearer secret")];
    let again = house.post_with(&path, &key, json!({})).await;
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(again.body["event"], event);
    assert_eq!(again.body["status"], "failed", "nobody wants it: {again:?}");
    let unknown = house.post_with(RESEND, &key, json!({})).await;
    assert_eq!((unknown.status, &unknown.body["code"]), (404, &json!("not_found")), "{unknown:?}");
}

#[tokio::test]
async fn a_sink_whose_receiver_is_gone_rests_until_an_administrator_resumes_it() {
    let house = House::build(project(receiver("410 Gone")), Some("secret")).await;
    house.run(json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 1}})).await;
    let is_gone = |answer: &Answer| answer.body["items"][0]["status"] == "gone";
    let hook = looked(&house, "/api/v1/sinks", is_gone).await.body["items"][0].clone();
    assert_eq!((&hook["delivered"], &hook["failed"]), (&json!(0), &json!(0)), "{hook}");
    assert!(hook["lag"].as_u64().unwrap() > 0, "{hook}");
    let metrics = house.get("/metrics").await.text;
    let line = "waypost_sink_gone{sink=\"hook\"} 1";
    assert!(metrics.lines().any(|told| told == line), "{metrics}");
    let path = "/api/v1/sinks/hook/resume";
    assert_eq!(house.post(path, json!({})).await.status, 401);
    let key = [("authorization", "Bearer secret")];
    let resumed = house.post_with(path, &key, json!({})).await;
    assert_eq!((resumed.status, &resumed.body["name"]), (200, &json!("hook")), "{resumed:?}");
    let path = "/api/v1/sinks/hook/deliveries?status=retrying";
    let is_tried_again = |answer: &Answer| answer.body["items"][0]["attempts"] == 2;
    looked(&house, path, is_tried_again).await;
    let unknown = house.post_with("/api/v1/sinks/hok/resume", &key, json!({})).await;
    assert_eq!((unknown.status, &unknown.body["hint"]), (404, &json!("did you mean `hook`?")));
}

#[tokio::test]
async fn a_sink_that_is_not_configured_any_more_is_shown_until_it_is_forgotten() {
    let data = tempfile::tempdir().unwrap();
    // Nobody listens there: the webhook keeps waiting.
    let (house, stopper) = House::over(|| project(1), &data, None).await;
    house.run(json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 1}})).await;
    let log = "/api/v1/sinks/hook/deliveries";
    let has_rows = |answer: &Answer| !answer.body["items"].as_array().unwrap().is_empty();
    looked(&house, log, has_rows).await;
    stopper.stop().await;
    drop(house);

    let without_hook = || project_of(SETTINGS.split("[events.sinks.hook]").next().unwrap());
    let (house, stopper) = House::over(without_hook, &data, None).await;
    let is_passed = |answer: &Answer| answer.body["items"][1]["lag"] == 0;
    let sinks = looked(&house, "/api/v1/sinks", is_passed).await.body;
    let hook = &sinks["items"][0];
    let expected = json!({
        "name": "hook", "type": "unknown", "status": "unconfigured", "place": hook["place"],
        "lag": hook["lag"], "delivered": 0, "failed": 0, "retrying": 0,
    });
    assert_eq!(hook, &expected);
    let lag = hook["lag"].as_u64().unwrap();
    assert!(lag > 0, "{hook}");
    assert_eq!(sinks["items"][1]["status"], "sending");
    let metrics = house.get("/metrics").await.text;
    for line in [
        "waypost_sink_unconfigured{sink=\"hook\"} 1",
        "waypost_sink_unconfigured{sink=\"lines\"} 0",
        &format!("waypost_event_lag{{sink=\"hook\"}} {lag}"),
    ] {
        assert!(metrics.lines().any(|told| told == line), "{line}\n{metrics}");
    }
    assert!(has_rows(&house.get(log).await));
    let unconfigured = refused(409, "sink_unconfigured", &[]);
    for path in ["/api/v1/sinks/hook/resume", RESEND] {
        assert_eq!(house.post(path, json!({})).await.refusal(), unconfigured, "{path}");
    }
    house.prune(0).await;

    let held = house.delete("/api/v1/sinks/lines").await;
    assert_eq!(held.refusal(), refused(409, "sink_configured", &[]), "{held:?}");
    assert!(text(&held.body["hint"]).contains("[events.sinks.lines]"), "{held:?}");
    let unknown = house.delete("/api/v1/sinks/hok").await;
    assert_eq!((unknown.status, &unknown.body["hint"]), (404, &json!("did you mean `hook`?")));
    assert_eq!(house.delete("/api/v1/sinks/hook").await.status, 204);
    assert_eq!(house.delete("/api/v1/sinks/hook").await.status, 404);
    assert_eq!(house.get(log).await.status, 404);
    house.prune(1).await;
    stopper.stop().await;
}

#[tokio::test]
async fn only_an_administrator_forgets_a_sink() {
    let house = House::build(project(1), Some("secret")).await;
    assert_eq!(
        house.delete("/api/v1/sinks/hook").await.refusal(),
        refused(401, "unauthorized", &[])
    );
}

#[tokio::test]
async fn missing_sinks_are_404_with_a_hint() {
    let house = house(None).await;
    let missing = house.get("/api/v1/sinks/hok/deliveries").await;
    assert_eq!((missing.status, &missing.body["hint"]), (404, &json!("did you mean `hook`?")));
    let odd = house.get("/api/v1/sinks/hook/deliveries?status=faild").await;
    assert_eq!(odd.refusal(), refused(400, "bad_query", &[]));
    assert_eq!(odd.body["hint"], "did you mean `failed`?");
    let path = RESEND.replace("hook", "nowhere");
    assert_eq!(house.post(&path, json!({})).await.status, 404);
    let demo = House::demo().await;
    assert_eq!(demo.get("/api/v1/sinks").await.body, json!({"items": [], "nextCursor": null}));
}

#[tokio::test]
async fn a_session_is_removed_when_its_events_are_out_or_somebody_insists() {
    // Nobody listens there, so they never are.
    let house = House::build(project(1), None).await;
    let run = house.run(json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 1}}));
    let path = format!("/api/v1/sessions/{}", text(&run.await["session"]["id"]));
    let held = house.delete(&path).await;
    assert_eq!(held.refusal(), refused(409, "events_unsent", &[]), "{held:?}");
    assert!(held.body["hint"].as_str().unwrap().contains("?unsent=drop"), "{held:?}");
    let odd = house.delete(&format!("{path}?unsent=dorp")).await;
    assert_eq!(odd.refusal(), refused(400, "bad_query", &[]));
    assert_eq!(house.get(&path).await.status, 200);
    assert_eq!(house.delete(&format!("{path}?unsent=drop")).await.status, 204);
    assert_eq!(house.get(&path).await.status, 404);
}

#[tokio::test]
async fn metrics_are_counted_by_sink() {
    let house = house(None).await;
    settled(&house).await;
    let metrics = house.get("/metrics").await;
    for line in [
        "waypost_events_delivered_total{sink=\"lines\"} 2",
        "waypost_events_failed_total{sink=\"hook\"} 2",
        "waypost_event_lag{sink=\"hook\"} 0",
    ] {
        assert!(metrics.text.lines().any(|told| told == line), "{line}\n{}", metrics.text);
    }
}
