//! `waypost example calendar-server`: a real MCP server over both ways and in both eras, as itself
//! and behind the demo, whichever process is killed.

use crate::peer::{MODERN, Peer};
use crate::process::{Listening, Server, waypost};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use testkit::caller::{Caller, Era, Outcome};
use testkit::harness::{processes_with, send_signal, wait_for};
use testkit::http::Client;

const LIMIT: Duration = Duration::from_secs(120);
const BANNER: &str = "calendar server listening on http://";
const TOOLS: [&str; 6] = [
    "create_event", "get_directions", "list_calendars", "list_events", "search_places",
    "update_event",
];
/// Long after the events that a folder begins with.
const DAY: &str = "2035-06-01";

fn over_http(data: &Path, more: &[&str]) -> Listening {
    let words = ["example", "calendar-server", "--http", "127.0.0.1:0", "--zone", "Europe/Berlin"];
    let all = [&words[..], &["--data", data.to_str().unwrap()], more].concat();
    Listening::start(data.parent().unwrap(), &all, BANNER)
}

/// A client that can show pages.
fn client(address: SocketAddr, era: Era) -> Caller {
    Caller::new(address, era, json!({"elicitation": {"form": {}, "url": {}}})).limit(LIMIT)
}

fn called(caller: &mut Caller, tool: &str, arguments: Value) -> Value {
    let outcome = caller.call(tool, arguments).unwrap();
    assert!(!outcome.is_failure(), "{outcome:?}");
    outcome.result()["structuredContent"].clone()
}

/// The names of the events of the day.
fn names(listed: &Value) -> Vec<String> {
    let events = listed["events"].as_array().unwrap_or_else(|| panic!("{listed}"));
    events.iter().map(|event| event["name"].as_str().unwrap().to_owned()).collect()
}

fn the_day() -> Value {
    json!({"start_time": DAY, "duration_days": 1})
}

#[test]
fn both_eras_are_served_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let server = over_http(&folder.path().join("data"), &[]);
    for (era, name) in [(Era::Legacy, "Standup"), (Era::Modern, "Retro")] {
        let mut caller = client(server.address, era);
        let mut tools = caller.tools();
        tools.sort();
        assert_eq!(tools, TOOLS, "its own tools, and nothing else");
        let calendars = called(&mut caller, "list_calendars", json!({}));
        assert_eq!(calendars["calendars"][0]["calendar_id"], "primary");
        let event = json!({"start": format!("{DAY}T09:00:00"), "name": name});
        let made = called(&mut caller, "create_event", event);
        assert_eq!(made["event_details"]["end"], format!("{DAY}T09:30:00"));
        let moved = json!({"event_id": made["id"], "start": format!("{DAY}T10:00:00")});
        let moved = called(&mut caller, "update_event", moved);
        assert_eq!(moved["event_details"]["start"], format!("{DAY}T10:00:00"));
        assert!(names(&called(&mut caller, "list_events", the_day())).contains(&name.to_owned()));
        let wrong = caller.call("create_event", json!({"start": "soon"})).unwrap();
        assert!(wrong.is_failure() && wrong.words().contains("start"), "{wrong:?}");
        let nowhere = json!({"start": DAY, "calendar_id": "work"});
        let nowhere = caller.call("create_event", nowhere).unwrap();
        assert!(nowhere.words().contains("there is no calendar `work`"), "{nowhere:?}");
        let places = called(&mut caller, "search_places", json!({"query": "eiffel"}));
        assert_eq!(places["places"][0]["city"], "Paris");
        let prompts = caller.request("prompts/list", json!({})).unwrap().result();
        assert_eq!(prompts["prompts"], json!([]));
        let resources = caller.request("resources/list", json!({})).unwrap().result();
        assert_eq!(resources["resources"], json!([]));
    }
    assert_eq!(server.stop().code, Some(0));
    let text = fs::read_to_string(folder.path().join("data/calendars/primary.json")).unwrap();
    let calendar: Value = serde_json::from_str(&text).unwrap();
    let starts = calendar["events"].as_array().unwrap().iter().map(|event| &event["start"]);
    assert_eq!(starts.filter(|start| *start == "2035-06-01T08:00:00Z").count(), 2, "{text}");
}

