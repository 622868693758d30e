//! A client that uses an upstream which wants a login. It logs in when that is due, and reads there
//! again and again, in runs. Tokens last for a second, so they are renewed between kills and under
//! them. A login lasts over a kill, unless the kill came between a token and its client: the
//! authorization server knows whether it can have.

use super::hits::Hits;
use super::told::Told;
use crate::api;
use serde_json::json;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testkit::harness::wait_for;
use testkit::http::{Client, NoAnswer, Request};
use testkit::kill::{Ask, Load, Run, read};
use testkit::servers::login::{Given, LoginServer, MARK};

/// The plan, by its path.
pub(super) const PLAN: (&str, &str) = (
    "kill/hub.yaml",
    r#"planId: kill/hub
description: one read of an upstream that wants a login
parameters: {type: object, required: [number]}
startStepId: add
steps:
  - id: add
    type: tool_call
    toolId: "hub.add"
    arguments: {a: {jsonPath: $.promptInput.number}, b: 1}
    saveAs: sum
    nextStepId: end
  - {id: end, type: final_response, message: "hub {{ context.sum.structuredContent.sum }}"}
"#,
);

const UPSTREAM: &str = "/api/v1/upstreams/hub";
/// How the keys of the sessions begin that run the plan.
const PREFIX: &str = "hub-";
/// Where logins come back to, whichever port the server has this time. Nobody listens there: the
/// client goes to the same path of the server as it is now.
const PUBLIC_URL: &str = "http://127.0.0.1:1";
const TOKENS_LAST_S: u64 = 1;
/// Long enough that some kills fall between a token and its client.
const TOKEN_DELAY: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(30);
/// How long the upstream may take to be ready after a start.
const READY_LIMIT: Duration = Duration::from_secs(120);

/// The server that wants a login, and what its client was acknowledged.
pub(super) struct Logins {
    server: LoginServer,
    /// The number of each run, and its id.
    runs: Mutex<Vec<(u64, String)>>,
}

/// How the upstream is.
enum Hub {
    Ready,
    /// It wants somebody to log in at this page.
    Login(String),
    Away,
}

impl Logins {
    /// Starts the server that wants a login.
    pub(super) fn start() -> Self {
        let server = LoginServer::giving(TOKENS_LAST_S, TOKEN_DELAY);
        Self { server, runs: Mutex::default() }
    }

    /// The settings that name it.
    pub(super) fn settings(&self) -> String {
        let base = &self.server.base;
        format!(
            "[server]\npublic_url = \"{PUBLIC_URL}\"\n\n\
             [mcp.servers.hub]\nurl = \"{base}/mcp\"\ntrusted = true\n"
        )
    }

    /// Logs in when that is due, and reads, until clients shall end.
    pub(super) fn work(&self, load: &Load<'_>) {
        let mut number = 0;
        load.keep_at(|client| {
            match hub(client)? {
                Hub::Ready => number += u64::from(self.read(client, load, number)?),
                Hub::Login(page) => self.log_in(client, load, &page)?,
                Hub::Away => {}
            }
            Ok(PAUSE)
        });
    }

    /// Waits until the upstream is ready after a start: without another login, unless one is due.
    pub(super) fn wait_until_back(&self, client: &mut Client) {
        wait_for("the upstream to be ready without another login", READY_LIMIT, || {
            match hub(client).unwrap_or_else(|error| panic!("{UPSTREAM}: {error}")) {
                Hub::Ready => Some(()),
                Hub::Login(page) => {
                    assert!(self.server.is_login_due(), "a login is wanted again at {page}");
                    Some(())
                }
                Hub::Away => None,
            }
        });
    }

    /// After the first start and the last: logs in if that is due, and waits until the upstream is
    /// ready.
    pub(super) fn settle(&self, client: &mut Client, load: &Load<'_>) {
        wait_for("the upstream to be ready", READY_LIMIT, || {
            match hub(client).unwrap_or_else(|error| panic!("{UPSTREAM}: {error}")) {
                Hub::Ready => Some(()),
                Hub::Login(page) => {
                    self.log_in(client, load, &page)
                        .unwrap_or_else(|error| panic!("{page}: {error}"));
                    None
                }
                Hub::Away => None,
            }
        });
    }

