//! `login = "user"`: each caller logs in at an upstream for themselves. A login is of who began it,
//! even if another follows its link, and nobody's is used for another.

use crate::api_keys::{ADMIN, Key, get, send};
use crate::house::{Answer, House, is_in_clear, refused, request, text, wait_for};
use axum::body::Body;
use axum::http::Method;
use project::config::Config;
use project::folder::Project;
use project::policies::{PolicyFile, PolicyFiles};
use serde_json::{Value, json};
use server::Stopper;
use tempfile::TempDir;
use testkit::servers::login::LoginServer;

const HUB: &str = "/api/v1/upstreams/hub";
const OWN: &str = "/api/v1/upstreams/hub/my-login";

fn project(login: &LoginServer) -> Project {
    limited(login, "")
}

/// With these lines in `[limits]`.
fn limited(login: &LoginServer, limits: &str) -> Project {
    let settings = format!(
        "[server]\nhosts = [\"wp.example.com\"]\n[limits]\n{limits}\n\
         [mcp.servers.hub]\nurl = \"{}/mcp\"\ntrusted = true\nlogin = \"user\"\n",
        login.base
    );
    Project { config: Config::parse("waypost.toml", &settings).unwrap(), ..Project::demo() }
}

fn ruled(login: &LoginServer, policy: &str) -> Project {
    let file = "policies/a.cedar".to_owned();
    let text = policy.to_owned();
    let policies = PolicyFiles { policies: vec![PolicyFile { file, text }], tests: None };
    Project { policies: Some(policies), ..project(login) }
}

/// Somebody agrees on this page and comes back.
async fn agreed(house: &House, login: &LoginServer, page: &str) -> Answer {
    let back = login.agree(page);
    let (_, query) = back.split_once('?').unwrap();
    house.get(&format!("/oauth/callback?{query}")).await
}

/// The server lists its tools to who is logged in: an administrator is, for the lists alone.
async fn until_listed(house: &House) {
    let look = async || get(house, ADMIN, "/api/v1/tools/hub.add").await;
    wait_for("`hub.add`", look, |answer: &Answer| answer.status == 200).await;
}

/// A server that has the list of tools.
async fn listing(
    login: &LoginServer,
    project: impl Fn() -> Project,
    data: &TempDir,
) -> (House, Stopper) {
    let (house, stopper) = House::over(project, data, Some(ADMIN)).await;
    list_tools(&house, login).await;
    (house, stopper)
}

async fn list_tools(house: &House, login: &LoginServer) {
    let path = format!("{HUB}/login");
    let begun = send(house, ADMIN, Method::POST, &path, json!({})).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let done = agreed(house, login, &text(&begun.body["url"])).await;
    assert!(done.text.contains("You are logged in"), "{done:?}");
    until_listed(house).await;
}

async fn member(house: &House, name: &str) -> String {
    Key::created(house, ADMIN, json!({"name": name})).await.text
}

async fn operator(house: &House, name: &str) -> String {
    Key::created(house, ADMIN, json!({"name": name, "roles": ["operator"]})).await.text
}

/// The key of a new principal of this kind, a member.
async fn principal(house: &House, name: &str, kind: &str) -> String {
    let path = format!("/api/v1/principals/{name}");
    let body = json!({"kind": kind, "realms": {"default": ["member"]}});
    let stored = send(house, ADMIN, Method::PUT, &path, body).await;
    assert_eq!(stored.status, 201, "{stored:?}");
    Key::created(house, ADMIN, json!({"name": name, "of": name})).await.text
}

/// Begins a login of one's own, and follows its link: the code that the page shows.
async fn code(house: &House, login: &LoginServer, by: &str) -> String {
    let begun = send(house, by, Method::POST, OWN, json!({})).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    code_at(house, login, &text(&begun.body["url"])).await
}

/// The code that this page shows to who follows it.
async fn code_at(house: &House, login: &LoginServer, page: &str) -> String {
    let done = agreed(house, login, page).await;
    assert!(done.status == 200 && done.text.contains("One step is left"), "{done:?}");
    let (_, rest) = done.text.split_once("The code is <code>").unwrap();
    rest.split_once("</code>").unwrap().0.to_owned()
}

