//! The link of a login at an upstream: who gets it, and what it is worth to others.

use super::site::{Asking, HOME, LIMIT, Site};
use serde_json::json;
use testkit::harness::wait_for;
use testkit::servers::login::LoginServer;

const HUB: &str = "/api/v1/upstreams/hub";
const LOGIN: &str = "/api/v1/upstreams/hub/login";

const SHOW: Asking<'static> = Asking { method: "GET", path: HUB, body: None };
const BEGIN: Asking<'static> = Asking { method: "POST", path: LOGIN, body: Some("{}") };

#[test]
fn a_login_link_is_for_who_may_log_in_and_good_once() {
    let _turn = crate::my_turn();
    let hub = LoginServer::start();
    let site = Site::start(&format!("[mcp.servers.hub]\nurl = \"{}/mcp\"\n", hub.base));
    let until = |state: &str| {
        wait_for(&format!("the upstream to be in state `{state}`"), LIMIT, || {
            (site.administered("GET", HUB, None)["state"] == state).then_some(())
        });
    };
    until("login");
    let (member, operator) = (site.key("member").text, site.key("operator").text);
    let mut caller = site.caller(HOME);
    let refused = caller.ask(&member, BEGIN);
    assert_eq!(refused.status, 403, "{refused:?}");
    let begun = caller.ask(&operator, BEGIN);
    assert_eq!(begun.status, 200, "{begun:?}");
    let page = begun.json()["url"].as_str().unwrap().to_owned();
    assert_eq!(site.administered("GET", HUB, None)["loginUrl"], json!(page));
    let shown = caller.ask(&member, SHOW);
    assert!(!shown.body.contains("/authorize"), "a member is shown the page: {shown:?}");

    // A browser has no key.
    let back = hub.agree(&page);
    let here = format!("http://{}", site.address());
    let path = back.strip_prefix(&here).unwrap_or_else(|| panic!("`{back}` is not here"));
    let mut stranger = site.caller("198.51.100.1");
    let other = path.replace("state=", "state=x");
    let stateless = path.replace("state=", "else=");
    for made_up in ["/oauth/callback", other.as_str(), stateless.as_str()] {
        let answer = stranger.send(&[], Asking { path: made_up, ..SHOW });
        assert_eq!(answer.status, 400, "{made_up}: {answer:?}");
    }
    let finished = stranger.send(&[], Asking { path, ..SHOW });
    assert_eq!(finished.status, 200, "{finished:?}");
    until("ready");
    let again = stranger.send(&[], Asking { path, ..SHOW });
    assert_eq!(again.status, 400, "a login comes back once: {again:?}");
    let mut secrets = hub.secrets();
    secrets.extend([member, operator]);
    site.end(&secrets);
}
