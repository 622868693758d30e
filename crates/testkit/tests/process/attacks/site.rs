//! A server that asks everybody for a credential, and callers at addresses of their own: it is
//! behind a proxy, which the test plays, so that the failures of one are not those of another.

use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use testkit::harness::{Project, Server, StartOptions, waypost};
use testkit::http::{Answer, Client, Request};
use testkit::servers::issuer::{AUDIENCE, Issuer};

/// How long anything may take on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(180);
/// Where nothing that is wrong comes from.
pub(super) const HOME: &str = "192.0.2.1";
pub(super) const WHOAMI: &str = "/api/v1/whoami";

const SETTINGS: &str = "[server.tls]\nby = \"proxy\"\n";

/// The server.
pub(super) struct Site {
    server: Server,
    /// Administers everything.
    root: String,
    project: PathBuf,
    data: PathBuf,
    folder: TempDir,
}

/// A key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) text: String,
}

/// Someone at an address.
pub(super) struct Caller {
    client: Client,
    from: String,
}

/// A request without its credential.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) body: Option<&'a str>,
}

/// The entry of an issuer in the settings.
pub(super) fn entry(name: &str, issuer: &Issuer) -> String {
    let url = &issuer.url;
    format!(
        "[auth.issuers.{name}]\nurl = \"{url}\"\naudience = \"{AUDIENCE}\"\n\
         realms = [\"default\"]\nroles = {{ staff = [\"member\"] }}\n"
    )
}

impl Site {
    /// Starts it with these settings beside its own.
    pub(super) fn start(more: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-attacks-").tempdir().unwrap();
        let project = folder.path().join("project");
        Project::write(&project, &[], &format!("{SETTINGS}{more}"));
        let data = folder.path().join("data");
        let made = ["key", "create", "--name", "root", "--role", "admin", "--realm", "*"];
        let place = ["--data", data.to_str().unwrap()];
        let output = waypost(folder.path(), &[&made[..], &place].concat());
        assert!(output.status.success(), "no first key: {output:?}");
        let root = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let server = started(&project, &data);
        Self { server, root, project, data, folder }
    }

    /// Ends it in good order and starts it again on its data.
    pub(super) fn restarted(self) -> Self {
        let Self { server, root, project, data, folder } = self;
        let ended = server.terminate();
        assert!(ended.status.success(), "not in good order: {ended:?}");
        let server = started(&project, &data);
        Self { server, root, project, data, folder }
    }

    /// Ends it in good order. Nothing of these credentials may be in its log.
    pub(super) fn end(self, credentials: &[String]) {
        let ended = self.server.terminate();
        assert!(ended.status.success(), "not in good order: {ended:?}");
        let log = fs::read_to_string(self.folder.path().join("server.log")).unwrap();
        for credential in credentials {
            assert!(!log.contains(credential.as_str()), "the log has `{credential}`");
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Someone who comes from this address.
    pub(super) fn caller(&self, from: &str) -> Caller {
        Caller { client: self.server.client().limit(LIMIT), from: from.to_owned() }
    }

    /// A new key with this role.
    pub(super) fn key(&self, role: &str) -> Key {
        let body = json!({"name": role, "roles": [role]});
        key_of(&self.administered("POST", "/api/v1/keys", Some(&body)))
    }

    /// The same key with another text; the old one ends after so much time.
    pub(super) fn rotated(&self, key: &Key, overlap_ms: u64) -> Key {
        let path = format!("/api/v1/keys/{}/rotate", key.id);
        key_of(&self.administered("POST", &path, Some(&json!({"overlapMs": overlap_ms}))))
    }

    pub(super) fn revoke(&self, key: &Key) {
        self.administered("DELETE", &format!("/api/v1/keys/{}", key.id), None);
    }

    /// What an administrator is answered, who succeeds.
    pub(super) fn administered(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let body = body.map(Value::to_string);
        let asking = Asking { method, path, body: body.as_deref() };
        let answer = self.caller(HOME).ask(&self.root, asking);
        let is_done = matches!(answer.status, 200..=299);
        assert!(is_done, "{method} {path}: {answer:?}; {}", self.server.log_tail());
        if answer.body.is_empty() { Value::Null } else { answer.json() }
    }
}

impl Caller {
    /// The same caller at another address.
    pub(super) fn at(&mut self, from: &str) -> &mut Self {
        from.clone_into(&mut self.from);
        self
    }

    /// The answer to a request with this credential.
    pub(super) fn ask(&mut self, credential: &str, asking: Asking<'_>) -> Answer {
        let bearer = format!("Bearer {credential}");
        self.send(&[("authorization", bearer.as_str())], asking)
    }

    /// The same with these headers, and no credential beside them.
    pub(super) fn send(&mut self, headers: &[(&str, &str)], asking: Asking<'_>) -> Answer {
        let Asking { method, path, body } = asking;
        let from = [("x-forwarded-for", self.from.as_str())];
        let headers = [&from[..], headers].concat();
        let answer = self.client.send(&Request { method, path, headers: &headers, body });
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Asks who the holder of this credential is.
    pub(super) fn who(&mut self, credential: &str) -> Answer {
        self.ask(credential, Asking { method: "GET", path: WHOAMI, body: None })
    }
}

fn started(project: &Path, data: &Path) -> Server {
    let mut server = Server::start(&StartOptions { project, data, args: &[] });
    server.wait_until_ready();
    server
}

fn key_of(made: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    Key { id: text(&made["key"]["id"]), text: text(&made["text"]) }
}

/// The same text with another last character.
pub(super) fn altered(text: &str) -> String {
    let (rest, last) = text.split_at(text.len() - 1);
    format!("{rest}{}", if last == "a" { "b" } else { "a" })
}