    /// Every run that was acknowledged is completed, and no token was lost that was in use, nor
    /// written to the log.
    pub(super) fn check(&self, client: &mut Client, told: &mut Told<'_>, log: &str) {
        assert_eq!(self.server.faults(), Vec::<String>::new(), "what the login server was sent");
        let leaked = log.lines().find(|line| line.contains(MARK));
        assert_eq!(leaked, None, "a token or a code stands in the log");
        for (number, id) in self.runs().iter() {
            let how = told.ended(id).map_or_else(String::new, |ending| ending.how);
            assert_eq!(how, "completed", "what the sink was told of run {number} of the upstream");
            if let Some(run) = api::find_run(client, id) {
                assert_eq!(run.answer, Some(json!(format!("hub {}", number + 1))), "{run:?}");
            }
        }
        let Given { logins, renewals, .. } = self.server.given();
        assert!(logins > 0 && renewals > 0, "{logins} logins, {renewals} tokens renewed");
        assert!(!self.runs().is_empty(), "the upstream was never read");
    }

    /// How much was done.
    pub(super) fn figures(&self) -> String {
        let Given { logins, renewals, lost } = self.server.given();
        let runs = self.runs().len();
        format!("{runs} reads of an upstream, {logins} logins, {renewals} renewals, {lost} lost")
    }

    /// A person logs in; a kill in the middle of it costs another login.
    fn log_in(&self, client: &mut Client, load: &Load<'_>, page: &str) -> Result<(), NoAnswer> {
        if !self.server.is_login_due() {
            load.fault(format!("a login is wanted again, and no token was lost: {page}"));
        }
        let back = self.server.agree(page);
        let Some(path) = back.strip_prefix(PUBLIC_URL) else {
            load.fault(format!("a login comes back to `{back}`"));
            return Ok(());
        };
        let answer = client.get(path)?;
        if !matches!(answer.status, 200 | 429 | 503) {
            load.fault(format!("a login got {}: {}", answer.status, answer.body));
        }
        Ok(())
    }

    /// Starts the run of this number, perhaps once more; whether it was acknowledged.
    fn read(&self, client: &mut Client, load: &Load<'_>, number: u64) -> Result<bool, NoAnswer> {
        let session = format!("{PREFIX}{number}");
        let body = json!({"planId": "kill/hub", "session": session, "input": {"number": number}});
        let (headers, text) = ([("Idempotency-Key", session.as_str())], body.to_string());
        let path = "/api/v1/runs";
        let answer =
            client.send(&Request { method: "POST", path, headers: &headers, body: Some(&text) })?;
        match answer.status {
            200 | 202 => {
                let run: Run = read(&answer.json()["run"]);
                self.runs().push((number, run.id));
                Ok(true)
            }
            // It was over long enough ago for retention when its answer was asked for again.
            410 => Ok(true),
            429 | 503 => Ok(false),
            status => {
                load.fault(format!("{body} got {status}: {}", answer.body));
                Ok(false)
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, Vec<(u64, String)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hub(client: &mut Client) -> Result<Hub, NoAnswer> {
    let answer = client.get(UPSTREAM)?;
    if answer.status != 200 {
        return Ok(Hub::Away);
    }
    let hub = answer.json();
    Ok(match (hub["state"].as_str(), hub["loginUrl"].as_str()) {
        (Some("ready"), _) => Hub::Ready,
        (Some("login"), Some(page)) => Hub::Login(page.to_owned()),
        _ => Hub::Away,
    })
}

/// Whether a run of the upstream asks this.
pub(super) fn is_asked_there(ask: &Ask) -> bool {
    ask.session.key.starts_with(PREFIX)
}

/// Answers what a run of the upstream asks, once that is ready: somebody has logged in, and a read
/// that failed meanwhile is tried again.
pub(super) fn answer(client: &mut Client, ask: &Ask, hits: &Hits) {
    let reply = match ask.kind.as_str() {
        "authorize" => json!({"action": "done"}),
        "fix" => json!({"action": "retry"}),
        other => panic!("a read asks a `{other}`: {ask:?}"),
    };
    hits.check(ask);
    let answered = client.post(&format!("/api/v1/asks/{}", ask.id), &reply);
    let answered = answered.unwrap_or_else(|error| panic!("no answer to {ask:?}: {error}"));
    assert_eq!(answered.status, 200, "{reply} to {ask:?}: {}", answered.body);
}