async fn prove(house: &House, by: &str, code: &str) -> Answer {
    send(house, by, Method::PUT, OWN, json!({"code": code})).await
}

async fn is_logged_in(house: &House, who: &str) -> bool {
    let shown = get(house, who, HUB).await;
    let listed = get(house, who, "/api/v1/upstreams").await;
    assert_eq!(listed.body["items"][0]["yourLogin"], shown.body["yourLogin"], "{listed:?}");
    shown.body["yourLogin"]["done"].as_bool().unwrap_or_else(|| panic!("{shown:?}"))
}

async fn can_call(house: &House, who: &str) -> bool {
    let arguments = json!({"arguments": {"a": 2, "b": 3}});
    let called = send(house, who, Method::POST, "/api/v1/tools/hub.add/call", arguments).await;
    assert!(called.status != 200 || called.text.contains('5'), "{called:?}");
    called.status == 200
}

#[tokio::test]
async fn everybody_uses_their_own_login() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = listing(&login, || project(&login), &data).await;
    let alice = member(&house, "alice").await;
    let bob = member(&house, "bob").await;
    assert!(!can_call(&house, ADMIN).await, "the login for the lists is for the lists alone");
    assert!(!can_call(&house, &alice).await && !is_logged_in(&house, &alice).await);

    // A link that another follows lends nobody's account: only who began it can finish it.
    let shown = code(&house, &login, &alice).await;
    let other = prove(&house, &bob, &shown).await;
    assert_eq!(other.refusal(), refused(409, "login_code_unknown", &[]));
    assert!(text(&other.body["detail"]).contains("no login that you began"), "{other:?}");
    assert!(!is_logged_in(&house, &bob).await && !is_logged_in(&house, &alice).await);
    assert!(!can_call(&house, &alice).await, "not before it is proven");
    assert_eq!(prove(&house, &alice, "AAAA-AAAA-AAAA").await.status, 409);
    let proven = prove(&house, &alice, &shown.to_lowercase()).await;
    assert_eq!(proven.status, 204, "{proven:?}");
    assert_eq!(prove(&house, &alice, &shown).await.status, 409, "a code is good once");
    assert!(is_logged_in(&house, &alice).await && can_call(&house, &alice).await);
    for other in [bob.as_str(), ADMIN] {
        assert!(!is_logged_in(&house, other).await && !can_call(&house, other).await, "{other}");
    }

    stopper.stop().await;
    drop(house);
    let (house, stopper) = House::over(|| project(&login), &data, Some(ADMIN)).await;
    until_listed(&house).await;
    assert!(is_logged_in(&house, &alice).await && can_call(&house, &alice).await);
    assert!(!is_logged_in(&house, &bob).await && !can_call(&house, &bob).await);
    let ended = send(&house, &alice, Method::DELETE, OWN, Value::Null).await;
    assert_eq!(ended.status, 204, "{ended:?}");
    assert!(!is_logged_in(&house, &alice).await && !can_call(&house, &alice).await);
    stopper.stop().await;
}

#[tokio::test]
async fn the_logins_of_a_disabled_principal_are_removed() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = listing(&login, || project(&login), &data).await;
    let ann = principal(&house, "ann", "user").await;
    let shown = code(&house, &login, &ann).await;
    assert_eq!(prove(&house, &ann, &shown).await.status, 204);
    assert!(can_call(&house, &ann).await);
    for (act, status) in [("disable", 200), ("enable", 200)] {
        let path = format!("/api/v1/principals/ann/{act}");
        let answer = send(&house, ADMIN, Method::POST, &path, json!({})).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    assert!(!is_logged_in(&house, &ann).await && !can_call(&house, &ann).await);
    stopper.stop().await;
}

