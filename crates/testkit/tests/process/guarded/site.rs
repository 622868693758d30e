//! The project, its data, and those who come with keys of their own. The server is behind a proxy,
//! which the test plays.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use tempfile::TempDir;
use testkit::harness::{Project, Server, StartOptions, waypost, waypost_fed};
use testkit::http::{Answer, Client, NoAnswer, Request};

/// How long an answer may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);
/// Where all requests come from, as the proxy says.
const HOME: &str = "192.0.2.1";

/// Two realms with the same people, plans and names.
pub(super) const REALMS: [&str; 2] = ["acme", "globex"];
/// Who starts runs.
pub(super) const STARTER: &str = "mia";
/// Who approves.
pub(super) const APPROVERS: [&str; 2] = ["ann", "bob"];

pub(super) const PLAN_ID: &str = "guarded/approve";
const PLAN: &str = r#"planId: guarded/approve
description: one call that a person must approve
parameters: {type: object}
startStepId: add
steps:
  - id: add
    type: tool_call
    toolId: "math::add"
    approve: true
    arguments: {a: 1, b: 2}
    saveAs: sum
    nextStepId: end
  - {id: end, type: final_response, message: "sum {{ context.sum }}"}
"#;

/// The server is behind a proxy, so that everybody needs a credential.
const SETTINGS: &str = r#"[server.tls]
by = "proxy"

[tools]
demo = true

[realms.acme]
max_find_limit = 100

[realms.globex]
max_find_limit = 100
"#;

const PRINCIPALS: &str = r#"principals:
  mia:
    realms: {default: [member], acme: [member], globex: [member]}
  ann:
    realms: {default: [approver], acme: [approver], globex: [approver]}
  bob:
    realms: {default: [approver], acme: [approver], globex: [approver]}
"#;

/// Where a request goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct To<'a> {
    pub(super) realm: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
}

impl<'a> To<'a> {
    pub(super) fn post(realm: &'a str, path: &'a str) -> Self {
        Self { realm, method: "POST", path }
    }
}

/// Someone who comes with a key.
#[derive(Debug, Clone)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) key: String,
}

impl Person {
    /// Sends a request in a realm.
    pub(super) fn send(
        &self,
        client: &mut Client,
        to: To<'_>,
        body: &Value,
    ) -> Result<Answer, NoAnswer> {
        let To { realm, method, path } = to;
        let headers =
            [("x-api-key", self.key.as_str()), ("x-realm", realm), ("x-forwarded-for", HOME)];
        let body = body.to_string();
        let body = Some(body.as_str()).filter(|body| *body != "null");
        client.send(&Request { method, path, headers: &headers, body })
    }

    /// The body of an answer that must be 2xx.
    pub(super) fn done(&self, client: &mut Client, to: To<'_>, body: &Value) -> Value {
        let answer = self.send(client, to, body);
        let answer = answer.unwrap_or_else(|error| panic!("{to:?}: {error}"));
        assert!(matches!(answer.status, 200..=299), "{to:?}: {answer:?}");
        answer.json()
    }

    /// What a GET answers.
    pub(super) fn get(&self, client: &mut Client, realm: &str, path: &str) -> Value {
        self.done(client, To { realm, method: "GET", path }, &Value::Null)
    }

    /// All items of a list whose path has a query already.
    pub(super) fn all(&self, client: &mut Client, realm: &str, path: &str) -> Vec<Value> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(client, realm, &format!("{path}&limit=200{cursor}"));
            items.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }
}

/// A project, its data, and who administers it.
pub(super) struct Site {
    pub(super) folder: TempDir,
    pub(super) project: Project,
    pub(super) data: PathBuf,
    pub(super) root: Person,
}

impl Site {
    /// One with more settings, and a key that administers everything.
    pub(super) fn build(settings: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-guarded-").tempdir().unwrap();
        let settings = format!("{SETTINGS}\n{settings}");
        let plans = [("guarded/approve.yaml", PLAN)];
        let project = Project::write(&folder.path().join("project"), &plans, &settings);
        fs::write(project.path().join("principals.yaml"), PRINCIPALS).unwrap();
        let data = folder.path().join("data");
        let key = first_key(folder.path(), &data);
        Self { folder, project, data, root: Person { name: "root".to_owned(), key } }
    }

    /// A server over its data.
    pub(super) fn start(&self) -> Server {
        self.start_on(&self.data)
    }

    /// A server over other data.
    pub(super) fn start_on(&self, data: &Path) -> Server {
        Server::start(&StartOptions { project: self.project.path(), data, args: &[] })
    }

    /// A principal of the file, with a key that a running server makes.
    pub(super) fn person(&self, server: &Server, name: &str) -> Person {
        let mut client = server.client().limit(LIMIT);
        let body = json!({"name": name, "of": name});
        let made = self.root.done(&mut client, To::post("default", "/api/v1/keys"), &body);
        let key = made["text"].as_str().unwrap_or_else(|| panic!("no key: {made}"));
        Person { name: name.to_owned(), key: key.to_owned() }
    }

    /// Runs `waypost` against a running server as who administers it.
    pub(super) fn command(&self, server: &Server, arguments: &[&str]) -> Output {
        let url = format!("http://{}", server.address());
        let arguments = [&["--server", url.as_str()][..], arguments].concat();
        let variables = [("WAYPOST_API_KEY", self.root.key.as_str())];
        waypost_fed(self.folder.path(), &arguments, &variables, "")
    }
}

/// The key that is made before a server is there.
fn first_key(folder: &Path, data: &Path) -> String {
    let data = data.to_str().unwrap();
    let made = ["key", "create", "--name", "root", "--role", "admin", "--realm", "*"];
    let output = waypost(folder, &[&made[..], &["--data", data]].concat());
    assert!(output.status.success(), "no first key: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
