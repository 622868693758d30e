//! A server that asks everybody for a credential, the keys that come to it, and what is there to be
//! asked for. It is behind a proxy, which the test plays: failed attempts are counted by address,
//! and each door gets addresses of its own.

use super::a2a;
use super::doors::{Door, INITIALIZE, Kind, Thing};
use super::files;
use super::over::{self, Busy};
use super::rules::{Case, Expected, expected};
use super::sending::{Key, LIMIT, Sending, answered, called, head, heard};
use kernel::values::caller::{Act, Scope};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use testkit::caller::Era;
use testkit::harness::{Project, Server, StartOptions, wait_for, waypost};
use testkit::http::grpc::Until;
use testkit::http::{Answer, Client};
use wire::mcp::{LEGACY, META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN, TASKS};

/// What the owner's things say, and nobody else may read.
pub(super) const CANARY: &str = "canary-of-the-owner";
/// An answer with so many letters is a blob.
const BLOB_LETTERS: usize = 40_000;
/// So many failures of one address are answered, and one more is not; more than that is sent.
const FLOOD: usize = 40;

/// Those who come.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Administers everything.
    pub(super) root: Key,
    /// A member, whose everything is.
    pub(super) owner: Key,
    /// Another member.
    pub(super) other: Key,
    pub(super) viewer: Key,
    pub(super) approver: Key,
    /// An administrator's, for reading alone.
    pub(super) reads: Key,
    /// An administrator's, which cannot answer, define, operate or administer.
    pub(super) uses: Key,
    /// Never made.
    pub(super) unknown: Key,
    /// One with another text by now.
    pub(super) expired: Key,
    pub(super) revoked: Key,
}

/// The server, and what is there.
pub(super) struct Site {
    server: Server,
    /// At the server's port.
    client: Client,
    /// At the port of the pipeline's own.
    own: Client,
    pub(super) keys: Keys,
    /// What stands for the words in angle brackets.
    facts: Facts,
    /// The sessions of MCP, by the key that began them.
    sessions: BTreeMap<String, String>,
    /// Who has used up what it may use.
    busy: Option<Busy>,
    pub(super) project: PathBuf,
    pub(super) data: PathBuf,
    pub(super) folder: TempDir,
}

impl Site {
    /// Starts the server and lets the first ones in.
    pub(super) fn start() -> Self {
        Self::of(files::written)
    }

