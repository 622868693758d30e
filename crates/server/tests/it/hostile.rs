//! The hostile corpus at every endpoint that takes a body, and in every file of a project: each
//! case is refused, or has the result that is documented, in time; and then the server answers as
//! before. A new route needs a line in `TARGETS`. gRPC, which takes no JSON, is in `fuzz_a2a`.

use crate::desk::{self, DESK, desk_with};
use crate::house::{Answer, House, read, request};
use axum::body::Body;
use axum::http::{HeaderValue, Method};
use kernel::definition::plan::mistake::Mistake;
use project::config::Config;
use serde_json::{Value, json};
use server::{
    A2A_OPERATIONS, ProjectReport, ToCheck, VAULT_ROUTES, check_project, openapi, routes,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;
use testkit::fuzz::hostile::{Case, Kind, of};
use testkit::fuzz::watch::Watchdog;
use testkit::panics;
use tokio::runtime::Builder;

/// How long one answer may take on a busy machine: sixty times as long as on an idle one.
const LIMIT: Duration = Duration::from_secs(120);
/// After so long nothing will come any more.
const HANGS: Duration = Duration::from_secs(600);
/// A build for tests takes about ten times as long for each node as a server.
const LIMITS: &str = "pointer_nodes_max = 500000";
/// The longest text that is sent as a value: what it costs does not depend on what it says.
const VALUE_BYTES_MAX: usize = 4_096;
/// What stands in a path for an ask that is open.
const ASK: &str = "ASK";
/// The only endpoint with a documented 500: an agent that was stored before names a model that is
/// not there, so that its run is stuck until a person says what to do.
const TALK: &str = "/run";
/// An id that nothing has.
const NO_RUN: &str = "run_00000000000000000000000000000000";
/// Where A2A is, in all versions.
const A2A: &str = "/a2a";
const A2A_VERSION: &str = "1.0";

/// Puts a text into a body.
type Wrap = fn(&str) -> String;

/// One endpoint.
struct Target {
    method: &'static str,
    route: &'static str,
    path: &'static str,
    /// A body with this plan, as JSON.
    plan: Option<Wrap>,
    /// A body with this text as what is said to a model.
    prompt: Option<Wrap>,
    /// A body with this text as a value.
    value: Option<Wrap>,
    /// The version of A2A that a request names.
    version: Option<&'static str>,
}

const fn target(method: &'static str, route: &'static str, path: &'static str) -> Target {
    Target { method, route, path, plan: None, prompt: None, value: None, version: None }
}

/// One of A2A 1.0.
const fn a2a(route: &'static str, path: &'static str) -> Target {
    Target { version: Some(A2A_VERSION), ..target("POST", route, path) }
}

impl Target {
    const fn plan(mut self, wrap: Wrap) -> Self {
        self.plan = Some(wrap);
        self
    }

    const fn prompt(mut self, wrap: Wrap) -> Self {
        self.prompt = Some(wrap);
        self
    }

    const fn value(mut self, wrap: Wrap) -> Self {
        self.value = Some(wrap);
        self
    }
}

/// A query of records, in a realm.
fn record_query(text: &str) -> String {
    format!("{{\"rootType\":{text},\"query\":{text},\"realm\":{text}}}")
}

/// Every route that takes a body, and the routes beside the table of routes.
const TARGETS: &[Target] = &[
    target("POST", "/api/v1/runs", "/api/v1/runs")
        .plan(|plan| format!("{{\"plan\":{plan},\"input\":{}}}", input()))
        .value(|text| format!("{{\"planId\":{text},\"input\":{text}}}")),
    target("POST", "/api/v1/runs/{id}/cancel", "/api/v1/runs/RUN/cancel"),
    target("POST", "/api/v1/runs/{id}/pause", "/api/v1/runs/RUN/pause"),
    target("POST", "/api/v1/runs/{id}/continue", "/api/v1/runs/RUN/continue"),
    target("POST", "/api/v1/runs/{id}/retry", "/api/v1/runs/RUN/retry"),
    target("POST", "/api/v1/sessions/prune", "/api/v1/sessions/prune")
        .value(|text| format!("{{\"olderThanMs\":{text}}}")),
    target("POST", "/api/v1/sessions/{id}/fork", "/api/v1/sessions/none/fork")
        .value(|text| format!("{{\"at\":{text}}}")),
    target(
        "POST",
        "/api/v1/sinks/{name}/deliveries/{event}/resend",
        "/api/v1/sinks/none/deliveries/none/resend",
    ),
    target("POST", "/api/v1/sinks/{name}/resume", "/api/v1/sinks/none/resume"),
    target("POST", "/api/v1/asks/{id}", "/api/v1/asks/ASK")
        .value(|text| format!("{{\"action\":{text},\"content\":{text},\"answer\":{text}}}")),
    target("PUT", "/api/v1/plans/{id}", "/api/v1/plans/hostile%2Fcase").plan(str::to_owned),
    target("POST", "/api/v1/plans/validate", "/api/v1/plans/validate").plan(str::to_owned),
    target("POST", "/api/v1/plans/draft", "/api/v1/plans/draft")
        .value(|text| format!("{{\"goal\":{text},\"tools\":[{text}]}}")),
    target("PUT", "/api/v1/agents/{refName}", "/api/v1/agents/hostile").prompt(|text| {
        format!("{{\"llmConfigRef\":\"none\",\"promptSteps\":[{{\"content\":{text}}}]}}")
    }),
    target("POST", "/api/v1/pipelines/{name}/cases", "/api/v1/pipelines/desk/cases"),
    target("POST", "/api/v1/tools/{name}/call", "/api/v1/tools/math%3A%3Aadd/call")
        .value(|text| format!("{{\"arguments\":{{\"a\":{text},\"b\":1}}}}")),
    target("POST", "/api/v1/records/{type}", "/api/v1/records/Order")
        .value(|text| format!("{{\"refName\":{text}}}")),
    target("PUT", "/api/v1/records/{type}/{id}", "/api/v1/records/Order/65a000000000000000000001")
        .value(|text| format!("{{\"id\":{text}}}")),
    target(
        "PATCH",
        "/api/v1/records/{type}/{id}",
        "/api/v1/records/Order/65a000000000000000000001",
    )
    .value(|text| format!("{{\"refName\":{text},\"version\":{text}}}")),
    target("POST", "/api/query/plan", "/api/query/plan").value(record_query),
    target("POST", "/api/query/find", "/api/query/find").value(record_query),
    target("POST", "/api/query/count", "/api/query/count").value(record_query),
    target("POST", "/api/query/save", "/api/query/save")
        .value(|text| format!("{{\"rootType\":\"Order\",\"entity\":{text}}}")),
    target("POST", "/api/query/delete", "/api/query/delete")
        .value(|text| format!("{{\"rootType\":{text},\"id\":{text}}}")),
    target("POST", "/api/query/deleteMany", "/api/query/deleteMany").value(record_query),
    target("POST", "/api/agent/execute", "/api/agent/execute")
        .value(|text| format!("{{\"tool\":{text},\"arguments\":{{}},\"sessionId\":{text}}}")),
    target("POST", "/api/v1/upstreams/{name}/check", "/api/v1/upstreams/none/check"),
    target("POST", "/api/v1/upstreams/{name}/login", "/api/v1/upstreams/none/login"),
    target("POST", "/api/v1/upstreams/{name}/my-login", "/api/v1/upstreams/none/my-login"),
    target("PUT", "/api/v1/upstreams/{name}/my-login", "/api/v1/upstreams/none/my-login")
        .value(|text| format!("{{\"code\":{text}}}")),
    target("PUT", "/api/v1/providers/{refName}", "/api/v1/providers/hostile")
        .value(|text| format!("{{\"providerType\":\"MCP\",\"baseUrl\":{text}}}")),
    target("POST", "/api/v1/keys", "/api/v1/keys")
        .value(|text| format!("{{\"name\":{text},\"roles\":[{text}]}}")),
    target("POST", "/api/v1/keys/{id}/rotate", "/api/v1/keys/none/rotate")
        .value(|text| format!("{{\"overlapMs\":{text}}}")),
    target("POST", "/api/v1/realms", "/api/v1/realms").value(|text| format!("{{\"name\":{text}}}")),
    target("PUT", "/api/v1/principals/{id}", "/api/v1/principals/hostile").value(|text| {
        format!("{{\"name\":{text},\"realms\":{{\"a\":[{text}]}},\"properties\":{{\"a\":{text}}}}}")
    }),
    target("POST", "/api/v1/principals/{id}/disable", "/api/v1/principals/none/disable"),
    target("POST", "/api/v1/principals/{id}/enable", "/api/v1/principals/none/enable"),
    target("POST", "/system/permissions/check", "/system/permissions/check").value(permission),
    target("POST", "/system/permissions/evaluate", "/system/permissions/evaluate")
        .value(permission),
    target("POST", "/system/permissions/fd/evaluate", "/system/permissions/fd/evaluate"),
    target("POST", "/oauth/token", "/oauth/token"),
    // A text that is a folder's name would make a backup: only what is none is sent.
    target("POST", "/api/v1/backup", "/api/v1/backup"),
    target("POST", "/api/agent/config", "/api/agent/config").prompt(|text| {
        format!(
            "{{\"refName\":\"hostile\",\"llmConfigRef\":\"none\",\
             \"promptSteps\":[{{\"content\":{text}}}]}}"
        )
    }),
    target("POST", TALK, TALK)
        .value(|text| format!("{{\"thread_id\":{text},\"user_request\":{text}}}")),
    target("POST", "/resume", "/resume").value(|text| {
        format!("{{\"thread_id\":{text},\"clarification_responses\":[{{\"call_id\":{text}}}]}}")
    }),
    target("POST", "/sessions", "/sessions").value(|text| format!("{{\"sessionId\":{text}}}")),
    target("POST", "/sessions/{id}/execute-plan", "/sessions/s/execute-plan")
        .plan(|plan| format!("{{\"plan\":{plan},\"initialArgs\":{}}}", input())),
    target("POST", "/sessions/{id}/resume", "/sessions/s/resume")
        .value(|text| format!("{{\"input\":{text},\"stepId\":{text}}}")),
    target("POST", "/capabilities/discover", "/capabilities/discover")
        .value(|text| format!("{{\"query\":{text}}}")),
    target("POST", "/admin/capabilities", "/admin/capabilities")
        .plan(|plan| format!("{{\"type\":\"plan\",\"definition\":{plan}}}")),
    target("POST", "/mcp", "/mcp"),
    target("POST", "/rpc", "/rpc").value(|text| {
        let params = format!("{{\"name\":{text},\"arguments\":{{}}}}");
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}")
    }),
    target("POST", desk::ROUTE, desk::ROUTE),
    a2a("/a2a/v1", "/a2a/v1").value(|text| called("SendMessage", &new_message(text))),
    a2a("/a2a/v1/message:send", "/a2a/v1/message:send").value(new_message),
    a2a("/a2a/v1/message:stream", "/a2a/v1/message:stream").value(new_message),
    a2a("/a2a/v1/tasks/{id}:cancel", "/a2a/v1/tasks/RUN:cancel")
        .value(|text| format!("{{\"metadata\":{{{text}:{text}}}}}")),
    a2a("/a2a/v1/tasks/{id}/pushNotificationConfigs", "/a2a/v1/tasks/RUN/pushNotificationConfigs")
        .value(webhook),
    // Of 0.3, at the same addresses and below them.
    target("POST", "/a2a/v1", "/a2a/v1").value(|text| called("message/send", &old_message(text))),
    target("POST", "/a2a/v1/v1/message:send", "/a2a/v1/v1/message:send").value(proto_message),
    target("POST", "/a2a/v1/v1/message:stream", "/a2a/v1/v1/message:stream").value(proto_message),
    target("POST", "/a2a/v1/v1/tasks/{id}:cancel", "/a2a/v1/v1/tasks/RUN:cancel"),
    target(
        "POST",
        "/a2a/v1/v1/tasks/{id}/pushNotificationConfigs",
        "/a2a/v1/v1/tasks/RUN/pushNotificationConfigs",
    )
    .value(|text| format!("{{\"parent\":{text},\"config\":{}}}", webhook(text))),
    // AgentVault's profile: what is none of its methods is the name of a tool.
    target("POST", "/a2a", "/a2a").value(|text| called("tasks/send", &vault_message(text))),
    target("POST", "/a2a/", "/a2a/").value(|text| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":{text},\"params\":{{{text}:{text}}}}}")
    }),
];