#[test]
fn both_eras_are_served_over_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["example", "calendar-server", "--stdio", "--data", "data", "--zone", "UTC"];
    let mut peer = Peer::of(folder.path(), &words);
    let hello = peer.greet("2025-11-25");
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25", "{hello}");
    let listed = peer.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let create = tools.iter().find(|tool| tool["name"] == "create_event").unwrap();
    assert_eq!(create["annotations"]["readOnlyHint"], false);
    assert_eq!(create["annotations"]["idempotentHint"], false, "not without a key");
    assert_eq!(create["_meta"]["waypost/idempotencyKey"], true);
    let read = tools.iter().find(|tool| tool["name"] == "list_events").unwrap();
    assert_eq!(read["annotations"]["readOnlyHint"], true);

    let none = json!({});
    let found = peer.ask_stateless("server/discover", &none, &none);
    assert!(found["result"]["supportedVersions"].as_array().unwrap().contains(&json!(MODERN)));
    let call = json!({"name": "list_events", "arguments": the_day()});
    let listed = peer.ask_stateless("tools/call", &call, &none);
    assert_eq!(listed["result"]["structuredContent"], json!({"events": []}), "{listed}");
    let ended = peer.end().code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""), "nothing else");
}

#[test]
fn a_call_with_a_key_is_done_once_whatever_is_killed_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = json!({"start": format!("{DAY}T09:00:00"), "name": "Once"});
    let params = |key: &str| {
        json!({"name": "create_event", "arguments": arguments,
            "_meta": {"waypost/idempotencyKey": key}})
    };
    let made = |address: SocketAddr, era: Era, key: &str| {
        let outcome = client(address, era).request("tools/call", params(key)).unwrap();
        outcome.result()["structuredContent"]["id"].clone()
    };
    let first = {
        let server = over_http(&data, &[]);
        let first = made(server.address, Era::Modern, "a");
        assert_eq!(made(server.address, Era::Legacy, "a"), first);
        // Killed here.
        first
    };
    let server = over_http(&data, &[]);
    assert_eq!(made(server.address, Era::Modern, "a"), first);
    assert_ne!(made(server.address, Era::Modern, "b"), first);
    let mut caller = client(server.address, Era::Modern);
    assert_eq!(names(&called(&mut caller, "list_events", the_day())), ["Once", "Once"]);
    let bad = caller.request("tools/call", params("a key of several words")).unwrap();
    assert!(matches!(bad, Outcome::Error { code: -32602, .. }), "{bad:?}");
}

/// The page that a call wants to be opened, as each era tells it.
fn page(caller: &mut Caller, era: Era) -> String {
    let url = match (era, caller.call("list_calendars", json!({})).unwrap()) {
        (Era::Legacy, Outcome::Error { code: -32042, message }) => {
            message.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
        }
        (Era::Modern, Outcome::Result(result)) => {
            assert_eq!(result["resultType"], "input_required", "{result}");
            let (key, request) =
                result["inputRequests"].as_object().unwrap().iter().next().unwrap();
            assert_eq!(request["params"]["mode"], "url", "{request}");
            let url = request["params"]["url"].as_str().unwrap().to_owned();
            assert!(url.ends_with(key), "{key} in {url}");
            Some(url)
        }
        (_, outcome) => panic!("{outcome:?}"),
    };
    url.unwrap()
}