/// A plan whose only call somebody must approve.
fn approved_call() -> Value {
    json!({"plan": {"planId": "it/sum", "steps": [
        {"id": "add", "type": "tool_call", "toolId": "hub.add", "approve": true,
         "arguments": {"a": 2, "b": 3}, "saveAs": "sum", "nextStepId": "end"},
        {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.sum"}},
    ]}})
}

fn path_of(ask: &Value) -> String {
    format!("/api/v1/asks/{}", text(&ask["id"]))
}

/// Somebody says that the page of the first ask of a run was opened: the run then.
async fn done(house: &House, run: &Value, by: &str) -> Value {
    let path = path_of(&run["asks"][0]);
    let answered = send(house, by, Method::POST, &path, json!({"action": "done"})).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    answered.body["run"].clone()
}

/// Starts a run, and has another approve its call: the run then.
async fn approved(house: &House, starter: &str, approver: &str) -> Value {
    let started = send(house, starter, Method::POST, "/api/v1/runs", approved_call()).await;
    assert_eq!(started.status, 202, "{started:?}");
    let ask = &started.body["run"]["asks"][0];
    assert_eq!(ask["kind"], "approve", "{started:?}");
    let decisions = json!([{"callId": ask["calls"][0]["callId"], "approve": true}]);
    let path = path_of(ask);
    let body = json!({"decisions": decisions});
    let answered = send(house, approver, Method::POST, &path, body).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    answered.body["run"].clone()
}

async fn log_in(house: &House, login: &LoginServer, who: &str) {
    let shown = code(house, login, who).await;
    assert_eq!(prove(house, who, &shown).await.status, 204);
    assert!(can_call(house, who).await);
}

#[tokio::test]
async fn a_run_uses_only_the_login_of_the_caller_that_started_it() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    // A call waits half of this for a login that is not done.
    let quick = || limited(&login, "call_timeout_ms = 15000");
    let (house, stopper) = listing(&login, quick, &data).await;
    let alice = member(&house, "alice").await;
    let bob = operator(&house, "bob").await;
    log_in(&house, &login, &alice).await;
    let run = approved(&house, &alice, &bob).await;
    assert_eq!(run["status"], "completed", "who approves needs no login: {run}");
    assert!(run["answer"].to_string().contains('5'), "{run}");

    let ended = send(&house, &alice, Method::DELETE, OWN, Value::Null).await;
    assert_eq!(ended.status, 204, "{ended:?}");
    log_in(&house, &login, &bob).await;
    let mut run = approved(&house, &alice, &bob).await;
    for _ in 0..2 {
        // Neither who approves it nor who lets it go on lends it a login.
        assert_eq!(
            (&run["status"], &run["asks"][0]["kind"]),
            (&json!("waiting"), &json!("authorize")),
            "{run}"
        );
        run = done(&house, &run, &bob).await;
    }
    assert_eq!(run["asks"][0]["kind"], "authorize", "{run}");

    log_in(&house, &login, &alice).await;
    let run = done(&house, &run, &bob).await;
    assert_eq!(run["status"], "completed", "{run}");
    assert!(run["answer"].to_string().contains('5'), "{run}");
    stopper.stop().await;
}