/// A call of JSON-RPC.
fn called(method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{params}}}")
}

/// A message of A2A 1.0 with this text everywhere; it starts nothing.
fn new_message(text: &str) -> String {
    format!(
        "{{\"message\":{{\"messageId\":{text},\"role\":\"ROLE_USER\",\"contextId\":{text},\
         \"taskId\":{text},\"parts\":[{{\"text\":{text}}},{{\"data\":{text}}},{{\"url\":{text}}},\
         {{\"raw\":{text}}}],\"metadata\":{{{text}:{text}}},\"extensions\":[{text}]}}}}"
    )
}

/// The same as 0.3 writes it for JSON-RPC, and for HTTP.
fn old_message(text: &str) -> String {
    format!(
        "{{\"message\":{{\"kind\":\"message\",\"messageId\":{text},\"role\":\"user\",\
         \"taskId\":{text},\"contextId\":{text},\"parts\":[{{\"kind\":\"text\",\"text\":{text}}},\
         {{\"kind\":\"file\",\"file\":{{\"name\":{text},\"uri\":{text}}}}}]}}}}"
    )
}

fn proto_message(text: &str) -> String {
    format!(
        "{{\"message\":{{\"messageId\":{text},\"role\":\"ROLE_USER\",\"taskId\":{text},\
         \"content\":[{{\"text\":{text}}},{{\"data\":{{\"data\":{{{text}:{text}}}}}}}]}}}}"
    )
}