#[test]
fn with_oauth_a_login_comes_before_the_first_call() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = over_http(&data, &["--oauth"]);
    let wanted = page(&mut client(server.address, Era::Modern), Era::Modern);
    assert_eq!(page(&mut client(server.address, Era::Legacy), Era::Legacy), wanted);
    let begin = format!("http://{}/auth/connect/", server.address);
    let id = wanted.strip_prefix(&begin).unwrap_or_else(|| panic!("{wanted}")).to_owned();
    assert_eq!(server.stop().code, Some(0));

    let server = over_http(&data, &["--oauth"]);
    let again = page(&mut client(server.address, Era::Modern), Era::Modern);
    assert!(again.ends_with(&id), "the same login after a restart: {again}");
    let mut browser = Client::new(server.address);
    assert_eq!(browser.get("/auth/connect/nobody").unwrap().status, 404);
    assert_eq!(browser.get("/auth/callback?state=nobody").unwrap().status, 404);
    let led = browser.get(&format!("/auth/connect/{id}")).unwrap();
    let consent = led.header("location").unwrap().to_owned();
    assert_eq!((led.status, consent.as_str()), (303, format!("/auth/consent?state={id}").as_str()));
    assert!(browser.get(&consent).unwrap().body.contains("Allow"));
    let denied = format!("/auth/callback?state={id}&error=access_denied");
    assert!(browser.get(&denied).unwrap().body.contains("Nothing was connected"));
    assert!(page(&mut client(server.address, Era::Legacy), Era::Legacy).ends_with(&id));
    let done = browser.get(&format!("/auth/callback?state={id}")).unwrap();
    assert!(done.status == 200 && done.body.contains("is connected"), "{done:?}");
    for era in [Era::Legacy, Era::Modern] {
        let calendars = called(&mut client(server.address, era), "list_calendars", json!({}));
        assert_eq!(calendars["calendars"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn invalid_options_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |more: &[&str]| {
        let words = [&["example", "calendar-server", "--data", "data"][..], more].concat();
        waypost(folder.path(), &words)
    };
    serve(&[]).code(2).says("--stdio");
    serve(&["--http", "0.0.0.0:8000"]).code(2).says("other machines");
    serve(&["--stdio", "--zone", "Europe/Nowhere"])
        .code(2)
        .says("`Europe/Nowhere` is no time zone");
    fs::write(folder.path().join("data"), "a file").unwrap();
    serve(&["--stdio"]).code(2).says("the calendars in `data` cannot be used");
}

/// Waits until the demo has the tools of its calendar server.
fn wait_for_tools(address: SocketAddr) -> Caller {
    let mut caller = client(address, Era::Modern);
    wait_for("the demo to have calendars", LIMIT, || {
        caller.tools().iter().any(|tool| tool == "create_event").then_some(())
    });
    caller
}

fn address_of(server: &Server) -> SocketAddr {
    server.url.strip_prefix("http://").unwrap().parse().unwrap()
}

#[test]
fn the_demo_has_calendars_and_a_kill_leaves_neither_process_nor_second_event() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let start = || Server::start(&["--demo", "--data", data.to_str().unwrap()], &[]);
    // Among the arguments of the supervisor and of the calendar server.
    let mark = data.join("calendar").to_str().unwrap().to_owned();
    let server = start();
    let mut caller = wait_for_tools(address_of(&server));
    for tool in TOOLS {
        assert!(caller.tools().iter().any(|name| name == tool), "no `{tool}`");
    }
    let event = json!({"start": format!("{DAY}T09:00:00"), "name": "Kept"});
    called(&mut caller, "create_event", event);
    assert!(!processes_with(&mark).is_empty());
    send_signal("KILL", server.pid());
    wait_for("the calendar server to end with the demo", LIMIT, || {
        processes_with(&mark).is_empty().then_some(())
    });
    drop(server);

    let server = start();
    let mut caller = wait_for_tools(address_of(&server));
    assert_eq!(names(&called(&mut caller, "list_events", the_day())), ["Kept"]);
    assert_eq!(server.stop().0.code, Some(0));
    // What was killed may take a moment to be gone.
    wait_for("the calendar server to end with the demo that stopped", LIMIT, || {
        processes_with(&mark).is_empty().then_some(())
    });
}
