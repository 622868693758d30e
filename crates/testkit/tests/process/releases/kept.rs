//! What was stored and does not move: it is there, and it can be used.

use super::site::Site;
use super::{asked, logins, post};
use crate::api;
use crate::events_out::{Events, wait_for_sinks};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::http::{Client, Request};

/// Looks at all of it but the sink.
pub(super) fn check(site: &Site, client: &mut Client) {
    check_blobs(site, client);
    check_key(site, client);
    check_removed(site, client);
    check_definitions(client);
    check_pipeline(client);
}

/// Every blob can be read, and is what it was.
pub(super) fn check_blobs(site: &Site, client: &mut Client) {
    assert!(!site.noted.blobs.is_empty(), "no blob was recorded");
    for hash in &site.noted.blobs {
        let answer = client.get(&format!("/api/v1/blobs/{hash}")).unwrap();
        assert_eq!(answer.status, 200, "{hash}: {}", answer.body);
        let bytes = digest(&SHA256, answer.body.as_bytes());
        let digits = bytes.as_ref().iter().map(|byte| format!("{byte:02x}"));
        assert_eq!(digits.collect::<String>(), *hash);
    }
}

/// The same request under the same key does nothing and gets the outcome of the first.
fn check_key(site: &Site, client: &mut Client) {
    let noted = &site.noted.keyed;
    let mut again = |body: &str| {
        let headers = [("Idempotency-Key", noted.key.as_str())];
        let path = "/api/v1/runs";
        let request = Request { method: "POST", path, headers: &headers, body: Some(body) };
        client.send(&request).unwrap()
    };
    let answer = again(&noted.body.to_string());
    assert_eq!((answer.status, answer.header("idempotency-replayed")), (200, Some("true")));
    let told = answer.json();
    let run = &told["run"];
    assert_eq!((&run["id"], &run["answer"]), (&json!(noted.run), &noted.answer), "{run}");
    let other = again(&json!({"planId": "old/sum", "input": {"a": 0, "b": 0}}).to_string());
    assert_eq!((other.status, &other.json()["code"]), (422, &json!("idempotency_mismatch")));
}

/// What retention removed does not come back.
fn check_removed(site: &Site, client: &mut Client) {
    let removed = &site.noted.removed;
    let runs = removed.runs.iter().map(|run| format!("/api/v1/runs/{run}"));
    for path in runs.chain([format!("/api/v1/sessions/{}", removed.session)]) {
        assert_eq!(client.get(&path).unwrap().status, 404, "{path}");
    }
    let export = api::get(client, "/api/v1/sessions/trimmed/export");
    assert_eq!(export["events"][0]["type"], "base.set", "{export}");
}

/// Stored plans, agents and providers run.
pub(super) fn check_definitions(client: &mut Client) {
    let plan = client.get("/api/v1/plans/stored%2Fword").unwrap();
    assert_eq!((plan.status, plan.header("etag")), (200, Some("\"2\"")), "{}", plan.body);
    let body = json!({"planId": "stored/word", "session": "new-stored", "input": {}});
    post(client, 202, "/api/v1/runs", &body);
    let answer = asked::reply(client, "new-stored", &json!({"answer": "blue"}));
    assert_eq!(answer, json!("second blue"));

    let agent = api::get(client, "/api/v1/agents/keeper");
    assert_eq!((&agent["version"], &agent["fromFile"]), (&json!(1), &json!(false)), "{agent}");
    let body = json!({"thread_id": "new-keeper", "agent": "keeper", "user_request": "add 4"});
    assert_eq!(post(client, 200, "/run", &body)["response"], "Done: 5");

    let provider = api::get(client, "/api/v1/providers/shelf");
    assert_eq!(provider["baseUrl"], "${WAYPOST_PROVIDER_SHELF}", "{provider}");
    logins::wait_until_ready(client, "shelf");
    let body = json!({"arguments": {"a": 1, "b": 2}});
    let called = post(client, 200, "/api/v1/tools/shelf_add/call", &body);
    assert_eq!(called["result"]["structuredContent"], json!({"sum": 3}), "{called}");
}

/// The counts of the pipeline go on, and so does a case that came before.
fn check_pipeline(client: &mut Client) {
    assert_eq!(counts(client), (json!(1), json!(1)));
    let case = json!({"tradeId": "T-1", "reason": "Missing ISIN"});
    assert_eq!(post(client, 200, "/trade/failures", &case)["path"], "deterministic");
    assert_eq!(counts(client), (json!(2), json!(1)));
}

/// How many cases a handler took, and how many the agent.
fn counts(client: &mut Client) -> (Value, Value) {
    let stats = api::get(client, "/api/v1/pipelines/trade-failures/stats");
    (stats["deterministic"].clone(), stats["agent"].clone())
}

/// The sink continued from its place: all that it had not taken came, in order and once, and
/// nothing that it had.
pub(super) fn check_sink(site: &Site, client: &mut Client) {
    wait_for_sinks(client, &["hook"]);
    let all: Vec<Value> = site.hook.taken().into_iter().map(|taken| taken.event).collect();
    let events = Events { place: "the receiver", all, broken: 0 };
    events.check();
    let ids: BTreeSet<&str> = events.all.iter().filter_map(|event| event["id"].as_str()).collect();
    assert_eq!(ids.len(), events.all.len(), "something came twice");
    let again = site.noted.delivered.iter().find(|id| ids.contains(id.as_str()));
    assert_eq!(again, None, "it was taken before the folder was killed");
    let lost = site.noted.rest.iter().find(|id| !ids.contains(id.as_str()));
    assert_eq!(lost, None, "it was not taken before, and did not come");
    assert!(!site.noted.delivered.is_empty() && !site.noted.rest.is_empty());
}
