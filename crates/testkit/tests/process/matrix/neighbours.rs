//! Two realms on one server with the same names everywhere: plans, agents, pipelines, providers,
//! sessions, threads, keys and messages of A2A. What they say is each realm's own, and so are the
//! names of what cannot have the same: sinks, principals and tools of a provider.

use super::a2a;
use super::apart::asked;
use super::doors::{Door, Kind, Thing};
use super::files::{DEFINITIONS, SETTINGS, put, written};
use super::message;
use super::sending::{Key, LIMIT, Sending};
use super::site::{Facts, Home, Site, filled, text};
use serde_json::{Value, json};
use std::path::Path;
use testkit::caller::Era;
use testkit::harness::{Project, wait_for};
use testkit::http::Answer;
use wire::a2a::{HEADER_VERSION, VERSION};
use wire::mcp::META_CAPABILITIES;

pub(super) const REALMS: [&str; 2] = ["default", "acme"];
/// The settings by which there is a second realm.
const ACME: &str = "\n[realms.acme]\nmax_find_limit = 100\n";

/// What the things of a realm say.
pub(super) fn canary(realm: &str) -> String {
    format!("canary-of-{realm}")
}

/// What those things of a realm are called that share their names with no other realm's.
pub(super) fn bird(realm: &str) -> String {
    format!("bird-of-{realm}")
}

/// The file of a sink of a realm, below the data folder.
pub(super) fn events_file(realm: &str) -> String {
    format!("{realm}.jsonl")
}

/// Writes the project with a second realm, whose files take the place of all of the root's.
pub(super) fn two_written(folder: &Path, more_settings: &str) -> Project {
    let project = written(folder);
    put(folder, "waypost.toml", &format!("{SETTINGS}{ACME}{more_settings}"));
    put_defaults(folder);
    for (path, text) in DEFINITIONS {
        // A pipeline of one realm has neither a port nor a model of its own.
        let own = saying(text, "acme").replace("port: 0, ", "");
        let own = own.replace("{type: stub}", "{type: model, params: {name: rules}}");
        put(folder, &format!("realms/acme/{path}"), &own);
    }
    project
}

/// Writes the definitions of the root: there they are `default`'s alone where a second realm is.
pub(super) fn put_defaults(folder: &Path) {
    for (path, text) in DEFINITIONS {
        put(folder, path, &saying(text, "default"));
    }
}

/// A sink for each realm.
pub(super) fn sinks() -> String {
    let sink = |realm: &str| {
        let (name, file) = (bird(realm), events_file(realm));
        let head = format!("\n[events.sinks.{name}]\ntype = \"file\"\npath = \"{file}\"\n");
        format!("{head}realms = [\"{realm}\"]\n")
    };
    REALMS.map(sink).concat()
}

/// A definition that tells whose it is.
fn saying(definition: &str, realm: &str) -> String {
    let canary = canary(realm);
    definition
        .replacen("description: ", &format!("description: {canary} "), 1)
        .replace("refName: clerk\n", &format!("refName: clerk\ndescription: {canary}\n"))
        .replace("desk.events", &canary)
        .replace("your name?", &format!("your name, {canary}?"))
}

/// A realm, with what a stranger might try to get at it.
pub(super) struct Realm {
    pub(super) name: &'static str,
    pub(super) canary: String,
    pub(super) bird: String,
    /// Administers this realm alone, and owns what is there.
    pub(super) key: Key,
    pub(super) facts: Facts,
    /// A place in its feed.
    pub(super) place: String,
    /// What a tool asks for over MCP, with the state to come back with.
    pub(super) wanted: Value,
    /// Lists, each with the cursor of its second page.
    pub(super) cursors: Vec<(&'static str, String)>,
    /// The same of its tasks of A2A.
    pub(super) page_token: String,
}

impl Realm {
    /// Makes one of everything in this realm.
    pub(super) fn furnished(
        site: &mut Site,
        doors: &[Door],
        name: &'static str,
        provider: &str,
    ) -> Self {
        let (canary, bird) = (canary(name), bird(name));
        let key = site.made_in(name, "admin", &[]);
        let home = Home { realm: name, admin: &key, owner: &key, canary: &canary };
        let mut facts = site.furnished(&home);
        facts.extend(a2a::tasks(site, &key, Some(name)));
        let context = context_of(site, &key, name, &facts);
        facts.push(("<context>", context));
        let root = site.keys.root.clone();
        let shelf = json!({"providerType": "mcp", "baseUrl": provider, "displayName": canary,
            "prefix": format!("{bird}.")});
        let path = format!("/api/v1/providers/shelf?realm={name}");
        site.done(&root, "PUT", &path, &shelf);
        let principal = json!({"name": canary, "realms": {name: ["member"]},
            "properties": {"team": canary}});
        let path = format!("/api/v1/principals/{bird}?realm={name}");
        site.done(&root, "PUT", &path, &principal);
        let echo = format!("/api/v1/tools/{bird}.echo");
        wait_for("the tools of a stored provider to be listed", LIMIT, || {
            (site.get(&key, &echo).status == 200).then_some(())
        });
        let words = json!({"arguments": {"text": canary}});
        site.done(&key, "POST", &format!("{echo}/call"), &words);
        let case = json!({"tradeId": canary, "reason": "Missing ISIN"});
        site.done(&key, "POST", "/desk/cases", &case);
        let wanted = call_that_asks(site, &key, json!({}));
        let wanted = message(&wanted)["result"].clone();
        assert!(wanted["requestState"].is_string(), "no state of MCP in {wanted}");
        let place = place_in_feed(site, &key);
        let cursors = cursors(site, doors, &key);
        let page_token = page_token(site, &key, name);
        Self { name, canary, bird, key, facts, place, wanted, cursors, page_token }
    }

