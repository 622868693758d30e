//! Each of two realms with the same names tries everything of the other: ids, cursors, states and
//! sessions of MCP, tasks and places of streams, at every route of `/openapi.json`, with every
//! method of MCP and every operation of A2A. Nothing of the other is in any answer, stream, hint,
//! event or span of its own, and nothing that is said in either of them is in the log. What was
//! tried changed nothing.

use super::a2a;
use super::apart::resumed;
use super::doors::{self, Door, Kind, Thing};
use super::neighbours::{
    REALMS, Realm, call_that_asks, events_file, first_page, is_list, mcp_lists, sinks, two_written,
};
use super::rules::{Case, Expected, expected};
use super::sending::{Key, LIMIT, Sending};
use super::site::{Site, a2a_body, filled, text};
use super::{message, told};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use testkit::caller::Era;
use testkit::harness::wait_for;
use testkit::http::Answer;
use testkit::servers::otlp::{Collector, Span};
use testkit::upstream::Upstream;
use wire::mcp::LEGACY;

/// What a realm keeps, whatever others try.
const KEPT: [&str; 9] = [
    "/api/v1/runs/<run>",
    "/api/v1/runs/<paused>",
    "/api/v1/runs/<stuck>",
    "/api/v1/asks/<ask>",
    "/api/v1/sessions/<session>",
    "/api/v1/sessions/<session>/history",
    "/api/v1/blobs/<blob>",
    "/api/v1/keys/<key>",
    "/api/v1/sessions?space=thread",
];

/// Plans are skills in both realms.
const A2A: &str = "\n[a2a]\nexpose = [\"matrix::*\"]\nproxy = true\n";
/// What tells of many things at once by A2A; the card is that of the realm in angle brackets.
const A2A_LISTS: [&str; 4] = [
    "/a2a/v1/tasks",
    "/a2a/v1/tasks?includeArtifacts=true&historyLength=10",
    "/a2a/v1/extendedAgentCard",
    "/a2a/v1/<realm>/agent-card.json",
];
/// What a realm keeps of A2A.
const A2A_KEPT: [&str; 7] = [
    "/a2a/v1/tasks/<task>",
    "/a2a/v1/tasks/<task>/pushNotificationConfigs",
    "/a2a/v1/tasks/<spare-task>",
    "/a2a/v1/tasks/<grpc-task>",
    "/a2a/v1/tasks/<vault-task>",
    "/a2a/v1/tasks/<old-task>",
    "/a2a/v1/tasks/<old-spare-task>",
];

#[test]
fn two_realms_with_the_same_names_see_nothing_of_each_other() {
    let _turn = crate::my_turn();
    let (collector, doors) = (Collector::start(), doors::all());
    let upstreams = tempfile::tempdir().unwrap();
    let provider = Upstream::start(upstreams.path(), &[]);
    let mut site = Site::of(|folder| {
        let project = two_written(folder, &format!("{}{A2A}", sinks()));
        fs::write(folder.join(".env"), variables(&collector)).unwrap();
        project
    });
    let realms = REALMS.map(|name| Realm::furnished(&mut site, &doors, name, &provider.url()));
    let [first, second] = &realms;
    every_route_has_a_row(&mut site, first, &doors);
    let doors = [doors, a2a::doors()].concat();
    let pairs = [(first, second), (second, first)];
    // Later an audit names the ids that its own realm tried.
    for (own, other) in pairs {
        lists_are_apart(&mut site, own, other, &doors);
    }
    for (own, other) in pairs {
        let before = kept(&mut site, other);
        for door in &doors {
            door_is_tried(&mut site, door, own, other);
        }
        places_lead_nowhere(&mut site, own, other);
        names_of_a2a_lead_nowhere(&mut site, own, other);
        hints_are_apart(&mut site, own, other);
        assert_eq!(kept(&mut site, other), before, "`{}` changed its neighbour", own.name);
    }
    for (own, other) in pairs {
        own_things_go_on(&mut site, own, other);
    }
    let is_sent = |realm: &Realm, spans: &[Span]| spans.iter().any(|span| tells(span, realm));
    let spans = wait_for("spans with what was said in each realm", LIMIT, || {
        let spans = collector.spans();
        realms.iter().all(|realm| is_sent(realm, &spans)).then_some(spans)
    });
    for (own, other) in pairs {
        events_are_apart(&site.data, own, other);
        for span in spans.iter().filter(|span| tells(span, own)) {
            assert_eq!(*span.says("waypost.realm"), own.name, "{span:?}");
            assert!(!tells(span, other), "{span:?}");
        }
    }
    let stopped = site.stop();
    let log = fs::read_to_string(stopped.folder.path().join("server.log")).unwrap();
    for realm in &realms {
        assert!(
            log.contains(&format!("\"realm\":\"{}\"", realm.name)),
            "the log tells of no realm"
        );
        // A session that is named like that is named in its own realm's lines.
        let named = format!("\"session\":\"{}\"", realm.canary);
        let own = format!("\"realm\":\"{}\"", realm.name);
        let told = |line: &&str| {
            let rest = if line.contains(&own) { line.replace(&named, "") } else { (*line).into() };
            rest.contains(&realm.canary)
        };
        let line = log.lines().find(told);
        assert_eq!(line, None, "the log has what is said in `{}`", realm.name);
    }
}

