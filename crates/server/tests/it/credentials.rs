//! A server that asks for credentials: who is let in, as whom, and for how long.

use crate::desk::{self, DESK};
use crate::house::{
    ADDRESS, Answer, House, once_free, question, read, refused, request, setup, text, wait_for,
};
use crate::mcp_client::{LIMIT, asked, modern, stateless};
use crate::mcp_place;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response};
use engine::Engine;
use futures::StreamExt;
use identity::Identity;
use identity::keys::{Expiry, KeyWithText, Maker, NewKey};
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::{KeyMakers, Scope, Scopes, Via};
use project::config::Config;
use project::folder::Project;
use project::policies::{PolicyFile, PolicyFiles};
use serde_json::{Value, json};
use server::{AssembleError, OfflineKeys, Setup, assemble};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;
use tower::ServiceExt;

/// A name under which others reach the server: it asks for credentials.
pub const OPEN: &str = "[server]\nhosts = [\"wp.test\"]\n";
/// As long as an admin key must be there.
pub const ADMIN_KEY: &str = "an-admin-key-of-thirty-two-chars";
const RUNS: &str = "/api/v1/runs";

/// A server that asks for credentials.
pub struct Guarded {
    router: Router,
    engine: Engine,
    pub identity: Arc<Identity>,
    _data: TempDir,
}

impl Guarded {
    pub async fn start(settings: &str) -> Self {
        Self::with_policies(settings, None).await
    }