fn vault_message(text: &str) -> String {
    format!(
        "{{\"id\":{text},\"message\":{{\"role\":\"user\",\"parts\":[\
         {{\"type\":\"text\",\"content\":{text}}},\
         {{\"type\":\"data\",\"content\":{{{text}:{text}}},\"mediaType\":{text}}}]}}}}"
    )
}

/// A webhook with this text everywhere but in its address, which leads nowhere.
fn webhook(text: &str) -> String {
    format!(
        "{{\"id\":{text},\"url\":\"ftp://127.0.0.1/\",\"token\":{text},\
         \"authentication\":{{\"scheme\":{text},\"credentials\":{text}}}}}"
    )
}

/// A question about permissions with this text everywhere.
fn permission(text: &str) -> String {
    format!(
        "{{\"functionalDomain\":{text},\"action\":{text},\"identity\":{text},\
         \"roles\":[{text}],\"resourceId\":{text}}}"
    )
}

/// These are in no table of routes.
const BESIDE: [&str; 3] = ["/mcp", "/rpc", desk::ROUTE];

/// Values that fit no field that wants a text, a whole number, a list or an object.
const MISFITS: [&str; 8] =
    ["-1", "1e308", "[]", "{}", "null", "true", "[[[{}]]]", "123456789012345678901234567890"];

