//! A scan of all that a server wrote: its log, its data, events, metrics, spans, errors and what
//! commands print. None of the secrets that were used is in any of it.

use super::ledger::reply;
use super::site::{APPROVERS, PLAN_ID, Person, STARTER, Site, To};
use crate::events_out::SECRET as HOOK_SECRET;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;
use testkit::harness::{Server, wait_for, waypost_fed};
use testkit::http::{Answer, Client, Request};
use testkit::kill::{Run, read};
use testkit::servers::otlp::Collector;
use testkit::servers::webhook::WebhookReceiver;

/// Shorter texts are not looked for.
const SECRET_LETTERS_MIN: usize = 16;
/// How long events and spans may take to get out.
const LIMIT: Duration = Duration::from_secs(180);

const ADMIN_KEY: &str = "the-admin-key-of-the-secrets-test-0001";
const UPSTREAM_TOKEN: &str = "upstream-token-of-the-secrets-test";
const MODEL_KEY: &str = "model-key-of-the-secrets-test";
const SPANS_TOKEN: &str = "spans-token-of-the-secrets-test";
/// A key that nobody made.
const MADE_UP: &str = "wp_aaaaaaaaaa_madeupmadeupmadeupmadeupmadeupmadeupmadeup";

const AGENT: &str = "refName: clerk\nllmConfigRef: far\n";

/// Settings with an upstream and a model that cannot be reached, and a sink that can.
fn settings(hook: &WebhookReceiver) -> String {
    format!(
        "[mcp.servers.far]\nurl = \"http://127.0.0.1:1/mcp\"\n\
         headers = {{ Authorization = \"Bearer ${{FAR_TOKEN}}\" }}\n\n\
         [models.far]\nprovider = \"openai\"\nmodel = \"m\"\n\
         base_url = \"http://127.0.0.1:1/v1\"\napi_key = \"${{FAR_MODEL_KEY}}\"\n\n\
         [events.sinks.hook]\ntype = \"webhook\"\nurl = \"{}\"\n\
         secret = \"${{HOOK_SECRET}}\"\n\n\
         [events.sinks.lines]\ntype = \"file\"\npath = \"events.jsonl\"\n",
        hook.url()
    )
}

/// What a server knows by its variables, and how much it says.
fn variables(collector: &Collector) -> String {
    format!(
        "WAYPOST_ADMIN_KEY={ADMIN_KEY}\nFAR_TOKEN={UPSTREAM_TOKEN}\nFAR_MODEL_KEY={MODEL_KEY}\n\
         HOOK_SECRET={HOOK_SECRET}\nLOG_LEVEL=debug\n\
         OTEL_EXPORTER_OTLP_ENDPOINT={}\n\
         OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20{SPANS_TOKEN}\n",
        collector.url()
    )
}

