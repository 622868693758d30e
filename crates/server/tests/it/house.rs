//! A server of the test's own, and how a test talks to it.

use crate::contract;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, Response};
use engine::{AgentFile, Engine, PlanFile};
use kernel::limits::Limits;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use server::{Assembled, Extra, Setup, Stopper, assemble};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use testkit::leaks;
use tower::ServiceExt;

/// The address that the server believes to listen on.
pub const ADDRESS: &str = "127.0.0.1:8420";
/// How often `wait_for` looks, ten milliseconds after each other: for a minute at least.
const LOOKS_MAX: usize = 6_000;
/// Longer than an answer takes on a busy machine.
const ANSWER_MS: u64 = 120_000;

/// A server with its data.
pub struct House {
    router: Router,
    pub engine: Engine,
    /// None where it is somebody else's.
    data: Option<TempDir>,
}

impl Drop for House {
    /// Whatever a test is about: no credential that was used in it is in the data folder.
    fn drop(&mut self) {
        if let Some(data) = self.data.as_ref().filter(|_| !std::thread::panicking()) {
            leaks::assert_none_below(data.path());
        }
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// The body as JSON, null where it is none.
    pub body: Value,
}

impl House {
    pub async fn demo() -> Self {
        Self::build(Project::demo(), None).await
    }

    /// The demo with these lines in `[limits]`.
    pub async fn limited(limits: &str) -> Self {
        let text = format!("[limits]\n{limits}\n");
        let config = Config::parse("waypost.toml", &text).unwrap();
        Self::build(Project { config, ..Project::demo() }, None).await
    }

    /// The demo within these limits, which may be fixed ones.
    pub async fn within(limits: Limits) -> Self {
        let config = Config { limits, ..Config::default() };
        Self::build(Project { config, ..Project::demo() }, None).await
    }

    pub async fn build(project: Project, admin_key: Option<&str>) -> Self {
        let data = tempfile::tempdir().unwrap();
        let address: SocketAddr = ADDRESS.parse().unwrap();
        let assembled = assembled(project, &data, address, admin_key).await;
        Self { router: assembled.router(), engine: assembled.engine, data: Some(data) }
    }

    /// A project whose upstreams may name these variables.
    pub async fn with_variables(
        project: Project,
        variables: &'static [(&'static str, &'static str)],
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let address: SocketAddr = ADDRESS.parse().unwrap();
        let lookup = move |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let setup = Setup { variables: Arc::new(lookup), ..setup(project, &data, address) };
        let assembled = built(setup).await;
        Self { router: assembled.router(), engine: assembled.engine, data: Some(data) }
    }

    /// A project with more tools and shelves.
    pub async fn furnished(project: Project, extra: Extra) -> Self {
        let data = tempfile::tempdir().unwrap();
        let address: SocketAddr = ADDRESS.parse().unwrap();
        let setup = Setup { extra, ..setup(project, &data, address) };
        let assembled = built(setup).await;
        Self { router: assembled.router(), engine: assembled.engine, data: Some(data) }
    }

    /// A server over a folder that is there before it and after it; who held it last may not have
    /// let go of it yet.
    pub async fn over(
        project: impl Fn() -> Project,
        data: &TempDir,
        admin_key: Option<&str>,
    ) -> (Self, Stopper) {
        let address: SocketAddr = ADDRESS.parse().unwrap();
        let admin_key = admin_key.map(str::to_owned);
        Self::of(|| Setup { admin_key: admin_key.clone(), ..setup(project(), data, address) }).await
    }

    /// The same with all that a server is built from.
    pub async fn of(setup: impl Fn() -> Setup) -> (Self, Stopper) {
        let assembled = once_free(setup).await;
        let stopper = assembled.stopper();
        let router = assembled.router();
        let engine = assembled.engine;
        (Self { router, engine, data: None }, stopper)
    }