/// The server says as much as it can.
fn variables(collector: &Collector) -> String {
    format!(
        "LOG_LEVEL=debug\nOTEL_EXPORTER_OTLP_ENDPOINT={}\nOTEL_BSP_SCHEDULE_DELAY=100\n\
         OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true\n",
        collector.url()
    )
}

/// Whether a span has what is said in this realm.
fn tells(span: &Span, realm: &Realm) -> bool {
    format!("{span:?}").contains(&realm.canary)
}

/// What the server says that it has is what is tried.
fn every_route_has_a_row(site: &mut Site, realm: &Realm, doors: &[Door]) {
    let document = site.get(&realm.key, "/openapi.json").json();
    let paths = document["paths"].as_object().unwrap_or_else(|| panic!("no paths: {document}"));
    let methods = |path: &String, item: &Value| {
        let methods = item.as_object().into_iter().flat_map(|item| item.keys());
        methods.map(|method| format!("{} {path}", method.to_uppercase())).collect::<Vec<_>>()
    };
    let served: BTreeSet<String> =
        paths.iter().flat_map(|(path, item)| methods(path, item)).collect();
    let is_route = |door: &&Door| matches!(door.kind, Kind::Rest | Kind::Token);
    let rows = doors.iter().filter(is_route).filter(|door| !door.route.contains('?'));
    let tried: BTreeSet<String> =
        rows.map(|door| format!("{} {}", door.method, door.route)).collect();
    assert_eq!(tried, served, "each path of `/openapi.json` is tried");
}

/// No list has an id or a word of the other; some have one's own.
fn lists_are_apart(site: &mut Site, own: &Realm, other: &Realm, doors: &[Door]) {
    let mut shown = String::new();
    for door in doors.iter().filter(|door| is_list(door)) {
        let path = door.path.replace("realm=default", &format!("realm={}", own.name));
        let answer = site.get(&own.key, &path);
        assert!(matches!(answer.status, 200 | 403 | 404), "{path}: {answer:?}");
        shown.push_str(&format!("{path}: {answer:?}\n"));
    }
    for answer in mcp_lists(site, &own.key) {
        assert_eq!(told(&answer), "200", "{answer:?}");
        shown.push_str(&format!("a list of MCP: {answer:?}\n"));
    }
    for path in A2A_LISTS.map(|path| path.replace("<realm>", own.name)) {
        let answer = a2a::got(site, &own.key, own.name, &path);
        assert_eq!(told(&answer), "200", "{path}: {answer:?}");
        shown.push_str(&format!("{path}: {answer:?}\n"));
    }
    for word in other.ids().chain([other.canary.as_str(), &other.bird]) {
        let place = shown.lines().find(|line| line.contains(word));
        assert_eq!(place, None, "`{}` is told of `{word}`", own.name);
    }
    for word in [&own.canary, &own.bird] {
        assert!(shown.contains(word.as_str()), "`{}` sees nothing of its own `{word}`", own.name);
    }
}