/// An input that is as deep as a request may be.
fn input() -> String {
    format!("{{\"a\":{}1{},\"p\":\"(a+)+$\"}}", "[".repeat(55), "]".repeat(55))
}

/// A plan with this case in it, as JSON.
fn plan(case: &Case) -> String {
    let text = Value::from(case.text());
    let (message, schema) = match case.kind {
        Kind::JsonPath => (json!({"jsonPath": text}).to_string(), "{}".to_owned()),
        Kind::Template => (text.to_string(), "{}".to_owned()),
        _ => ("\"done\"".to_owned(), case.text()),
    };
    format!(
        "{{\"planId\":\"hostile/case\",\"description\":\"hostile\",\"startStepId\":\"end\",\
         \"parameters\":{schema},\
         \"steps\":[{{\"id\":\"end\",\"type\":\"final_response\",\"message\":{message}}}]}}"
    )
}

/// The cases that stand in plans.
fn in_plans() -> impl Iterator<Item = &'static Case> {
    of(Kind::JsonPath).chain(of(Kind::Template)).chain(of(Kind::Schema))
}

/// A server, and who looks at the clock meanwhile.
struct Watch {
    house: House,
    dog: Watchdog,
    ask: String,
}

impl Watch {
    async fn new() -> Self {
        let (house, _) = desk_with(&[("desk", DESK)], LIMITS).await;
        let made = house.post("/sessions", json!({"sessionId": "s"})).await;
        assert_eq!(made.status, 201, "{made:?}");
        let waiting = house.run(json!({"planId": "it/question"})).await;
        let ask = waiting["run"]["asks"][0]["id"].as_str();
        let ask = ask.unwrap_or_else(|| panic!("no ask: {waiting}")).to_owned();
        Self { house, dog: Watchdog::new(HANGS), ask }
    }