    /// What is there under this word in angle brackets.
    pub(super) fn fact(&self, word: &str) -> &str {
        let fact = self.facts.iter().find(|(known, _)| *known == word);
        fact.map(|(_, fact)| fact.as_str()).unwrap_or_else(|| panic!("no fact {word}"))
    }

    /// The ids of its things; a path is none.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.facts.iter().filter(|(word, _)| *word != "<backup>");
        ids.map(|(_, id)| id.as_str())
    }

    /// An answer to what the tool asks for, with the state of this realm.
    pub(super) fn reply(&self) -> Value {
        let requests = self.wanted["inputRequests"].as_object();
        let asked = requests.and_then(|requests| requests.keys().next());
        let asked = asked.unwrap_or_else(|| panic!("nothing is asked in {}", self.wanted));
        let content = json!({"action": "accept", "content": {"name": "Ann"}});
        json!({"requestState": self.wanted["requestState"], "inputResponses": {asked: content}})
    }
}

/// Calls a tool that asks for a name, as a client that can show a form and knows no tasks.
pub(super) fn call_that_asks(site: &mut Site, key: &Key, mut params: Value) -> Answer {
    params["name"] = json!("matrix__ask");
    params["arguments"] = json!({});
    let mut headers = Vec::new();
    let body = site.message(Era::Modern, "tools/call", &params.to_string(), key, &mut headers);
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body["params"]["_meta"][META_CAPABILITIES] = json!({"elicitation": {"form": {}}});
    let body = body.to_string();
    site.send(&Sending { key: Some(key), headers, method: "POST", path: "/mcp", body: &body })
}

/// Where the first event of a realm's feed is.
fn place_in_feed(site: &mut Site, key: &Key) -> String {
    let run = site.run(key, "matrix::echo", None, &json!({}));
    let feed = site.feed(key, &text(&run["session"]["id"]));
    let place = feed.lines().find_map(|line| line.strip_prefix("id:"));
    place.unwrap_or_else(|| panic!("no place in {feed}")).trim().to_owned()
}

/// Whether this asks for many things at once, and ends.
pub(super) fn is_list(door: &Door) -> bool {
    let is_many = matches!(door.thing, Thing::List | Thing::Server | Thing::Oneself);
    let is_plain = door.kind == Kind::Rest && door.method == "GET";
    is_plain && is_many && !door.is_stream() && !door.path.contains('<')
}

/// The path of a list, asked for with one item on each page.
pub(super) fn first_page(path: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{path}{mark}limit=1")
}

/// The lists that have a second page.
fn cursors(site: &mut Site, doors: &[Door], key: &Key) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for door in doors.iter().filter(|door| is_list(door) && !door.path.contains("realm=")) {
        let page = message(&site.get(key, &first_page(door.path)));
        found.extend(page["nextCursor"].as_str().map(|cursor| (door.path, cursor.to_owned())));
    }
    for list in ["/api/v1/sessions", "/api/v1/asks", "/api/v1/plans", "/api/v1/tools"] {
        let is_there = found.iter().any(|(path, _)| *path == list);
        assert!(is_there, "`{list}` has no second page: {found:?}");
    }
    found
}

/// The context of a task of A2A; the task has a webhook afterwards.
fn context_of(site: &mut Site, key: &Key, realm: &str, facts: &[(&'static str, String)]) -> String {
    let path = filled("/a2a/v1/tasks/<task>", facts);
    let hook = r#"{"id": "kept", "url": "https://hooks.test/"}"#;
    let headers = vec![(HEADER_VERSION, VERSION.to_owned()), ("x-realm", realm.to_owned())];
    let (method, hooks) = ("POST", format!("{path}/pushNotificationConfigs"));
    let made = site.send(&Sending { key: Some(key), headers, method, path: &hooks, body: hook });
    assert_eq!(made.status, 200, "{made:?}");
    text(&a2a::got(site, key, realm, &path).json()["contextId"])
}

/// The place of the second page of a realm's tasks.
fn page_token(site: &mut Site, key: &Key, realm: &str) -> String {
    let page = a2a::got(site, key, realm, "/a2a/v1/tasks?pageSize=1").json();
    let token = text(&page["nextPageToken"]);
    assert!(!token.is_empty(), "the tasks have no second page: {page}");
    token
}

/// The lists of MCP as a realm sees them.
pub(super) fn mcp_lists(site: &mut Site, key: &Key) -> Vec<Answer> {
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    lists.iter().map(|method| asked(site, key, method, &json!({}))).collect()
}
