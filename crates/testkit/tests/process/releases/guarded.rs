//! A recorded folder behind credentials: what was begun without any continues, for a subject that
//! no credential has, and all of it is of the realm that the folder had.

use super::post;
use super::site::Site;
use crate::api;
use serde_json::{Value, json};
use testkit::http::Client;

/// Looks at all of it; the client comes with a key that administers everything.
pub(super) fn check(site: &Site, client: &mut Client) {
    check_login(site, client);
    check_runs(site, client);
    check_realm(client);
}

/// What a login brought is still good.
fn check_login(site: &Site, client: &mut Client) {
    let body = json!({"planId": "old/hub", "session": "new-hub", "input": {"a": 7}});
    let told = post(client, 200, "/api/v1/runs", &body);
    assert_eq!(told["run"]["answer"], "hub 8", "{told}");
    let given = site.hub.given();
    assert_eq!((given.logins, given.lost), (1, 0), "somebody had to log in again: {given:?}");
}

/// Runs that waited for a person continue once they are answered: a question, and a write that is
/// approved and sent.
fn check_runs(site: &Site, client: &mut Client) {
    let clarify = format!("/api/v1/asks/{}", site.noted.ask("clarify").id);
    let told = post(client, 200, &clarify, &json!({"answer": "blue"}));
    assert_eq!(told["run"]["answer"], "heard blue", "{told}");
    let approve = format!("/api/v1/asks/{}", site.noted.ask("approve").id);
    let call = api::get(client, &approve)["calls"][0]["callId"].clone();
    let decisions = json!({"decisions": [{"callId": call, "approve": true}]});
    let told = post(client, 200, &approve, &decisions);
    assert_eq!(told["run"]["answer"], "ordered: True", "{told}");
}

/// In another realm there is nothing of it.
fn check_realm(client: &mut Client) {
    for path in [
        "plans/stored%2Fword", "agents/keeper", "providers/shelf", "upstreams/shelf",
        "upstreams/hub",
    ] {
        for (realm, expected) in [("default", 200), ("acme", 404)] {
            let answer = client.get(&format!("/api/v1/{path}?realm={realm}")).unwrap();
            assert_eq!(answer.status, expected, "{path} in {realm}: {}", answer.body);
        }
    }
    let there: Vec<Value> = api::all(client, "/api/v1/sessions?realm=acme");
    assert_eq!(there, Vec::<Value>::new());
}