    /// Sends a body and expects an answer in time that is no failure of ours; then the server is
    /// as well as before.
    async fn look(&self, target: &Target, name: &str, body: &[u8]) {
        let what = format!("{} {}: {name}", target.method, target.path);
        let watched = self.dog.begin(what.clone());
        let answer = self.answer(target, body).await;
        let took = watched.elapsed();
        drop(watched);
        let shown: String = answer.text.chars().take(500).collect();
        let is_stuck = (answer.status, &answer.body["code"]) == (500, &json!("run_stuck"));
        let is_expected = answer.status < 500 || (is_stuck && target.route == TALK);
        assert!(is_expected, "{what}: {} {shown}", answer.status);
        assert!(took <= LIMIT, "{what}: it took {took:?}");
        let watched = self.dog.begin(format!("`/livez` after {what}"));
        assert_eq!(self.house.get("/livez").await.status, 200, "after {what}");
        drop(watched);
    }

    async fn answer(&self, target: &Target, body: &[u8]) -> Answer {
        let path = target.path.replace("RUN", NO_RUN).replace(ASK, &self.ask);
        let method = Method::from_bytes(target.method.as_bytes()).unwrap();
        let mut request = request(method, &path, Body::from(body.to_vec()));
        if let Some(version) = target.version {
            request.headers_mut().insert("a2a-version", HeaderValue::from_static(version));
        }
        // What speaks a protocol of its own is not in `/openapi.json`.
        if BESIDE.contains(&target.path) || target.path.starts_with(A2A) {
            return read(self.house.open(request).await).await;
        }
        self.house.send(request).await
    }
}

/// Does all of it on this thread; no task may panic meanwhile.
fn without_panics(work: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (_, heard) = panics::during(|| runtime.block_on(work));
    assert!(heard.is_empty(), "{}", heard.join("\n"));
}

#[test]
fn every_route_that_takes_a_body_is_attacked() {
    let known: BTreeSet<(&str, String)> =
        TARGETS.iter().map(|target| (target.method, target.route.to_owned())).collect();
    let takes_body = |(method, _): &(&str, &str)| ["POST", "PUT", "PATCH"].contains(method);
    let table = routes().filter(takes_body).map(|(method, path)| (method, path.to_owned()));
    let beside = BESIDE.iter().map(|path| ("POST", (*path).to_owned()));
    let served: BTreeSet<(&str, String)> = table.chain(beside).chain(of_a2a()).collect();
    assert_eq!(known, served, "each route that takes a body has a line in `TARGETS`");
}

/// The routes of A2A that take a body: JSON-RPC of 1.0 and 0.3 at one address, the operations of
/// each over HTTP, and AgentVault's profile.
fn of_a2a() -> impl Iterator<Item = (&'static str, String)> {
    let over_http = A2A_OPERATIONS.iter().filter(|operation| operation.verb == "POST");
    let over_http = over_http.flat_map(|operation| {
        ["/a2a/v1", "/a2a/v1/v1"].map(|address| format!("{address}{}", operation.path))
    });
    let vault = VAULT_ROUTES.iter().filter(|route| route.starts_with(A2A));
    let vault = vault.map(|route| (*route).to_owned());
    let all = over_http.chain(vault).chain(["/a2a/v1".to_owned()]);
    all.map(|path| ("POST", path))
}