#[tokio::test]
async fn the_code_of_a_login_is_taken_only_from_the_caller_that_began_it() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = listing(&login, || project(&login), &data).await;
    let alice = member(&house, "alice").await;
    let bob = operator(&house, "bob").await;
    let run = approved(&house, &alice, &bob).await;
    let ask = &run["asks"][0];
    assert_eq!(ask["kind"], "authorize", "{run}");
    let shown = code_at(&house, &login, &text(&ask["url"])).await;
    let path = path_of(ask);
    let answers = async |who: &str, body: Value| {
        let mut request = request(Method::POST, &path, Body::from(body.to_string()));
        let bearer = format!("Bearer {who}");
        for (name, value) in [("authorization", &*bearer), ("idempotency-key", "once")] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        house.send(request).await
    };
    let done = json!({"action": "done", "code": shown});
    let other = answers(&bob, done.clone()).await;
    assert_eq!(other.refusal(), refused(409, "login_code_unknown", &[]), "it is not his");
    let wrong = answers(&alice, json!({"action": "done", "code": "AAAA-AAAA-AAAA"})).await;
    assert_eq!(wrong.refusal(), refused(409, "login_code_unknown", &[]));
    let declined = answers(&alice, json!({"action": "decline", "code": shown})).await;
    assert_eq!(declined.refusal(), refused(400, "contradiction", &[]));
    assert!(!is_logged_in(&house, &alice).await);
    assert_eq!(get(&house, &alice, &path).await.body["status"], "open");
    let answered = answers(&alice, done.clone()).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(answered.body["run"]["status"], "completed", "{answered:?}");
    assert!(is_logged_in(&house, &alice).await && can_call(&house, &alice).await);
    assert!(!is_logged_in(&house, &bob).await);
    let again = answers(&alice, done).await;
    let replayed = (again.status, again.header("idempotency-replayed"));
    assert_eq!(replayed, (200, "true"), "a repeat has sent its code before: {again:?}");
    stopper.stop().await;
    assert!(!is_in_clear(data.path(), &[shown]), "a code is not kept");
}

/// The upstream is not there for `ann`; its tools are.
const HIDDEN_FROM_ANN: &str = "forbid (principal == Subject::\"ann\", \
    action == Action::\"read\", resource == Upstream::\"hub\");";

#[tokio::test]
async fn a_caller_that_may_not_read_an_upstream_finishes_no_login_there() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let hiding = || ruled(&login, HIDDEN_FROM_ANN);
    let (house, stopper) = listing(&login, hiding, &data).await;
    let ann = principal(&house, "ann", "user").await;
    let run = approved(&house, &ann, ADMIN).await;
    let ask = &run["asks"][0];
    assert_eq!(ask["kind"], "authorize", "{run}");
    let shown = code_at(&house, &login, &text(&ask["url"])).await;
    let path = path_of(ask);
    let done = json!({"action": "done", "code": shown});
    let answered = send(&house, &ann, Method::POST, &path, done).await;
    // As where she sends the code without an ask.
    for refusal in [answered, prove(&house, &ann, &shown).await] {
        assert_eq!(refusal.refusal(), refused(404, "not_found", &[]), "{refusal:?}");
    }
    assert_eq!(get(&house, &ann, &path).await.body["status"], "open");
    assert!(!can_call(&house, &ann).await, "the login is not finished");
    stopper.stop().await;
}

#[tokio::test]
async fn a_realm_that_acts_as_a_principal_calls_with_the_login_of_that_principal() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let acting = || limited(&login, "[realms.default]\nrun_as_user_id = \"robot\"");
    let (house, stopper) = House::over(acting, &data, Some(ADMIN)).await;
    let robot = principal(&house, "robot", "service").await;
    list_tools(&house, &login).await;
    let alice = member(&house, "alice").await;
    let own = code(&house, &login, &alice).await;
    assert_eq!(prove(&house, &alice, &own).await.status, 204);
    assert!(is_logged_in(&house, &alice).await);

    // Her own login is not used, and she is not shown the page of another's.
    let arguments = json!({"arguments": {"a": 2, "b": 3}});
    let called = send(&house, &alice, Method::POST, "/api/v1/tools/hub.add/call", arguments).await;
    assert_eq!(called.refusal(), refused(502, "tool_failed", &[]), "{called:?}");
    assert!(called.text.contains("run_as_user_id"), "{called:?}");
    assert!(!called.text.contains("/authorize"), "{called:?}");
    let plan = json!({"plan": {"planId": "it/sum", "steps": [
        {"id": "add", "type": "tool_call", "toolId": "hub.add", "arguments": {"a": 2, "b": 3}},
    ]}});
    let run = send(&house, &alice, Method::POST, "/api/v1/runs", plan).await.body["run"].clone();
    assert_eq!(run["asks"][0]["kind"], "fix", "nobody is asked to log in for another: {run}");

    let shown = code(&house, &login, &robot).await;
    assert_eq!(prove(&house, &alice, &shown).await.status, 409, "it is not hers to finish");
    assert_eq!(prove(&house, &robot, &shown).await.status, 204);
    let ended = send(&house, &alice, Method::DELETE, OWN, Value::Null).await;
    assert_eq!(ended.status, 204, "{ended:?}");
    assert!(can_call(&house, &alice).await && can_call(&house, &robot).await);
    assert!(!is_logged_in(&house, &alice).await, "what others begin is still one's own");
    let path = path_of(&run["asks"][0]);
    let retried = send(&house, &alice, Method::POST, &path, json!({"action": "retry"})).await;
    assert_eq!(retried.body["run"]["status"], "completed", "{retried:?}");
    let ended = send(&house, &robot, Method::DELETE, OWN, Value::Null).await;
    assert_eq!(ended.status, 204, "{ended:?}");
    assert!(!can_call(&house, &alice).await);
    stopper.stop().await;
}

