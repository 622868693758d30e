//! A webhook receiver that fails, hangs, is busy, forgets to answer and is gone for a while: it
//! gets every event at least once and in order, each signed.

use super::{OUT_LIMIT, PARTS, Site, publish, sink, wait_until_out};
use crate::api;
use serde_json::Value;
use testkit::harness::wait_for;
use testkit::http::Client;
use testkit::servers::webhook::Mood;

const SESSIONS: u64 = 4;
/// How many runs are made in each mood.
const RUNS: u64 = 8;
/// How often an unwell receiver is asked before it is well again.
const TRIES: u64 = 3;
/// Long enough for a receiver that is well on a busy machine.
const TIMEOUT_MS: u64 = 2_000;

/// Runs in turn in a few sessions, and the outcome of each.
struct Runs<'c> {
    client: &'c mut Client,
    made: Vec<(u64, String)>,
}

impl Runs<'_> {
    fn go_on(&mut self) {
        for _ in 0..RUNS {
            let number = self.made.len() as u64;
            let session = format!("unwell-{}", number % SESSIONS);
            let run = publish(self.client, &session, number);
            self.made.push((number, run));
        }
    }
}

#[test]
fn an_unwell_receiver_gets_every_event_in_order() {
    let _turn = crate::my_turn();
    let mut site = Site::build("waypost-unwell-", TIMEOUT_MS);
    let mut server = site.start();
    server.wait_until_ready();
    let (mut client, mut watcher) = (server.client(), server.client());
    let mut runs = Runs { client: &mut client, made: Vec::new() };
    runs.go_on();
    for mood in [Mood::Failing(500), Mood::Hanging, Mood::Busy(1), Mood::Mute, Mood::Failing(404)] {
        site.receiver.be(mood);
        runs.go_on();
        site.receiver.wait_for_tries(TRIES, OUT_LIMIT);
        site.receiver.be(Mood::Well);
        runs.go_on();
    }
    site.receiver.close();
    runs.go_on();
    wait_for("an event to be tried again while nobody listens", OUT_LIMIT, || {
        let hook = sink(&mut watcher, "hook");
        (hook["retrying"].as_u64() > Some(0) && hook["lastError"].is_string()).then_some(())
    });
    site.receiver.open_again();
    runs.go_on();
    let made = std::mem::take(&mut runs.made);
    wait_until_out(&mut watcher);
    check(&site, &made);
    check_log(&mut watcher, made.len() as u64);
    let ended = server.terminate();
    assert!(ended.status.success(), "{ended:?}");
}

fn check(site: &Site, made: &[(u64, String)]) {
    assert_eq!(site.receiver.faults(), Vec::<String>::new());
    let runs = || made.iter().map(|(number, run)| (*number, run.as_str()));
    let (received, written) = (site.received(), site.written());
    for events in [&received, &written] {
        events.check();
        events.hold(runs());
    }
    assert_eq!(written.broken, 0, "lines of the file are no events");
    // Who takes an event without saying so is sent it again.
    assert!(received.all.len() > written.all.len(), "nothing was sent twice");
    crate::tell(&format!(
        "events out: {} runs, {} events at the file, {} at an unwell receiver",
        made.len(),
        written.all.len(),
        received.all.len()
    ));
}

/// The log says how it went, and the metrics how much.
fn check_log(client: &mut Client, runs: u64) {
    let log: Vec<Value> = api::all(client, "/api/v1/sinks/hook/deliveries?status=delivered");
    let repeated = log.iter().filter(|row| row["attempts"].as_u64() > Some(1)).count();
    assert!(repeated > 0, "no event was tried again");
    for status in ["retrying", "failed"] {
        let path = format!("/api/v1/sinks/hook/deliveries?status={status}");
        assert_eq!(api::all::<Value>(client, &path), Vec::<Value>::new(), "{status}");
    }
    let hook = sink(client, "hook");
    assert!(hook["delivered"].as_u64() >= Some(runs * PARTS), "{hook}");
    assert_eq!(hook["failed"], 0, "{hook}");
    let metrics = client.get("/metrics").unwrap().body;
    for line in [
        format!("waypost_events_delivered_total{{sink=\"hook\"}} {}", hook["delivered"]),
        "waypost_events_failed_total{sink=\"hook\"} 0".to_owned(),
        "waypost_event_lag{sink=\"lines\"} 0".to_owned(),
    ] {
        assert!(metrics.lines().any(|told| told == line), "no `{line}` in {metrics}");
    }
}