    /// What answers requests.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// An answer whose body is not read yet.
    pub async fn open(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// An answer to its end; it is as `/openapi.json` says.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let answer = read(self.open(request).await).await;
        contract::hold(&method, &path, &answer);
        answer
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path, Body::empty())).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(request(Method::DELETE, path, Body::empty())).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(request(Method::POST, path, Body::from(body.to_string()))).await
    }

    pub async fn put(&self, path: &str, headers: &[(&'static str, &str)], body: Value) -> Answer {
        self.send(with(Method::PUT, path, headers, &body)).await
    }

    pub async fn post_with(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Value,
    ) -> Answer {
        self.send(with(Method::POST, path, headers, &body)).await
    }

    pub async fn post_text(&self, path: &str, body: &str) -> Answer {
        self.send(request(Method::POST, path, Body::from(body.to_owned()))).await
    }

    /// Starts a run and expects it to be accepted.
    pub async fn run(&self, body: Value) -> Value {
        let answer = self.post("/api/v1/runs", body).await;
        assert!(answer.status == 200 || answer.status == 202, "{answer:?}");
        answer.body
    }

    /// Removes what is over until so many sessions are gone: the driver of one may not have let
    /// go of it yet.
    pub async fn prune(&self, sessions: u64) {
        self.remove("sessions", sessions).await;
    }

    /// The same for runs of sessions that stay.
    pub async fn trim(&self, runs: u64) {
        self.remove("runs", runs).await;
    }

    /// Prunes until so many of this kind, which is a member of the answer, are gone.
    async fn remove(&self, kind: &str, count: u64) {
        let mut gone: u64 = 0;
        let prune = async || {
            let answer = self.post("/api/v1/sessions/prune", json!({"olderThanMs": 0})).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            gone += answer.body[kind].as_u64().unwrap();
            gone
        };
        let what = format!("{count} {kind} to be removed");
        let removed = wait_for(&what, prune, |gone: &u64| *gone >= count).await;
        assert_eq!(removed, count, "{kind} that were removed");
    }

    /// A run of `interaction::greeting` that waits, in a new session.
    pub async fn greeting(&self) -> Value {
        self.run(json!({"planId": "interaction::greeting"})).await
    }
}

/// Looks until what is seen holds, and returns it. A test that waits in vain fails with what it
/// waited for and what it saw last.
pub async fn wait_for<Seen: Debug>(
    what: &str,
    mut look: impl AsyncFnMut() -> Seen,
    holds: impl Fn(&Seen) -> bool,
) -> Seen {
    let mut last = None;
    for _ in 0..LOOKS_MAX {
        let seen = look().await;
        if holds(&seen) {
            return seen;
        }
        last = Some(seen);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain for {what}, last seen: {last:?}");
}

/// A server over a folder that another one may not have let go of yet.
pub async fn once_free(setup: impl Fn() -> Setup) -> Assembled {
    let mut made = None;
    let attempt = async || match assemble(setup()).await {
        Ok(assembled) => {
            made = Some(assembled);
            None
        }
        Err(error) if error.holder().is_some() => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    };
    wait_for("the data folder to be free", attempt, |held: &Option<String>| held.is_none()).await;
    made.unwrap()
}

/// A whole server over this folder.
pub async fn assembled(
    project: Project,
    data: &TempDir,
    address: SocketAddr,
    admin_key: Option<&str>,
) -> Assembled {
    let admin_key = admin_key.map(str::to_owned);
    built(Setup { admin_key, ..setup(project, data, address) }).await
}

/// What a server over this folder is built from.
pub fn setup(mut project: Project, data: &TempDir, address: SocketAddr) -> Setup {
    // An answer over MCP that a busy machine takes seconds for must not become a stream, unless a
    // test says after how long it does.
    let quiet_ms = &mut project.config.limits.mcp_quiet_ms;
    if *quiet_ms == Limits::default().mcp_quiet_ms {
        *quiet_ms = ANSWER_MS;
    }
    let fatal = Arc::new(|why: String| assert!(why.is_empty(), "the store failed: {why}"));
    Setup::new(project, data.path().join("data"), address, fatal)
}

async fn built(setup: Setup) -> Assembled {
    match assemble(setup).await {
        Ok(assembled) => assembled,
        Err(error) => panic!("{error}"),
    }
}

/// A request that comes from this machine.
pub fn request(method: Method, path: &str, body: Body) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost:8420")
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

/// The same with headers.
fn with(
    method: Method,
    path: &str,
    headers: &[(&'static str, &str)],
    body: &Value,
) -> Request<Body> {
    let mut request = request(method, path, Body::from(body.to_string()));
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

pub async fn read(response: Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, 64 * 1024 * 1024).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Answer { status: parts.status.as_u16(), headers: parts.headers, text, body }
}

impl Answer {
    /// Status and code of a refusal, with the pointers of its faulty values.
    pub fn refusal(&self) -> (u16, String, Vec<String>) {
        let code = self.body["code"].as_str().unwrap_or_default().to_owned();
        let errors = self.body["errors"].as_array().cloned().unwrap_or_default();
        let pointers = errors.iter().map(|error| text(&error["pointer"])).collect();
        (self.status, code, pointers)
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// What `Answer::refusal` should be.
pub fn refused(status: u16, code: &str, pointers: &[&str]) -> (u16, String, Vec<String>) {
    (status, code.to_owned(), pointers.iter().map(|pointer| (*pointer).to_owned()).collect())
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A text as it stands in a query.
pub fn encoded(value: &Value) -> String {
    let byte = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text(value).bytes().map(byte).collect()
}

/// The demo with one more plan.
pub fn demo_with(file: &str, id: &str, plan: &str) -> Project {
    let mut project = Project::demo();
    project.plans.push(PlanFile {
        file: file.to_owned(),
        text: plan.to_owned(),
        default_id: id.into(),
    });
    project
}

/// The demo with these agents in its files.
pub fn demo_with_agents(agents: &[(&str, &str)]) -> Project {
    let file = |(file, text): &(&str, &str)| AgentFile {
        file: (*file).to_owned(),
        text: (*text).to_owned(),
    };
    Project { agents: agents.iter().map(file).collect(), ..Project::demo() }
}

/// Whether any of these texts can be read in the data folder.
pub fn is_in_clear(folder: &std::path::Path, secrets: &[String]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_in_clear(&path, secrets);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        secrets.iter().any(|secret| text.contains(secret.as_str()))
    })
}

/// A plan that asks before it adds.
pub fn approval() -> Value {
    json!({
        "planId": "it/approval",
        "description": "asks before it adds",
        "startStepId": "add",
        "steps": [
            {"id": "add", "type": "tool_call", "toolId": "math::add", "approve": true,
             "arguments": {"a": 1, "b": 2}, "saveAs": "sum", "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.sum"}},
        ],
    })
}

/// A plan that asks a question without a form.
pub fn question() -> Value {
    json!({
        "planId": "it/question",
        "description": "asks",
        "startStepId": "ask",
        "steps": [
            {"id": "ask", "type": "human_in_the_loop", "message": "go on?",
             "nextStepIdOnInput": "end"},
            {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.human_input"}},
        ],
    })
}