/// What the things of a realm are like for who administers it.
fn kept(site: &mut Site, realm: &Realm) -> Vec<String> {
    let principal = format!("/api/v1/principals/{}", realm.bird);
    let mut shown = Vec::new();
    for path in KEPT.map(|path| filled(path, &realm.facts)).into_iter().chain([principal]) {
        let answer = site.get(&realm.key, &path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        shown.push(answer.body);
    }
    for path in A2A_KEPT.map(|path| filled(path, &realm.facts)) {
        let answer = a2a::got(site, &realm.key, realm.name, &path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        shown.push(answer.body);
    }
    shown
}

/// One attempt at a door.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    own: &'a Realm,
    other: &'a Realm,
    /// The realm that it asks for.
    realm: &'a str,
    /// Whose session of MCP it uses.
    session_of: &'a Key,
}

/// Asks for what is the other's, in one's own realm and in the other's.
fn door_is_tried(site: &mut Site, door: &Door, own: &Realm, other: &Realm) {
    let plain = Attempt { own, other, realm: own.name, session_of: &own.key };
    let answer = attempted(site, door, plain);
    let names_foreign = door.path.contains('<') || door.body.contains('<');
    // What nobody subscribed to is not subscribed to afterwards either.
    let is_refusal = answer.status >= 400 || told(&answer).contains(' ');
    let is_indifferent = matches!(door.kind, Kind::Mcp(_, "resources/unsubscribe"));
    let is_right = is_refusal || is_indifferent || !names_foreign;
    assert!(is_right, "`{}`, {}: {answer:?}", own.name, door.name());
    // That a name is taken elsewhere is not told either.
    let is_missing = !door.path.contains("/sinks/file") || told(&answer) == "404 not_found";
    assert!(is_missing, "`{}`, {}: {answer:?}", own.name, door.name());
    let entered = attempted(site, door, Attempt { realm: other.name, ..plain });
    let is_open = door.thing == Thing::Open || door.kind == Kind::Token;
    let found = told(&entered);
    let is_refused = matches!(expected(door, Case::Realm), Expected::Told(word) if word == found);
    assert!(is_open || is_refused, "{}: {entered:?}", door.name());
    if let Kind::Mcp(Era::Legacy, method) = door.kind
        && method != "initialize"
    {
        let joined = attempted(site, door, Attempt { session_of: &other.key, ..plain });
        assert_eq!(told(&joined), "404 -32600", "{}: {joined:?}", door.name());
    }
}

/// Sends the request of a door with the other's facts in it; its answer tells nothing of the other.
fn attempted(site: &mut Site, door: &Door, attempt: Attempt<'_>) -> Answer {
    let Attempt { own, other, realm, session_of } = attempt;
    let path = filled(door.path, &other.facts)
        .replace("realm=default", &format!("realm={realm}"))
        .replace("/realms/default", &format!("/realms/{}", other.name))
        .replace("/a2a/v1/default/", &format!("/a2a/v1/{}/", other.name))
        .replace("/sinks/file", &format!("/sinks/{}", other.bird))
        .replace("/principals/ann", &format!("/principals/{}", other.bird));
    let is_a2a = matches!(door.kind, Kind::A2aRpc(_) | Kind::A2aHttp | Kind::A2aGrpc(_));
    let mut headers = Vec::new();
    if is_a2a {
        // Without one it is the realm of the settings.
        headers.extend(a2a::headers_at(door, Some(realm)));
    } else if realm != own.name && !path.contains("realm=") {
        headers.push(("x-realm", realm.to_owned()));
    }
    let params = filled(door.body, &other.facts);
    let body = match door.kind {
        Kind::Token => {
            let (id, secret) = (&other.key.id, &own.key.text);
            format!("grant_type=client_credentials&client_id={id}&client_secret={secret}")
        }
        Kind::Mcp(era, method) => site.message(era, method, &params, session_of, &mut headers),
        Kind::Rest | Kind::Rpc | Kind::OwnPort => params,
        Kind::A2aRpc(_) | Kind::A2aHttp | Kind::A2aGrpc(_) => a2a_body(door, params),
    };
    let key = Some(&own.key).filter(|_| door.kind != Kind::Token);
    let names_task = door.path.contains('<') || (is_a2a && door.body.contains('<'));
    let is_served = !names_task && realm == own.name && session_of.id == own.key.id;
    let sending = Sending { key, headers, method: door.method, path: &path, body: &body };
    let answer = site.answer_at(door, is_served, &sending);
    // What a realm asked for itself is in its own audit, by the name that it gave.
    let asked_before = if path.starts_with("/api/v1/audit") { &other.bird } else { "" };
    let asked = format!("`{}` at {} {path} {body} {asked_before}", own.name, door.method);
    tells_nothing(&answer, other, &asked);
    answer
}

/// Cursors, places of the feed, and states and sessions of MCP are good in their own realm alone.
fn places_lead_nowhere(site: &mut Site, own: &Realm, other: &Realm) {
    for (path, cursor) in &other.cursors {
        let page = |cursor: &str| format!("{}&cursor={cursor}", first_page(path));
        let foreign = site.get(&own.key, &page(cursor));
        let made_up = site.get(&own.key, &page("made-up"));
        assert_eq!(told(&foreign), told(&made_up), "{path}: {foreign:?}");
        assert!(foreign.status >= 400, "{path}: {foreign:?}");
        tells_nothing(&foreign, other, path);
    }
    for path in ["/api/v1/events".to_owned(), format!("/api/v1/events?after={}", other.place)] {
        let is_header = !path.contains('?');
        let place = is_header.then(|| ("last-event-id", other.place.clone()));
        let headers = place.into_iter().collect();
        let (key, path) = (Some(&own.key), path.as_str());
        let answer = site.send(&Sending { key, headers, method: "GET", path, body: "" });
        assert_eq!(told(&answer), "400 bad_cursor", "{path}: {answer:?}");
        tells_nothing(&answer, other, path);
    }
    let answer = call_that_asks(site, &own.key, other.reply());
    assert!(told(&answer).ends_with(" -32602"), "a state of another realm: {answer:?}");
    tells_nothing(&answer, other, "a state of MCP");
    let session = site.session_of(&other.key);
    for method in ["GET", "DELETE"] {
        let headers = vec![
            ("mcp-session-id", session.clone()),
            ("mcp-protocol-version", LEGACY[0].to_owned()),
            ("accept", "text/event-stream".to_owned()),
            ("last-event-id", "0-1".to_owned()),
        ];
        let key = Some(&own.key);
        let answer = site.send(&Sending { key, headers, method, path: "/mcp", body: "" });
        assert_eq!(answer.status, 404, "{method} of a session of another realm: {answer:?}");
        tells_nothing(&answer, other, "a session of MCP");
    }
}

/// Realms, contexts and page tokens of A2A are good for their own realm and caller alone. A realm
/// that is there is like one that is not.
fn names_of_a2a_lead_nowhere(site: &mut Site, own: &Realm, other: &Realm) {
    for path in ["tasks", "extendedAgentCard", "v1/tasks", "v1/card"] {
        let entered = |site: &mut Site, realm: &str| {
            let is_old = path.starts_with("v1/");
            let version = Some(("a2a-version", "1.0".to_owned())).filter(|_| !is_old);
            let headers = version.into_iter().collect();
            let (key, path) = (Some(&own.key), format!("/a2a/v1/{realm}/{path}"));
            site.send(&Sending { key, headers, method: "GET", path: &path, body: "" })
        };
        let foreign = entered(site, other.name);
        assert_eq!(told(&foreign), "403 PERMISSION_DENIED", "{path}: {foreign:?}");
        assert_eq!(told(&foreign), told(&entered(site, "made-up")), "{path}: {foreign:?}");
        tells_nothing(&foreign, other, path);
    }
    let context = |id: &str| format!("/a2a/v1/tasks?contextId={id}");
    let foreign = a2a::got(site, &own.key, own.name, &context(other.fact("<context>")));
    let made_up = a2a::got(site, &own.key, own.name, &context("made-up"));
    assert_eq!(told(&foreign), told(&made_up), "{foreign:?}");
    assert_eq!(foreign.json()["tasks"], made_up.json()["tasks"], "{foreign:?}");
    let page = |token: &str| format!("/a2a/v1/tasks?pageSize=1&pageToken={token}");
    let made_up = a2a::got(site, &own.key, own.name, &page("made-up"));
    assert_eq!(told(&made_up), "400 INVALID_ARGUMENT", "{made_up:?}");
    let foreign = a2a::got(site, &own.key, own.name, &page(&other.page_token));
    assert_eq!(told(&foreign), told(&made_up), "{foreign:?}");
    tells_nothing(&foreign, other, "a page of tasks");
    // Another member of the same realm has tasks and pages of its own.
    let member = site.made_in(own.name, "member", &[]);
    let another = a2a::got(site, &member, own.name, &page(&own.page_token));
    assert_eq!(told(&another), told(&made_up), "{another:?}");
    let none = a2a::got(site, &member, own.name, "/a2a/v1/tasks");
    assert_eq!((told(&none).as_str(), &none.json()["tasks"]), ("200", &json!([])), "{none:?}");
    let usual = a2a::got(site, &own.key, own.name, &page(&own.page_token));
    assert_eq!(told(&usual), "200", "its own page: {usual:?}");
}

/// Who mistypes a name of the other's is not told the right one.
fn hints_are_apart(site: &mut Site, own: &Realm, other: &Realm) {
    let typo = &other.bird[..other.bird.len() - 1];
    for path in [
        format!("/api/v1/tools/{typo}.echo"),
        format!("/api/v1/sinks/{typo}/deliveries"),
        format!("/api/v1/principals/{typo}"),
        format!("/api/v1/plans/{typo}"),
        format!("/api/v1/agents/{typo}"),
        format!("/api/v1/pipelines/{typo}"),
        format!("/api/v1/upstreams/{typo}"),
    ] {
        let answer = site.get(&own.key, &path);
        assert_eq!(told(&answer), "404 not_found", "{path}: {answer:?}");
        tells_nothing(&answer, other, &path);
    }
}

/// What others tried does not keep a realm from its own, and its feed tells of nothing else.
fn own_things_go_on(site: &mut Site, own: &Realm, other: &Realm) {
    let answer = call_that_asks(site, &own.key, own.reply());
    assert!(message(&answer)["result"]["content"].is_array(), "its own state: {answer:?}");
    let mut headers = Vec::new();
    let body = site.message(Era::Legacy, "ping", "{}", &own.key, &mut headers);
    let key = Some(&own.key);
    let answer = site.send(&Sending { key, headers, method: "POST", path: "/mcp", body: &body });
    assert_eq!(told(&answer), "200", "its own session of MCP: {answer:?}");
    let answer = resumed(site, &own.key, "matrix", own.fact("<call>"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let last = site.run(&own.key, "matrix::echo", None, &json!({"text": own.canary}));
    let feed = site.feed(&own.key, &text(&last["session"]["id"]));
    assert!(feed.contains(&own.canary), "the feed of `{}` has nothing of it", own.name);
    for word in other.ids().chain([other.canary.as_str(), &other.bird]) {
        assert!(!feed.contains(word), "the feed of `{}` tells of `{word}`", own.name);
    }
}

/// The events of a realm go to its own sink.
fn events_are_apart(data: &Path, own: &Realm, other: &Realm) {
    let file = data.join(events_file(own.name));
    let events = wait_for("an event with what is said in a realm", LIMIT, || {
        let events = fs::read_to_string(&file).unwrap_or_default();
        events.contains(&own.canary).then_some(events)
    });
    for word in other.ids().chain([other.canary.as_str(), &other.bird]) {
        assert!(!events.contains(word), "a sink of `{}` got `{word}`", own.name);
    }
}

/// An answer has no word of the other realm that was not in the request.
fn tells_nothing(answer: &Answer, other: &Realm, asked: &str) {
    let shown = format!("{answer:?}");
    for word in [&other.canary, &other.bird] {
        let is_told = shown.contains(word.as_str()) && !asked.contains(word.as_str());
        assert!(!is_told, "{asked} tells of `{word}`: {shown}");
    }
}