    /// The same with the project that is written into the given folder.
    pub(super) fn of(write: impl FnOnce(&Path) -> Project) -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-matrix-").tempdir().unwrap();
        let project = write(&folder.path().join("project"));
        let data = folder.path().join("data");
        let root = first_key(folder.path(), &data);
        let options = StartOptions { project: project.path(), data: &data, args: &[] };
        let mut server = Server::start(&options);
        server.wait_until_ready();
        let client = server.client().limit(LIMIT);
        let own = Client::new(own_port(&folder.path().join("server.log"))).limit(LIMIT);
        let keys = Keys { root, ..Keys::default() };
        let (facts, sessions, busy) = (Vec::new(), BTreeMap::new(), None);
        let project = project.path().to_path_buf();
        let mut site =
            Self { server, client, own, keys, facts, sessions, busy, project, data, folder };
        site.make_keys();
        site
    }

    /// Ends the server in good order; the folder stays until this is dropped.
    pub(super) fn stop(self) -> Stopped {
        let Self { server, keys, project, data, folder, .. } = self;
        let ended = server.terminate();
        assert!(ended.status.success(), "not in good order: {ended:?}");
        Stopped { keys, project, data, folder }
    }

    fn make_keys(&mut self) {
        let keys = Keys {
            root: self.keys.root.clone(),
            owner: self.made("member", &[]),
            other: self.made("member", &[]),
            viewer: self.made("viewer", &[]),
            approver: self.made("approver", &[]),
            reads: self.made("admin", &["read"]),
            uses: self.made("admin", &["use"]),
            unknown: Key::default(),
            expired: self.made("admin", &[]),
            revoked: self.made("admin", &[]),
        };
        self.keys = keys;
        let Key { id, text } = &self.keys.owner;
        let (rest, last) = text.split_at(text.len() - 1);
        let other = if last == "a" { "b" } else { "a" };
        self.keys.unknown = Key { id: id.clone(), text: format!("{rest}{other}") };
        let root = self.keys.root.clone();
        let revoked = format!("/api/v1/keys/{}", self.keys.revoked.id);
        self.done(&root, "DELETE", &revoked, &Value::Null);
        let rotated = format!("/api/v1/keys/{}/rotate", self.keys.expired.id);
        self.done(&root, "POST", &rotated, &json!({"overlapMs": 1}));
        let expired = self.keys.expired.clone();
        wait_for("the old text of a rotated key to end", LIMIT, || {
            (self.get(&expired, "/api/v1/whoami").status == 401).then_some(())
        });
    }

    fn made(&mut self, role: &str, scopes: &[&str]) -> Key {
        self.made_in("default", role, scopes)
    }

    /// A key for one realm, made there.
    pub(super) fn made_in(&mut self, realm: &str, role: &str, scopes: &[&str]) -> Key {
        let root = self.keys.root.clone();
        let mut body = json!({"name": role, "roles": [role]});
        if !scopes.is_empty() {
            body["scopes"] = json!(scopes);
        }
        let path = format!("/api/v1/keys?realm={realm}");
        let made = self.done(&root, "POST", &path, &body);
        Key { id: text(&made["key"]["id"]), text: text(&made["text"]) }
    }

    /// Makes one of everything that doors name, all of it the owner's.
    pub(super) fn furnish(&mut self) {
        let (admin, owner) = (self.keys.root.clone(), self.keys.owner.clone());
        let (realm, canary) = ("default", CANARY);
        self.facts = self.furnished(&Home { realm, admin: &admin, owner: &owner, canary });
    }

    /// Lets somebody use up what they may use.
    pub(super) fn furnish_busy(&mut self) {
        self.busy = Some(Busy::furnished(self));
    }

    /// Lets them use it up again, where some of it may come back soon.
    pub(super) fn keep_busy(&mut self) {
        if let Some(mut busy) = self.busy.take() {
            busy.call_again(self);
            self.busy = Some(busy);
        }
    }

    /// More that stands for words in angle brackets.
    pub(super) fn add_facts(&mut self, more: Facts) {
        self.facts.extend(more);
    }

    /// The same in any realm; what stands for the words in angle brackets there.
    pub(super) fn furnished(&mut self, home: &Home<'_>) -> Facts {
        let Home { realm, admin, owner, canary } = *home;
        let said = json!({"text": canary});
        let asks = self.run(owner, "matrix::ask", Some("matrix-asks"), &said);
        let paused = self.run(owner, "matrix::ask", None, &said);
        let stuck = self.run(owner, "matrix::stuck", None, &said);
        self.run(owner, "matrix::echo", Some("matrix-old"), &said);
        let letters = format!("{canary}{}", "x".repeat(BLOB_LETTERS));
        let large = self.run(owner, "matrix::echo", None, &json!({"text": letters}));
        let session = text(&large["session"]["id"]);
        let plain = json!({"sessionId": "matrix-plain"});
        self.done(owner, "POST", "/sessions", &plain);
        let agent = json!({"llmConfigRef": "rules", "enabledTools": ["math::add"]});
        for name in ["matrix-one", "matrix-two", "matrix-three"] {
            self.done(admin, "PUT", &format!("/api/v1/agents/{name}"), &agent);
        }
        let third = format!("/api/agent/config/matrix-three?realm={realm}");
        let third = self.done(admin, "GET", &third, &Value::Null);
        let provider = json!({"providerType": "mcp", "baseUrl": "http://127.0.0.1:1/mcp"});
        // An address of this machine is for who administers every realm.
        let root = self.keys.root.clone();
        let shelf = format!("/api/v1/providers/shelf?realm={realm}");
        self.done(&root, "PUT", &shelf, &provider);
        let spare = self.made_in(realm, "member", &[]);
        let call = self.said(owner, "matrix", canary).call;
        vec![
            ("<ask>", text(&asks["run"]["asks"][0]["id"])),
            ("<run>", text(&asks["run"]["id"])),
            ("<paused>", text(&paused["run"]["id"])),
            ("<stuck>", text(&stuck["run"]["id"])),
            ("<event>", format!("{session}.1")),
            ("<session>", session),
            ("<blob>", blob(&large)),
            ("<agent>", text(&third["id"])),
            ("<key>", spare.id),
            ("<call>", call),
            ("<backup>", self.folder.path().join("backup").display().to_string()),
        ]
    }

    /// Runs a plan until it is over or waits.
    pub(super) fn run(
        &mut self,
        key: &Key,
        plan: &str,
        session: Option<&str>,
        input: &Value,
    ) -> Value {
        let mut body = json!({"planId": plan, "input": input});
        if let Some(session) = session {
            body["session"] = json!(session);
        }
        self.done(key, "POST", "/api/v1/runs", &body)
    }

    /// Says something to the agent, which asks whether it may call a tool.
    pub(super) fn said(&mut self, key: &Key, thread: &str, words: &str) -> Said {
        let answer = self.say(key, thread, words);
        let told = answer.json();
        let call = told["pending_action"]["tool_calls"][0]["call_id"].as_str();
        let call = call.unwrap_or_else(|| panic!("no call waits: {answer:?}")).to_owned();
        Said { answer, call }
    }

    /// The same, for any person who may answer what it asks.
    pub(super) fn say(&mut self, key: &Key, thread: &str, words: &str) -> Answer {
        let body = json!({"thread_id": thread, "user_request": format!("add {words}"),
            "agent": "clerk"});
        let headers = vec![("idempotency-key", "once".to_owned())];
        let (key, body) = (Some(key), body.to_string());
        self.send(&Sending { key, headers, method: "POST", path: "/run", body: &body })
    }

    /// The body of an answer to a request that must succeed.
    pub(super) fn done(&mut self, key: &Key, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (key, headers) = (Some(key), Vec::new());
        let answer = self.send(&Sending { key, headers, method, path, body: &body });
        let is_done = matches!(answer.status, 200..=299);
        assert!(is_done, "{method} {path}: {answer:?}; {}", self.server.log_tail());
        if answer.body.is_empty() { Value::Null } else { answer.json() }
    }

    pub(super) fn get(&mut self, key: &Key, path: &str) -> Answer {
        let (key, headers) = (Some(key), Vec::new());
        self.send(&Sending { key, headers, method: "GET", path, body: "" })
    }

    /// Sends a request to the server's port.
    pub(super) fn send(&mut self, sending: &Sending<'_>) -> Answer {
        answered(&mut self.client, sending)
    }

    /// Asks at a door in this case, from this address.
    pub(super) fn ask(&mut self, door: &Door, case: Case, from: &str) -> Answer {
        let key = self.key_for(door, case);
        let mut headers = vec![("x-forwarded-for", from.to_owned())];
        let mut path = self.filled_for(door.path, case);
        match case {
            Case::Malformed => headers.push(("authorization", "Basic %".to_owned())),
            // There the query must name it.
            Case::Realm if path.contains("realm=") => {
                path = path.replace("realm=default", "realm=other");
            }
            Case::Realm => headers.push(("x-realm", "other".to_owned())),
            _ => {}
        }
        let body = match door.kind {
            Kind::Token => form(key.as_ref(), (case == Case::Scope).then_some("admin")),
            Kind::Mcp(era, method) => {
                let body = self.filled_for(door.body, case);
                // The session is always that of somebody who has one.
                let of = match case {
                    Case::Hidden => self.keys.owner.clone(),
                    Case::Scope | Case::Denied | Case::Over => key.clone().unwrap_or_default(),
                    _ => self.keys.root.clone(),
                };
                self.message(era, method, &body, &of, &mut headers)
            }
            Kind::A2aRpc(_) | Kind::A2aHttp | Kind::A2aGrpc(_) => {
                // Its usual realm is not that of every key.
                let realm = (case == Case::Over).then_some(over::REALM);
                headers.extend(a2a::headers_at(door, realm));
                a2a_body(door, self.filled_for(door.body, case))
            }
            Kind::Rest | Kind::Rpc | Kind::OwnPort => self.filled_for(door.body, case),
        };
        let sent_key = key.as_ref().filter(|_| door.kind != Kind::Token);
        let sending =
            Sending { key: sent_key, headers, method: door.method, path: &path, body: &body };
        self.answer_at(door, expected(door, case) == Expected::Served, &sending)
    }

    /// The same as a caller who may: everywhere who administers everything, but a thread is its
    /// owner's alone.
    pub(super) fn ask_allowed(&mut self, door: &Door) -> Answer {
        let key = match door.thing {
            Thing::Thread => self.keys.owner.clone(),
            _ => self.keys.root.clone(),
        };
        let mut headers = Vec::new();
        let (path, body) = (self.filled(door.path), self.filled(door.body));
        let body = match door.kind {
            Kind::Token => form(Some(&key), None),
            Kind::Mcp(era, method) => self.message(era, method, &body, &key, &mut headers),
            Kind::A2aRpc(_) | Kind::A2aHttp | Kind::A2aGrpc(_) => {
                headers.extend(a2a::headers_at(door, None));
                a2a_body(door, body)
            }
            Kind::Rest | Kind::Rpc | Kind::OwnPort => body,
        };
        let key = Some(&key).filter(|_| door.kind != Kind::Token);
        let sending = Sending { key, headers, method: door.method, path: &path, body: &body };
        self.answer_at(door, true, &sending)
    }

    pub(super) fn answer_at(
        &mut self,
        door: &Door,
        is_served: bool,
        sending: &Sending<'_>,
    ) -> Answer {
        match door.kind {
            Kind::OwnPort => answered(&mut self.own, sending),
            Kind::A2aGrpc(method) => {
                let until = if door.is_stream() { Until::Begun } else { Until::Ended };
                called(self.server.address(), method, until, sending)
            }
            // A stream that begins does not end; one that is refused is a whole answer.
            _ if door.is_stream() && is_served => head(self.server.address(), sending),
            _ => answered(&mut self.client, sending),
        }
    }

    fn key_for(&self, door: &Door, case: Case) -> Option<Key> {
        let keys = &self.keys;
        let scope = door.act().map(Act::scope);
        let key = match case {
            Case::Nothing | Case::Malformed => return None,
            Case::Unknown | Case::TooMany => &keys.unknown,
            Case::Expired => &keys.expired,
            Case::Revoked => &keys.revoked,
            Case::Realm => &keys.root,
            Case::Scope if scope == Some(Scope::Use) || scope.is_none() => &keys.reads,
            Case::Scope => &keys.uses,
            // A viewer reads everything.
            Case::Denied if scope == Some(Scope::Read) => &keys.approver,
            Case::Denied => &keys.viewer,
            Case::Hidden => &keys.other,
            Case::Over => return self.busy.as_ref().map(|busy| busy.key.clone()),
        };
        Some(key.clone())
    }

    /// A message of this era, with the headers that belong to it.
    pub(super) fn message(
        &mut self,
        era: Era,
        method: &str,
        params: &str,
        of: &Key,
        headers: &mut Vec<(&'static str, String)>,
    ) -> String {
        let mut params: Value = serde_json::from_str(params).unwrap();
        let listens = method == "subscriptions/listen";
        let accept = if listens { "text/event-stream" } else { "application/json" };
        headers.push(("accept", accept.to_owned()));
        match era {
            Era::Legacy if method == "initialize" => {}
            Era::Legacy => {
                let session = self.session_of(of);
                headers.push(("mcp-session-id", session));
                headers.push(("mcp-protocol-version", LEGACY[0].to_owned()));
            }
            Era::Modern => {
                headers.push(("mcp-protocol-version", MODERN.to_owned()));
                headers.push(("mcp-method", method.to_owned()));
                let subject = ["name", "uri", "taskId"].iter().find_map(|key| params[key].as_str());
                headers.extend(subject.map(|subject| ("mcp-name", subject.to_owned())));
                params["_meta"] = meta();
            }
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    }

    /// The session of MCP that this key has; it begins one.
    pub(super) fn session_of(&mut self, key: &Key) -> String {
        if let Some(session) = self.sessions.get(&key.text) {
            return session.clone();
        }
        let mut headers = Vec::new();
        let body = self.message(Era::Legacy, "initialize", INITIALIZE, key, &mut headers);
        let sending =
            Sending { key: Some(key), headers, method: "POST", path: "/mcp", body: &body };
        let answer = self.send(&sending);
        let session = answer.header("mcp-session-id").unwrap_or_else(|| panic!("{answer:?}"));
        self.sessions.insert(key.text.clone(), session.to_owned());
        session.to_owned()
    }

    fn filled(&self, text: &str) -> String {
        filled(text, &self.facts)
    }

    /// The same with what the caller of this case has.
    fn filled_for(&self, text: &str, case: Case) -> String {
        match &self.busy {
            Some(busy) if case == Case::Over => busy.filled(text),
            _ => self.filled(text),
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Sends more wrong keys from this address than are answered as what they are.
    pub(super) fn flood(&mut self, from: &str) {
        let unknown = self.keys.unknown.clone();
        for _ in 0..FLOOD {
            let headers = vec![("x-forwarded-for", from.to_owned())];
            let (key, path) = (Some(&unknown), "/api/v1/whoami");
            self.send(&Sending { key, headers, method: "GET", path, body: "" });
        }
    }

    /// All that the feed tells this key, until it names this word.
    pub(super) fn feed(&self, key: &Key, word: &str) -> String {
        let sending = Sending {
            key: Some(key),
            headers: Vec::new(),
            method: "GET",
            path: "/api/v1/events",
            body: "",
        };
        let what = format!("the feed to tell of `{word}`");
        heard(self.server.address(), &sending, &what, |heard| heard.contains(word))
    }
}

/// What stands for the words in angle brackets.
pub(super) type Facts = Vec<(&'static str, String)>;

/// Where things are made, by whom, and what they say.
#[derive(Clone, Copy)]
pub(super) struct Home<'a> {
    pub(super) realm: &'a str,
    pub(super) admin: &'a Key,
    pub(super) owner: &'a Key,
    pub(super) canary: &'a str,
}

/// The text with these facts for the words in angle brackets.
pub(super) fn filled(text: &str, facts: &[(&'static str, String)]) -> String {
    let mut text = text.to_owned();
    for (word, fact) in facts {
        text = text.replace(word, fact);
    }
    text
}

/// The body of a request of A2A in the binding of this door.
pub(super) fn a2a_body(door: &Door, filled: String) -> String {
    match door.kind {
        Kind::A2aRpc(method) => a2a::message(method, &filled),
        _ => filled,
    }
}

/// What is left of a server that ended.
pub(super) struct Stopped {
    pub(super) keys: Keys,
    pub(super) project: PathBuf,
    pub(super) data: PathBuf,
    pub(super) folder: TempDir,
}

/// The outcome of something that was said.
pub(super) struct Said {
    pub(super) answer: Answer,
    /// The call that waits to be approved.
    pub(super) call: String,
}

/// The key that is made before a server is there.
fn first_key(folder: &Path, data: &Path) -> Key {
    let data = data.to_str().unwrap();
    let made = ["key", "create", "--name", "root", "--role", "admin", "--realm", "*"];
    let output = waypost(folder, &[&made[..], &["--data", data]].concat());
    assert!(output.status.success(), "no first key: {output:?}");
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let id = text.split('_').nth(1).unwrap_or_else(|| panic!("`{text}` is no key"));
    Key { id: id.to_owned(), text }
}

/// Where the pipeline has a port of its own: it took a free one, and the log says which.
fn own_port(log: &Path) -> SocketAddr {
    wait_for("the log to name the pipeline's own port", LIMIT, || {
        let log = fs::read_to_string(log).unwrap_or_default();
        let line = log.lines().find(|line| line.contains("a port of its own"))?;
        let (_, rest) = line.split_once("\"address\":\"")?;
        rest.split('"').next()?.parse().ok()
    })
}

/// What a client of the newer version says of itself.
fn meta() -> Value {
    json!({
        META_VERSION: MODERN,
        META_CLIENT: {"name": "matrix", "version": "1"},
        META_CAPABILITIES: {"extensions": {TASKS: {}}},
    })
}

/// A form that asks for a token, with this scope.
fn form(key: Option<&Key>, scope: Option<&str>) -> String {
    let mut form = "grant_type=client_credentials".to_owned();
    if let Some(Key { id, text }) = key {
        form.push_str(&format!("&client_id={id}&client_secret={text}"));
    }
    if let Some(scope) = scope {
        form.push_str(&format!("&scope={scope}"));
    }
    form
}

/// The hash of the blob that a run answered with.
pub(super) fn blob(run: &Value) -> String {
    let uri = run["run"]["answer"].as_str().unwrap_or_default();
    let hash = uri.strip_prefix("blob://").unwrap_or_else(|| panic!("no blob: {run}"));
    hash.to_owned()
}

/// A text that must be there.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("`{value}` is no text")).to_owned()
}