    /// The same with the policies of one file.
    pub async fn with_policies(settings: &str, policies: Option<&str>) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut setup = with_settings(settings, &data, Some(ADMIN_KEY));
        setup.project.policies = policies.map(policy_files);
        let assembled = assemble(setup).await;
        let assembled = assembled.unwrap_or_else(|error| panic!("{error}"));
        let identity = assembled.identity();
        let router = assembled.router();
        let engine = assembled.engine;
        Self { router, engine, identity, _data: data }
    }

    /// A new key with this role, and at most these scopes where some are named.
    pub async fn made(&self, role: Role, scopes: &[Scope], expires: Expiry) -> KeyWithText {
        let scopes: Option<Scopes> = (!scopes.is_empty()).then(|| scopes.iter().copied().collect());
        self.identity.create(&maker(), new_key(role, scopes, expires)).await.unwrap()
    }

    pub async fn key(&self, role: Role) -> String {
        self.made(role, &[], Expiry::Usual).await.text.expose().to_owned()
    }

    async fn key_for(&self, role: Role, scopes: &[Scope]) -> String {
        self.made(role, scopes, Expiry::Usual).await.text.expose().to_owned()
    }

    pub async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &Value,
    ) -> Response<Body> {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let mut request = request(method, path, body);
        for (name, value) in headers {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        self.send(request).await
    }

    /// The answer to a request as it is.
    pub async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub async fn get(&self, path: &str, headers: &[(&'static str, &str)]) -> Answer {
        read(self.open(Method::GET, path, headers, &Value::Null).await).await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> Answer {
        self.get(path, &[("x-api-key", key)]).await
    }

    pub async fn post_as(&self, key: &str, path: &str, body: Value) -> Answer {
        read(self.open(Method::POST, path, &[("x-api-key", key)], &body).await).await
    }

    /// Waits until this key is refused.
    async fn until_refused(&self, key: &str) {
        let look = async || self.get_as(key, RUNS).await;
        wait_for("the key to be refused", look, |answer: &Answer| answer.status == 401).await;
    }
}

fn with_settings(settings: &str, data: &TempDir, admin_key: Option<&str>) -> Setup {
    let config = Config::parse("waypost.toml", settings).unwrap();
    let project = Project { config, ..Project::demo() };
    let address: SocketAddr = ADDRESS.parse().unwrap();
    Setup { admin_key: admin_key.map(str::to_owned), ..setup(project, data, address) }
}

fn policy_files(text: &str) -> PolicyFiles {
    let file = "policies/a.cedar".to_owned();
    let text = text.to_owned();
    PolicyFiles { policies: vec![PolicyFile { file, text }], tests: None }
}

pub fn new_key(role: Role, scopes: Option<Scopes>, expires: Expiry) -> NewKey {
    let realms = Grants::one(RealmPattern::parse("default").unwrap(), Roles::of(&[role]));
    NewKey { name: role.name().to_owned(), of: None, realms, scopes, expires }
}

pub fn maker() -> Maker {
    let everywhere = RealmPattern::parse("*").unwrap();
    let grants = Grants::one(everywhere, Roles::of(&[Role::Admin]));
    let makers = KeyMakers::default();
    let via = Via::default();
    Maker { subject: "admin".into(), actor: None, key: None, makers, grants, via }
}

/// Status and stable word of a refusal.
pub fn told(answer: &Answer) -> (u16, String) {
    (answer.status, text(&answer.body["code"]))
}

#[tokio::test]
async fn a_credential_is_good_or_refused_at_every_endpoint() {
    let guarded = Guarded::start(OPEN).await;
    let good = guarded.key(Role::Viewer).await;
    let bearer = format!("Bearer {good}");
    let other =
        format!("{}{}", &good[..good.len() - 1], if good.ends_with('a') { "b" } else { "a" });
    let unauthorized = (401, "unauthorized".to_owned());
    let malformed = (400, "bad_credential".to_owned());
    for (headers, answer) in [
        (vec![], &unauthorized),
        (vec![("x-api-key", other.as_str())], &unauthorized),
        (vec![("authorization", "Bearer wrong")], &unauthorized),
        (vec![("authorization", "Basic d3A6eA==")], &malformed),
        (vec![("authorization", "Bearer ")], &malformed),
        (vec![("authorization", "Bearer a\tb")], &malformed),
        (vec![("authorization", bearer.as_str()), ("x-api-key", good.as_str())], &malformed),
        (vec![("x-api-key", good.as_str()), ("x-api-key", good.as_str())], &malformed),
    ] {
        for path in ["/api/v1/sessions", "/metrics", "/openapi.json", "/nowhere"] {
            assert_eq!(told(&guarded.get(path, &headers).await), *answer, "{path} {headers:?}");
        }
    }
    for headers in [[("x-api-key", good.as_str())], [("authorization", bearer.as_str())]] {
        assert_eq!(guarded.get("/api/v1/sessions", &headers).await.status, 200);
    }
    for path in ["/api/v1/sessions?access_token=", "/api/v1/sessions?api_key="] {
        let in_query = guarded.get(&format!("{path}{good}"), &[]).await;
        assert_eq!(told(&in_query), unauthorized, "a query is not looked at");
    }
    let rpc = guarded.get("/mcp", &[]).await;
    assert_eq!((rpc.status, &rpc.body["error"]["data"]["code"]), (401, &json!("unauthorized")));
    assert!(rpc.header("www-authenticate").contains("resource_metadata="), "{rpc:?}");
}

#[tokio::test]
async fn a_key_ends_when_it_is_revoked_or_expires() {
    let guarded = Guarded::start(OPEN).await;
    let revoked = guarded.made(Role::Viewer, &[], Expiry::Usual).await;
    let text = revoked.text.expose();
    assert_eq!(guarded.get_as(text, "/api/v1/sessions").await.status, 200);
    guarded.identity.revoke(&maker(), &revoked.stored.key.id).await.unwrap();
    assert_eq!(guarded.get_as(text, "/api/v1/sessions").await.status, 401, "at once");
    let soon = guarded.engine.clock().now().plus_ms(2_000);
    let short = guarded.made(Role::Viewer, &[], Expiry::At(soon)).await;
    guarded.until_refused(short.text.expose()).await;
}

#[tokio::test]
async fn too_many_wrong_credentials_are_not_answered_and_a_good_one_is() {
    let guarded = Guarded::start(OPEN).await;
    let good = guarded.key(Role::Viewer).await;
    let mut answer = guarded.get_as("wrong", RUNS).await;
    for _ in 0..100 {
        if answer.status == 429 {
            break;
        }
        answer = guarded.get_as("wrong", RUNS).await;
    }
    assert_eq!(told(&answer), (429, "too_many_failures".to_owned()));
    assert!(!answer.header("retry-after").is_empty(), "{answer:?}");
    assert_eq!(guarded.get_as(&good, "/api/v1/sessions").await.status, 200);
}

#[tokio::test]
async fn scopes_are_a_ceiling() {
    let guarded = Guarded::start(OPEN).await;
    let reads = guarded.key_for(Role::Operator, &[Scope::Read]).await;
    assert_eq!(guarded.get_as(&reads, "/api/v1/sessions").await.status, 200);
    let run = json!({"planId": "interaction::greeting"});
    let refusal = guarded.post_as(&reads, RUNS, run.clone()).await;
    assert_eq!(told(&refusal), (403, "forbidden".to_owned()));
    assert_eq!(refusal.body["scope"], "use", "{refusal:?}");
    for name in ["math%3A%3Aadd", "no%3A%3Asuch"] {
        let call = format!("/api/v1/tools/{name}/call");
        let refusal = guarded.post_as(&reads, &call, json!({"arguments": {}})).await;
        assert_eq!(told(&refusal), (403, "forbidden".to_owned()), "{name}");
        assert_eq!((&refusal.body["act"], &refusal.body["scope"]), (&json!("call"), &json!("use")));
    }
    for name in ["math.add", "no.such"] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": name, "params": {}});
        let answer = guarded.post_as(&reads, "/rpc", call).await;
        let expected = json!({"code": "forbidden", "scope": "use"});
        assert_eq!((answer.status, &answer.body["error"]["data"]), (200, &expected), "{name}");
    }
    let uses = guarded.key_for(Role::Operator, &[Scope::Use]).await;
    let started = guarded.post_as(&uses, RUNS, run).await;
    let ask = format!("/api/v1/asks/{}", text(&started.body["run"]["asks"][0]["id"]));
    let answerers = json!(["owner", "role:approver", "role:operator", "role:admin"]);
    assert_eq!(started.body["run"]["asks"][0]["mayAnswer"], answerers);
    assert_eq!(guarded.get_as(&uses, &ask).await.body["mayAnswer"], answerers);
    let reply = json!({"action": "accept", "content": {"name": "Ann"}});
    let refusal = guarded.post_as(&uses, &ask, reply).await;
    assert_eq!(told(&refusal), (403, "forbidden".to_owned()), "who may call cannot approve");
}

#[tokio::test]
async fn policies_of_files_decide_beside_the_built_in_roles() {
    let stop = "@id(\"stop\") forbid(principal, action == Action::\"run\",\n\
                resource == Plan::\"interaction::greeting\");";
    let guarded = Guarded::with_policies(OPEN, Some(stop)).await;
    let run = |plan: &str| json!({"planId": plan, "input": {"a": 1, "b": 2}});
    let member = guarded.key(Role::Member).await;
    let admin = guarded.key(Role::Admin).await;
    for key in [&member, &admin] {
        let refusal = guarded.post_as(key, RUNS, run("interaction::greeting")).await;
        assert_eq!(told(&refusal), (403, "forbidden".to_owned()), "{refusal:?}");
        let names_policy = refusal.body.to_string().contains("`stop`");
        assert_eq!(names_policy, key == &admin, "only administrators learn which policy it is");
        let other = guarded.post_as(key, RUNS, run("math::conditional_add")).await;
        assert!(other.status < 300, "{other:?}");
    }
}

#[tokio::test]
async fn without_built_in_roles_only_policies_permit() {
    let settings = format!("{OPEN}[policy]\nbuiltin = false\n");
    let permit = "permit(principal in Role::\"viewer\", action == Action::\"read\", resource);";
    let guarded = Guarded::with_policies(&settings, Some(permit)).await;
    for (role, status) in [(Role::Viewer, 200), (Role::Admin, 200), (Role::Operator, 403)] {
        let key = guarded.key(role).await;
        assert_eq!(guarded.get_as(&key, "/metrics").await.status, status, "{role:?}");
    }
}

#[tokio::test]
async fn a_wrong_policy_refuses_the_start() {
    let data = tempfile::tempdir().unwrap();
    let mut setup = with_settings(OPEN, &data, Some(ADMIN_KEY));
    setup.project.policies = Some(policy_files("permit(principal, action, resource)"));
    let error = assemble(setup).await.err().unwrap();
    assert!(error.to_string().starts_with("policies/a.cedar:1:"), "{error}");
}

#[tokio::test]
async fn a_client_of_mcp_learns_which_scope_it_lacks() {
    let guarded = Guarded::start(OPEN).await;
    let reads = guarded.key_for(Role::Member, &[Scope::Read]).await;
    let call = json!({"name": "math__add", "arguments": {"a": 1, "b": 2}});
    let mut request = modern("tools/call", call);
    request.headers_mut().insert("x-api-key", reads.parse().unwrap());
    let answer = read(guarded.router.clone().oneshot(request).await.unwrap()).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    let challenge = answer.header("www-authenticate");
    assert!(
        challenge.starts_with("Bearer error=\"insufficient_scope\", scope=\"read use\""),
        "{challenge}"
    );
    let mut request = modern("tools/list", json!({}));
    request.headers_mut().insert("x-api-key", reads.parse().unwrap());
    let answer = read(guarded.router.clone().oneshot(request).await.unwrap()).await;
    assert_eq!((answer.status, &answer.body["result"]["tools"]), (200, &json!([])));
}

#[tokio::test]
async fn no_client_of_mcp_is_asked_what_its_key_may_not_answer() {
    let guarded = Guarded::start(OPEN).await;
    let called = async |key: &str| {
        let call = json!({"name": "interaction__greeting", "arguments": {}});
        let mut request = mcp_place::modern("tools/call", &mcp_place::forms(), call);
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        let answer = read(guarded.router.clone().oneshot(request).await.unwrap()).await;
        mcp_place::message(&answer)["result"].take()
    };
    let member = guarded.key(Role::Member).await;
    assert_eq!(called(&member).await["resultType"], "input_required");
    let uses = guarded.key_for(Role::Member, &[Scope::Use]).await;
    let result = called(&uses).await;
    assert_ne!(result["resultType"], "input_required", "{result}");
    let ask = text(&result["_meta"]["waypost/asks"][0]);
    assert_eq!(guarded.get_as(&uses, &format!("/api/v1/asks/{ask}")).await.status, 200);
}

#[tokio::test]
async fn roles_permit_what_they_say_and_no_more() {
    let guarded = Guarded::start(OPEN).await;
    let viewer = guarded.key(Role::Viewer).await;
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Member).await;
    let approver = guarded.key(Role::Approver).await;
    let run = json!({"planId": "interaction::greeting", "session": "hers"});
    let forbidden = (403, "forbidden".to_owned());
    let missing = (404, "not_found".to_owned());
    assert_eq!(told(&guarded.post_as(&viewer, RUNS, run.clone()).await), forbidden);
    let add = "/api/v1/tools/math%3A%3Aadd/call";
    let arguments = json!({"arguments": {"a": 1, "b": 2}});
    // A tool that cannot be called is not visible.
    assert_eq!(told(&guarded.post_as(&viewer, add, arguments.clone()).await), missing);
    assert_eq!(guarded.post_as(&ann, add, arguments).await.status, 200);
    let started = guarded.post_as(&ann, RUNS, run).await;
    assert!(started.status < 300, "{started:?}");
    // Others name a session by its own id: the one that its maker chose is the maker's.
    let hers = "/api/v1/sessions/hers";
    for (key, status) in [(&ann, 200), (&bob, 404), (&viewer, 404), (&approver, 404)] {
        assert_eq!(guarded.get_as(key, hers).await.status, status, "{key}");
    }
    let session = format!("/api/v1/sessions/{}", text(&started.body["session"]["id"]));
    let ask = format!("/api/v1/asks/{}", text(&started.body["run"]["asks"][0]["id"]));
    for (key, status) in [(&ann, 200), (&bob, 404), (&viewer, 200), (&approver, 200)] {
        assert_eq!(guarded.get_as(key, &session).await.status, status, "{key}");
    }
    let reply = json!({"action": "accept", "content": {"name": "Ann"}});
    assert_eq!(told(&guarded.post_as(&bob, &ask, reply.clone()).await), missing);
    assert_eq!(told(&guarded.post_as(&viewer, &ask, reply.clone()).await), forbidden);
    assert_eq!(guarded.post_as(&approver, &ask, reply).await.status, 200);
    let plan = json!({"type": "plan", "definition": question()});
    for (key, status) in [(ann.as_str(), 403), (viewer.as_str(), 403), (ADMIN_KEY, 201)] {
        let stored = guarded.post_as(key, "/admin/capabilities", plan.clone()).await;
        assert_eq!(stored.status, status, "{stored:?}");
    }
}

#[tokio::test]
async fn open_endpoints_tell_nothing() {
    let guarded = Guarded::start(OPEN).await;
    for path in ["/livez", "/readyz", "/health", "/health-check"] {
        let answer = guarded.get(path, &[]).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    let challenge = [("waypost-challenge", "x")];
    let told = guarded.get("/livez", &challenge).await.text;
    assert!(!told.contains("pid") && !told.contains("data"), "{told}");
    let wrong = [("x-api-key", "wrong")];
    assert_eq!(guarded.get("/livez", &wrong).await.status, 401);
    assert_eq!(guarded.get("/readyz?verbose", &[]).await.status, 401);
}

#[tokio::test]
async fn a_request_names_a_realm_that_its_key_may_enter() {
    let guarded = Guarded::start(OPEN).await;
    let key = guarded.key(Role::Viewer).await;
    let sent = ("x-api-key", key.as_str());
    for (query, realms, answer) in [
        ("", &["default"] as &[&str], (200, "")),
        ("?realm=default", &[], (200, "")),
        ("?limit=1&realm=default", &["default"], (200, "")),
        ("?realm=acme", &[], (403, "realm_not_allowed")),
        ("", &["acme"], (403, "realm_not_allowed")),
        ("", &["A b"], (403, "realm_not_allowed")),
        ("", &["default", "default"], (400, "two_realms")),
        ("?realm=acme", &["default"], (400, "two_realms")),
    ] {
        let mut headers = vec![sent];
        headers.extend(realms.iter().map(|realm| ("x-realm", *realm)));
        let found = guarded.get(&format!("/api/v1/sessions{query}"), &headers).await;
        assert_eq!(told(&found), (answer.0, answer.1.to_owned()), "{query} {realms:?}");
    }
}

/// The promise is one second; a busy machine may take longer. A stream would end anyway at its next
/// heartbeat, 15 seconds after the last word.
const SOON: Duration = Duration::from_secs(12);

#[tokio::test]
async fn an_event_stream_ends_soon_after_its_key() {
    let guarded = Guarded::start(OPEN).await;
    let made = guarded.made(Role::Member, &[], Expiry::Usual).await;
    let headers = [("x-api-key", made.text.expose())];
    let stream = guarded.open(Method::GET, "/api/v1/events", &headers, &Value::Null).await;
    assert_eq!(stream.status(), 200);
    let mut stream = stream.into_body().into_data_stream();
    let first = timeout(LIMIT, stream.next()).await.unwrap().unwrap().unwrap();
    assert!(std::str::from_utf8(&first).unwrap().contains("snapshot"));
    let mut listen = modern("subscriptions/listen", json!({"notifications": {}}));
    listen.headers_mut().insert("x-api-key", made.text.expose().parse().unwrap());
    let news = guarded.send(listen).await;
    assert_eq!(news.status(), 200);
    guarded.identity.revoke(&maker(), &made.stored.key.id).await.unwrap();
    let revoked = Instant::now();
    for mut stream in [stream, news.into_body().into_data_stream()] {
        // What was told before may still come.
        while timeout(LIMIT, stream.next()).await.expect("the stream goes on").is_some() {}
    }
    let took = revoked.elapsed();
    assert!(took < SOON, "it took {took:?}");
}

#[tokio::test]
async fn a_server_without_credentials_refuses_forwarded_requests() {
    let house = House::demo().await;
    for name in ["forwarded", "via", "x-real-ip", "x-forwarded-for", "x-forwarded-host"] {
        let mut asked = request(Method::GET, "/api/v1/sessions", Body::empty());
        asked.headers_mut().insert(name, "192.0.2.7".parse().unwrap());
        let answer = read(house.open(asked).await).await;
        assert_eq!(answer.refusal(), refused(403, "forwarded_request", &[]), "{name}");
    }
    let mut asked = request(Method::GET, "/api/v1/sessions", Body::empty());
    asked.headers_mut().insert("authorization", "Bearer x".parse().unwrap());
    let answer = read(house.open(asked).await).await;
    assert_eq!(answer.refusal(), refused(401, "unauthorized", &[]), "nobody falls back to less");
    let guarded = Guarded::start(OPEN).await;
    let key = guarded.key(Role::Viewer).await;
    let behind = [("x-api-key", key.as_str()), ("x-forwarded-for", "192.0.2.7")];
    assert_eq!(guarded.get("/api/v1/sessions", &behind).await.status, 200);
}

/// Why a server does not start.
async fn refusal(setup: Setup) -> String {
    match assemble(setup).await {
        Ok(_) => "it starts".to_owned(),
        Err(AssembleError::Start(refusal)) => format!("{}; {}", refusal.message, refusal.hint),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_server_that_others_reach_starts_only_with_credentials() {
    let origins = "[server]\norigins = [\"https://app.test\"]\n";
    let public = "[server]\npublic_url = \"https://wp.test\"\n";
    let here = "[server]\npublic_url = \"http://127.0.0.1:1\"\nhosts = [\"localhost:3000\"]\n";
    for (settings, admin_key, never_local, told) in [
        ("", None, false, "it starts"),
        (here, None, false, "it starts"),
        (here, Some("short"), false, "it starts"),
        (OPEN, None, false, "waypost key add"),
        (origins, None, false, "waypost key add"),
        (public, None, false, "waypost key add"),
        ("", None, true, "waypost key add"),
        (OPEN, Some(""), false, "waypost key add"),
        (OPEN, Some("short"), false, "32"),
        (OPEN, Some(ADMIN_KEY), false, "it starts"),
        ("", Some(ADMIN_KEY), true, "it starts"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let setup = with_settings(settings, &data, admin_key);
        let answer = refusal(Setup { never_local, ..setup }).await;
        assert!(answer.contains(told), "{settings} {admin_key:?}: {answer}");
    }
    let data = tempfile::tempdir().unwrap();
    let isolated = Setup { isolated: true, ..with_settings(OPEN, &data, None) };
    assert_eq!(refusal(isolated).await, "it starts", "nobody comes in");
    let data = tempfile::tempdir().unwrap();
    let address = SocketAddr::from(([0, 0, 0, 0], 8420));
    let isolated = Setup { isolated: true, address, ..with_settings("", &data, None) };
    let answer = refusal(isolated).await;
    assert!(answer.contains("not loopback"), "{answer}");
}

#[tokio::test]
async fn a_provider_that_reaches_the_servers_own_network_needs_an_administrator() {
    let guarded = Guarded::start(OPEN).await;
    let operator = guarded.key(Role::Operator).await;
    let admin = guarded.key(Role::Admin).await;
    let plain = json!({"baseUrl": "https://crm.example.com", "disabled": true});
    let inside = json!({"baseUrl": "http://10.0.0.7", "disabled": true});
    let trusted = json!({"baseUrl": "https://crm.example.com", "trusted": true, "disabled": true});
    for (key, name, body, status) in [
        (operator.as_str(), "crm", &plain, 201),
        (operator.as_str(), "crm", &trusted, 403),
        (operator.as_str(), "inside", &inside, 403),
        // The server's network is not one realm's.
        (admin.as_str(), "crm", &trusted, 403),
        (admin.as_str(), "inside", &inside, 403),
        (ADMIN_KEY, "inside", &inside, 201),
    ] {
        let path = format!("/api/v1/providers/{name}");
        let stored = guarded.open(Method::PUT, &path, &[("x-api-key", key)], body).await;
        assert_eq!(read(stored).await.status, status, "{name} {body}");
    }
}

#[tokio::test]
async fn a_member_sees_nothing_of_another() {
    let guarded = Guarded::start(OPEN).await;
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Member).await;
    let begun = async |key: &str, session: &str| {
        let body = json!({"planId": "interaction::greeting", "session": session});
        let headers = [("x-api-key", key), ("idempotency-key", "once")];
        let answer = read(guarded.open(Method::POST, RUNS, &headers, &body).await).await;
        assert!(answer.status < 300, "{answer:?}");
        answer.body
    };
    let hers = begun(&ann, "hers").await;
    let his = begun(&bob, "his").await;
    let run = format!("{RUNS}/{}", text(&hers["run"]["id"]));
    assert_ne!(hers["run"]["id"], his["run"]["id"], "the same key of another");
    let session = format!("/api/v1/sessions/{}", text(&hers["session"]["id"]));
    let ask = format!("/api/v1/asks/{}", text(&hers["run"]["asks"][0]["id"]));
    let below = ["", "/history", "/context", "/events", "/export"];
    let shown: Vec<String> = below.iter().map(|below| format!("{session}{below}")).collect();
    for path in shown.iter().chain([&run, &ask]) {
        assert_eq!(guarded.get_as(&bob, path).await.status, 404, "{path}");
    }
    let acts = ["cancel", "pause", "continue", "retry"];
    let done = acts.iter().map(|act| format!("{run}/{act}"));
    for path in done.chain([format!("{session}/fork")]) {
        assert_eq!(guarded.post_as(&bob, &path, Value::Null).await.status, 404, "{path}");
    }
    // The same id of another is another session.
    let same = json!({"planId": "interaction::greeting", "session": "hers"});
    let same = guarded.post_as(&bob, RUNS, same).await;
    assert!(same.status < 300, "{same:?}");
    assert_ne!(same.body["session"]["id"], hers["session"]["id"]);
    for list in ["/api/v1/sessions", "/api/v1/asks"] {
        let listed = guarded.get_as(&bob, list).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 2, "{list}: {listed:?}");
    }
}

#[tokio::test]
async fn two_members_use_the_same_session_id_and_never_meet() {
    let guarded = Guarded::start(OPEN).await;
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Member).await;
    let viewer = guarded.key(Role::Viewer).await;
    let order = json!({"sessionId": "order"});
    let missing = (404, "not_found".to_owned());
    let input = |number: u64| json!({"a": number, "b": number});
    let mut ids = Vec::new();
    for (key, number) in [(&ann, 1), (&bob, 7)] {
        assert_eq!(told(&guarded.get_as(key, "/sessions/order").await), missing, "not yet");
        assert_eq!(guarded.post_as(key, "/sessions", order.clone()).await.status, 201);
        let twice = guarded.post_as(key, "/sessions", order.clone()).await;
        assert_eq!(told(&twice), (409, "session_exists".to_owned()));
        let plan = json!({"planId": "math::conditional_add", "initialArgs": input(number)});
        let done = guarded.post_as(key, "/sessions/order/execute-plan", plan).await;
        assert_eq!((done.status, &done.body["sessionId"]), (202, &json!("order")), "{done:?}");
        let shown = guarded.get_as(key, "/api/v1/sessions/order").await;
        ids.push(text(&shown.body["id"]));
    }
    assert_ne!(ids[0], ids[1]);
    for (key, id, number) in [(&ann, &ids[0], 1), (&bob, &ids[1], 7)] {
        for below in ["/history", "/context", "/export"] {
            let by_key = guarded.get_as(key, &format!("/api/v1/sessions/order{below}")).await;
            let by_id = guarded.get_as(key, &format!("/api/v1/sessions/{id}{below}")).await;
            assert_eq!((by_key.status, &by_key.body), (200, &by_id.body), "{below}");
        }
        let run = json!({"planId": "math::conditional_add", "input": input(number),
            "session": "order"});
        let again = guarded.post_as(key, RUNS, run).await;
        assert_eq!(again.body["session"]["id"], json!(id), "{again:?}");
        let fork = guarded.post_as(key, "/api/v1/sessions/order/fork", Value::Null).await;
        assert_eq!(fork.status, 201, "{fork:?}");
    }
    for (key, others) in [(&ann, &ids[1]), (&bob, &ids[0])] {
        for path in [format!("/sessions/{others}"), format!("/api/v1/sessions/{others}")] {
            assert_eq!(told(&guarded.get_as(key, &path).await), missing, "{path}");
        }
    }
    // Who may read all sessions has none of that id, sees both in the list, and names each.
    let listed = guarded.get_as(&viewer, "/api/v1/sessions").await.body;
    let listed = listed["items"].as_array().unwrap();
    for id in &ids {
        assert!(listed.iter().any(|session| session["id"] == json!(id)), "{listed:?}");
        for path in [format!("/sessions/{id}"), format!("/api/v1/sessions/{id}")] {
            assert_eq!(guarded.get_as(&viewer, &path).await.status, 200, "{path}");
        }
    }
    for path in ["/sessions/order", "/api/v1/sessions/order"] {
        assert_eq!(told(&guarded.get_as(&viewer, path).await), missing, "{path}");
    }
}

#[tokio::test]
async fn the_first_key_is_made_before_the_start_and_opens_a_pipe() {
    let data = tempfile::tempdir().unwrap();
    let held = OfflineKeys::take(&data.path().join("data"), None).await.unwrap();
    let new = new_key(Role::Member, None, Expiry::Never);
    let made = held.identity().create(&held.maker(), new).await.unwrap();
    drop(held);
    let key = made.text.expose().to_owned();
    let piped = |api_key: Option<&str>| {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let setup = with_settings(OPEN, &data, None);
        Setup { address, api_key: api_key.map(str::to_owned), ..setup }
    };
    let assembled = once_free(|| piped(Some(&key))).await;
    let identity = assembled.identity();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(server::serve_stdio(assembled, input, output));
    let (lines, mut writing) = tokio::io::split(ours);
    let mut lines = BufReader::new(lines).lines();
    let call = json!({"name": "math__add", "arguments": {"a": 1, "b": 2}});
    let message = asked(1, "tools/call", stateless(call)).to_string();
    writing.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    let line = timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert!(answer["result"].is_object(), "{answer}");
    identity.revoke(&maker(), &made.stored.key.id).await.unwrap();
    timeout(LIMIT, serving).await.expect("the pipe ends with its key").unwrap();

    for api_key in [None, Some("wrong".to_owned())] {
        let data = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let setup = with_settings(OPEN, &data, Some(ADMIN_KEY));
        let answer = refusal(Setup { address, api_key, ..setup }).await;
        assert!(answer.contains("WAYPOST_API_KEY"), "{answer}");
    }
}

#[tokio::test]
async fn a_pipelines_route_asks_for_a_credential_in_its_own_shape() {
    let data = tempfile::tempdir().unwrap();
    let config = Config::parse("waypost.toml", OPEN).unwrap();
    let lines = DESK.lines().filter(|line| !line.contains("it/wait"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut project = Project { config, ..desk::project(&[("desk", &text)], "") };
    project.plans.retain(|plan| !plan.text.contains("desk::wait"));
    let address: SocketAddr = ADDRESS.parse().unwrap();
    let admin_key = Some(ADMIN_KEY.to_owned());
    let assembled = assemble(Setup { admin_key, ..setup(project, &data, address) }).await;
    let assembled = assembled.unwrap_or_else(|error| panic!("{error}"));
    // Nobody without one can tell by that where pipelines are.
    for path in ["/desk/cases", "/desk/nothing"] {
        let asked = request(Method::POST, path, Body::from("{}"));
        let answer = read(assembled.router().oneshot(asked).await.unwrap()).await;
        assert_eq!(answer.status, 401, "{answer:?}");
        assert!(answer.body["error"].is_string(), "a plain object: {answer:?}");
    }
}
