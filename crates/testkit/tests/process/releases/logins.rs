//! Logins at other servers: what one brought is still good, and one that somebody was asked for
//! can still be made.

use super::site::Site;
use super::{LIMIT, asked, post_nothing};
use crate::api;
use serde_json::{Value, json};
use testkit::harness::wait_for;
use testkit::http::Client;

const CALLBACK: &str = "/oauth/callback";

/// Uses the one, makes the other, and lets go on what waited for it.
pub(super) fn check(site: &Site, client: &mut Client) {
    wait_until_ready(client, "hub");
    let body = json!({"planId": "old/hub", "session": "new-hub", "input": {"a": 7}});
    let told = super::post(client, 200, "/api/v1/runs", &body);
    assert_eq!(told["run"]["answer"], "hub 8", "{told}");
    let given = site.hub.given();
    assert_eq!((given.logins, given.lost), (1, 0), "somebody had to log in again: {given:?}");
    assert!(given.renewals > 0, "the token of the folder was never renewed: {given:?}");

    log_in(site, client, "gate");
    assert_eq!(asked::reply(client, "authorize", &json!({"action": "done"})), json!("there 3"));
    // Nobody answers this one: that the login was made is found out.
    let thread = site.noted.session("talk-login");
    wait_for("`talk-login` to find out that somebody logged in", LIMIT, || {
        let run = api::run(client, &thread.run);
        (run.status == "completed").then_some(())
    });
}

/// Waits until an upstream can be used: the catalog takes its tools in a moment after it is ready.
pub(super) fn wait_until_ready(client: &mut Client, upstream: &str) {
    wait_for(&format!("`{upstream}` to be ready"), LIMIT, || {
        (state(client, upstream) == "ready").then_some(())
    });
    // Each of them has this one.
    let tool = format!("{upstream}_add");
    wait_for(&format!("`{tool}` in the catalog"), LIMIT, || {
        let shown = client.get(&format!("/api/v1/tools/{tool}"));
        shown.ok().filter(|shown| shown.status == 200).map(drop)
    });
}

fn state(client: &mut Client, upstream: &str) -> Value {
    api::get(client, &format!("/api/v1/upstreams/{upstream}"))["state"].clone()
}

/// Somebody logs in, and their browser comes back to the server, wherever it listens now.
fn log_in(site: &Site, client: &mut Client, upstream: &str) {
    wait_for(&format!("`{upstream}` to want a login"), LIMIT, || {
        (state(client, upstream) == "login").then_some(())
    });
    let begun = post_nothing(client, 200, &format!("/api/v1/upstreams/{upstream}/login"));
    let back = site.hub.agree(begun["url"].as_str().unwrap());
    let origin = site.noted.hub.callback.strip_suffix(CALLBACK).unwrap();
    let path = back.strip_prefix(origin).unwrap_or_else(|| panic!("comes back to `{back}`"));
    let answer = client.get(path).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    wait_until_ready(client, upstream);
}