#[test]
fn no_hostile_text_holds_the_server_up() {
    without_panics(async {
        let watch = Watch::new().await;
        for case in in_plans() {
            let name = case.name;
            let text = Value::from(case.text()).to_string();
            let plan = plan(case);
            for target in TARGETS {
                if let Some(wrap) = target.plan {
                    watch.look(target, name, wrap(&plan).as_bytes()).await;
                }
                if let Some(wrap) = target.prompt.filter(|_| case.kind == Kind::Template) {
                    watch.look(target, name, wrap(&text).as_bytes()).await;
                }
                if let Some(wrap) = target.value.filter(|_| text.len() <= VALUE_BYTES_MAX) {
                    watch.look(target, name, wrap(&text).as_bytes()).await;
                }
            }
        }
    });
}

#[test]
fn no_hostile_body_holds_the_server_up() {
    without_panics(async {
        let watch = Watch::new().await;
        for case in of(Kind::Body) {
            let bytes = case.bytes();
            for target in TARGETS {
                watch.look(target, case.name, &bytes).await;
            }
        }
    });
}

#[test]
fn no_field_takes_what_does_not_fit() {
    let document = openapi();
    without_panics(async {
        let watch = Watch::new().await;
        for target in TARGETS {
            let operation = &document["paths"][target.route][target.method.to_lowercase()];
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            for field in fields(&document, schema) {
                for misfit in MISFITS {
                    let body = format!("{{{}:{misfit}}}", Value::from(field.as_str()));
                    watch.look(target, &body, body.as_bytes()).await;
                }
            }
        }
    });
}

/// The fields of the objects that a schema describes.
fn fields(document: &Value, schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if let Some(reference) = schema["$ref"].as_str() {
        let target = reference.strip_prefix('#').and_then(|place| document.pointer(place));
        found.extend(target.map(|target| fields(document, target)).unwrap_or_default());
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        for way in schema[word].as_array().into_iter().flatten() {
            found.extend(fields(document, way));
        }
    }
    found.extend(schema["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()));
    found
}

/// What is wrong with the project in this folder, in time.
fn checked(dog: &Watchdog, what: &str, folder: &Path, limit: Duration) -> Vec<Mistake> {
    let variables = |_: &str| -> Option<String> { None };
    let data = folder.join("data");
    let setup = ToCheck { folder, data: &data, variables: &variables, secret_key: None };
    let watched = dog.begin(what.to_owned());
    let ProjectReport { mistakes, .. } = check_project(&setup, Config::default());
    let took = watched.elapsed();
    assert!(took <= limit, "{what}: it took {took:?}");
    mistakes
}

fn write(folder: &Path, file: &str, bytes: &[u8]) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn no_hostile_file_holds_a_start_up() {
    let dog = Watchdog::new(HANGS);
    for case in of(Kind::Yaml) {
        for file in ["plans/hostile/case.yaml", "agents/case.yaml", "pipelines/case.yaml"] {
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), file, &case.bytes());
            let what = format!("{file}: {}", case.name);
            let mistakes = checked(&dog, &what, folder.path(), LIMIT);
            assert!(mistakes.iter().any(Mistake::is_error), "{what}: {mistakes:?}");
        }
        // Some are settings without a setting.
        let watched = dog.begin(format!("waypost.toml: {}", case.name));
        let _ = Config::parse("waypost.toml", &case.text());
        assert!(watched.elapsed() <= LIMIT, "{}: it took {:?}", case.name, watched.elapsed());
    }
}

#[test]
fn no_hostile_text_of_a_file_holds_a_start_up() {
    let dog = Watchdog::new(HANGS);
    for kind in [Kind::JsonPath, Kind::Template, Kind::Schema] {
        let folder = tempfile::tempdir().unwrap();
        let mut count = 0;
        for case in of(kind) {
            let plan = plan(case).replace("hostile/case", &format!("hostile/{}", case.name));
            let file = format!("plans/hostile/{}.json", case.name);
            // One that is too large would keep the others from being read.
            if plan.len() < 1_000_000 {
                write(folder.path(), &file, plan.as_bytes());
                count += 1;
            }
        }
        let mistakes = checked(&dog, &format!("{kind:?}"), folder.path(), LIMIT * count);
        assert!(mistakes.iter().any(Mistake::is_error), "{kind:?}: {mistakes:?}");
    }
}