#[test]
fn no_secret_is_in_anything_that_a_server_writes() {
    let _turn = crate::my_turn();
    let (hook, collector) = (WebhookReceiver::start(&[HOOK_SECRET]), Collector::start());
    let site = Site::build(&settings(&hook));
    let agents = site.project.path().join("agents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("clerk.yaml"), AGENT).unwrap();
    fs::write(site.project.path().join(".env"), variables(&collector)).unwrap();
    let mut server = site.start();
    server.wait_until_ready();
    let mut scan = Scan::default();
    used(&site, &server, &mut scan);
    wait_for("an event and a span to get out", LIMIT, || {
        (!hook.taken().is_empty() && !collector.spans().is_empty()).then_some(())
    });
    for arguments in [["key", "list"], ["audit", "tail"], ["audit", "export"]] {
        let ended = site.command(&server, &arguments);
        scan.text(&arguments.join(" "), &String::from_utf8_lossy(&ended.stdout));
        scan.text(&arguments.join(" "), &String::from_utf8_lossy(&ended.stderr));
    }
    assert!(server.terminate().status.success(), "the server did not end well");
    let shown = waypost_fed(site.project.path(), &["config", "show", "--origin"], &[], "");
    scan.text("the settings", &String::from_utf8_lossy(&shown.stdout));
    scan.text("the settings", &String::from_utf8_lossy(&shown.stderr));
    scan.folder(&site.data);
    scan.file(&site.folder.path().join("server.log"));
    for taken in hook.taken() {
        scan.text("an event", &taken.event.to_string());
    }
    for export in collector.exports() {
        scan.bytes("spans", &export.bytes);
    }
    // What reads everything would not be noticed if it read nothing.
    let env = fs::read(site.project.path().join(".env")).unwrap();
    assert!(holds(&env, ADMIN_KEY), "the scan finds nothing where there is something");
    assert_eq!(hook.faults(), Vec::<String>::new());
    let found = scan.found();
    assert!(found.is_empty(), "secrets were written:\n{}", found.join("\n"));
}

/// Uses each of the secrets, rightly and wrongly.
fn used(site: &Site, server: &Server, scan: &mut Scan) {
    let mut client = server.client();
    let admin = Person { name: "admin".to_owned(), key: ADMIN_KEY.to_owned() };
    let mia = site.person(server, STARTER);
    let old = site.person(server, STARTER);
    let approver = site.person(server, APPROVERS[0]);
    for secret in [ADMIN_KEY, UPSTREAM_TOKEN, MODEL_KEY, SPANS_TOKEN, HOOK_SECRET, MADE_UP] {
        scan.secret(secret);
    }
    let id = old.key.split('_').nth(1).unwrap().to_owned();
    let rotate = format!("/api/v1/keys/{id}/rotate");
    let rotated = admin.done(&mut client, To::post("default", &rotate), &json!({"overlapMs": 1}));
    let rotated = rotated["text"].as_str().unwrap_or_else(|| panic!("no key: {rotated}"));
    let token = token(&mut client, &mia);
    let people = [&site.root, &mia, &old, &approver].map(|person| person.key.as_str());
    for key in people.into_iter().chain([rotated, token.as_str()]) {
        scan.secret(key);
        // The rest of a key is as good as a key to who knows its id, which is no secret.
        key.splitn(3, '_').nth(2).into_iter().for_each(|rest| scan.secret(rest));
    }
    let bearer = Person { name: "token".to_owned(), key: token.clone() };
    let nobody = Person { name: "nobody".to_owned(), key: MADE_UP.to_owned() };
    let run = json!({"planId": PLAN_ID, "input": {}});
    for person in [&admin, &mia, &old, &bearer, &nobody, &site.root] {
        for (method, path, body) in [
            ("GET", "/api/v1/whoami", &Value::Null),
            ("GET", "/api/v1/keys", &Value::Null),
            ("GET", "/api/v1/upstreams/far", &Value::Null),
            ("POST", "/api/v1/upstreams/far/check", &json!({})),
            ("GET", "/api/v1/sinks", &Value::Null),
            ("GET", "/api/v1/audit", &Value::Null),
            ("GET", "/metrics", &Value::Null),
            ("GET", "/readyz?verbose", &Value::Null),
            ("POST", "/api/v1/runs", &run),
        ] {
            let to = To { realm: "default", method, path };
            let answer = person.send(&mut client, to, body);
            scan.answer(path, &answer.unwrap_or_else(|error| panic!("{method} {path}: {error}")));
        }
        let query = format!("/api/v1/whoami?access_token={}&api_key={}", person.key, person.key);
        scan.answer("a key in a query", &plain(&mut client, "GET", &query, &[], None));
    }
    // A run that ends has spans, and one whose model cannot be reached has a reason.
    let started = mia.done(&mut client, To::post("default", "/api/v1/runs"), &run);
    let started: Run = read(&started["run"]);
    let ask = started.asks.first().unwrap_or_else(|| panic!("{started:?} asks nothing"));
    let path = format!("/api/v1/asks/{}", ask.id);
    approver.done(&mut client, To::post("default", &path), &reply(ask, true));
    let talk = json!({"thread_id": "t", "user_request": "hello", "agent": "clerk"});
    let answer = mia.send(&mut client, To::post("default", "/run"), &talk);
    scan.answer("/run", &answer.unwrap_or_else(|error| panic!("POST /run: {error}")));
    let doubled = [("authorization", mia.key.as_str()), ("x-api-key", mia.key.as_str())];
    scan.answer("two keys", &plain(&mut client, "GET", "/api/v1/whoami", &doubled, None));
    let wrong = format!("grant_type=client_credentials&client_id={id}&client_secret={MADE_UP}");
    scan.answer("a wrong secret", &plain(&mut client, "POST", "/oauth/token", &[], Some(&wrong)));
}

/// A token for a key.
fn token(client: &mut Client, person: &Person) -> String {
    let id = person.key.split('_').nth(1).unwrap();
    let form = format!("grant_type=client_credentials&client_id={id}&client_secret={}", person.key);
    let answer = plain(client, "POST", "/oauth/token", &[], Some(&form));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["access_token"].as_str().unwrap().to_owned()
}

fn plain(
    client: &mut Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> Answer {
    let answer = client.send(&Request { method, path, headers, body });
    answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// What was written, and the secrets that must not be in it.
#[derive(Default)]
struct Scan {
    secrets: Vec<String>,
    written: Vec<(String, Vec<u8>)>,
}

impl Scan {
    fn secret(&mut self, secret: &str) {
        // What is shorter could be there by chance.
        if secret.len() >= SECRET_LETTERS_MIN {
            self.secrets.push(secret.to_owned());
        }
    }

    fn answer(&mut self, what: &str, answer: &Answer) {
        let headers: Vec<String> =
            answer.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        self.text(what, &format!("{}\n{}", headers.join("\n"), answer.body));
    }

    fn text(&mut self, what: &str, text: &str) {
        self.bytes(what, text.as_bytes());
    }

    fn bytes(&mut self, what: &str, bytes: &[u8]) {
        self.written.push((what.to_owned(), bytes.to_vec()));
    }

    fn file(&mut self, path: &Path) {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!bytes.is_empty(), "`{}` is empty", path.display());
        self.bytes(&path.display().to_string(), &bytes);
    }

    /// Every file below this folder, of which there must be some.
    fn folder(&mut self, folder: &Path) {
        let before = self.written.len();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if fs::read_dir(&path).unwrap().next().is_none() => {}
                true => self.folder(&path),
                false => {
                    let bytes = fs::read(&path).unwrap();
                    self.bytes(&path.display().to_string(), &bytes);
                }
            }
        }
        assert!(self.written.len() > before, "nothing is in `{}`", folder.display());
    }

    /// Where secrets are, without them.
    fn found(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (what, bytes) in &self.written {
            let held = self.secrets.iter().filter(|secret| holds(bytes, secret));
            found.extend(
                held.map(|secret| format!("{what}: one that begins with {}", &secret[..6])),
            );
        }
        found.sort();
        found.dedup();
        found
    }
}

/// Whether these bytes hold this text, however it is escaped in JSON: secrets have no such letters.
fn holds(bytes: &[u8], secret: &str) -> bool {
    let wanted = secret.as_bytes();
    let first = wanted[0];
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == first);
    starts.map(|(place, _)| place).any(|place| bytes[place..].starts_with(wanted))
}