#[tokio::test]
async fn logins_of_one_caller_do_not_use_up_those_of_others() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    // Each caller may do a quarter of this.
    let few = || limited(&login, "logins_per_minute = 4");
    let (house, stopper) = listing(&login, few, &data).await;
    let alice = member(&house, "alice").await;
    let bob = member(&house, "bob").await;
    let begin = async |who: &str| send(&house, who, Method::POST, OWN, json!({})).await;
    assert_eq!(begin(&alice).await.status, 200);
    for refusal in [begin(&alice).await, prove(&house, &alice, "AAAA-AAAA-AAAA").await] {
        assert_eq!(refusal.refusal(), refused(429, "logins_limited", &[]));
        let seconds: u64 = refusal.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&seconds), "{refusal:?}");
        assert_eq!(refusal.header("ratelimit-policy"), "\"logins\";q=1;w=60");
        assert_eq!(refusal.header("ratelimit"), format!("\"logins\";r=0;t={seconds}"));
    }
    assert_eq!(begin(&bob).await.status, 200, "another caller has a share of its own");
    stopper.stop().await;
}

/// The admin key may act as `ann`.
const ACTS_AS_ANN: &str = "permit (principal == Subject::\"admin\", \
    action == Action::\"impersonate\", resource == Principal::\"ann\");";

/// The answer to a request of the admin key that acts as `ann`.
async fn as_ann(house: &House, method: Method, path: &str, body: Value) -> Answer {
    let mut request = request(method, path, Body::from(body.to_string()));
    let bearer = format!("Bearer {ADMIN}");
    for (name, value) in [("authorization", &*bearer), ("x-impersonate-subject", "ann")] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    house.send(request).await
}

#[tokio::test]
async fn an_impersonator_neither_uses_nor_changes_the_login_of_its_subject() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let allowing = || ruled(&login, ACTS_AS_ANN);
    let (house, stopper) = listing(&login, allowing, &data).await;
    let ann = principal(&house, "ann", "user").await;
    log_in(&house, &login, &ann).await;

    let adding = json!({"arguments": {"a": 2, "b": 3}});
    let own = as_ann(&house, Method::POST, "/api/v1/tools/math::add/call", adding.clone()).await;
    assert_eq!(own.status, 200, "a tool without a login can be called: {own:?}");
    let called = as_ann(&house, Method::POST, "/api/v1/tools/hub.add/call", adding).await;
    assert_ne!(called.status, 200, "{called:?}");
    assert!(called.text.contains("no caller uses the login of another"), "{called:?}");
    for (method, body) in [
        (Method::POST, json!({})),
        (Method::PUT, json!({"code": "AAAA-AAAA-AAAA"})),
        (Method::DELETE, json!({})),
    ] {
        let refusal = as_ann(&house, method.clone(), OWN, body).await;
        assert_eq!(refusal.refusal(), refused(409, "upstream_no_login", &[]), "{method}");
    }
    assert!(is_logged_in(&house, &ann).await && can_call(&house, &ann).await, "it is as it was");
    stopper.stop().await;
}
