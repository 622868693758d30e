//! `/api/v1/policies` and `/system/permissions`: what the files say, and what somebody may do.

use crate::attacks::{knows, lent_by};
use crate::credentials::{ADMIN_KEY, Guarded, OPEN, told};
use crate::house::{Answer, House, approval, encoded, read, refused, text, wait_for};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use kernel::identity::roles::Role;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const CHECK: &str = "/system/permissions/check";
const EVALUATE: &str = "/system/permissions/evaluate";
const POLICIES: &str = "/api/v1/policies";

const FILE: &str = r#"
@id("sums")
@ask("it is a large sum")
forbid (principal, action == Action::"call:math::add", resource)
when { context.arguments.a.greaterThan(decimal("500.0")) };

@id("no-greeting")
forbid (principal, action == Action::"run", resource == Plan::"interaction::greeting");

@id("clerks")
permit (principal in Role::"clerk", action == Action::"administer", resource);
"#;

/// A question about a call of `math::add` with this number.
fn adding(number: i64) -> Value {
    let resource = json!({"a": number, "b": 1});
    json!({"functionalDomain": "Tool", "action": "call", "resourceId": "math::add",
        "resource": resource})
}

fn decided(body: &Value) -> (String, String) {
    (text(&body["decision"]), text(&body["decisionScope"]))
}

fn words(decision: &str, scope: &str) -> (String, String) {
    (decision.to_owned(), scope.to_owned())
}

#[tokio::test]
async fn policies_are_listed_for_administrators_of_all_realms() {
    let guarded = Guarded::with_policies(OPEN, Some(FILE)).await;
    let listed = guarded.get_as(ADMIN_KEY, POLICIES).await;
    assert_eq!(listed.status, 200, "{listed:?}");
    let ids: Vec<String> =
        listed.body["items"].as_array().unwrap().iter().map(|one| text(&one["id"])).collect();
    assert_eq!(ids, ["clerks", "no-greeting", "sums"]);
    let asks = json!({"id": "sums", "file": "policies/a.cedar", "line": 2, "effect": "ask",
        "why": "it is a large sum", "tools": ["math::add"]});
    assert_eq!(listed.body["items"][2], asks);
    assert_eq!((&listed.body["builtin"], &listed.body["deciding"]), (&json!(true), &json!(true)));
    assert_eq!(text(&listed.body["version"]).len(), 12, "{listed:?}");
    let first = guarded.get_as(ADMIN_KEY, "/api/v1/policies?limit=2").await.body;
    let rest = format!("{POLICIES}?limit=2&cursor={}", encoded(&first["nextCursor"]));
    assert_eq!(guarded.get_as(ADMIN_KEY, &rest).await.body["items"], json!([asks]));
    for role in [Role::Admin, Role::Operator] {
        let key = guarded.key(role).await;
        let refusal = guarded.get_as(&key, POLICIES).await;
        assert_eq!(refusal.refusal(), refused(403, "forbidden", &[]), "{role:?} of one realm");
    }
}

/// An MCP server with a tool that takes a number.
async fn bank(Json(asked): Json<Value>) -> Response {
    let id = &asked["id"];
    let answer =
        |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
    match asked["method"].as_str().unwrap() {
        "initialize" => answer(json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "bank", "version": "1"}})),
        "notifications/initialized" => StatusCode::ACCEPTED.into_response(),
        "tools/list" => answer(json!({"tools": [{"name": "pay", "inputSchema": {"type": "object",
            "properties": {"amount": {"type": "number"}}, "required": ["amount"]}}]})),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
        }
    }
}

#[tokio::test]
async fn an_upstream_shows_that_a_policy_does_not_fit_its_tool() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/mcp", post(bank));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = format!("{OPEN}[mcp.servers.bank]\nurl = \"http://{address}/mcp\"\n");
    let policy = "@id(\"large\") forbid(principal, action == Action::\"call:bank.pay\", resource)\n\
                  when { context.arguments.amount > 500 };";
    let guarded = Guarded::with_policies(&settings, Some(policy)).await;
    let path = "/api/v1/upstreams/bank";
    let look = async || guarded.get_as(ADMIN_KEY, path).await;
    let is_shown = |answer: &Answer| answer.body["lastError"]["name"] == "PolicyMisfit";
    let shown = wait_for("the policy that does not fit", look, is_shown).await.body;
    let right = "context.arguments.amount.greaterThan(decimal(\"500.0\"))";
    assert_eq!(shown["state"], "ready", "{shown}");
    assert!(text(&shown["lastError"]["hint"]).contains(right), "{shown}");
    let message = text(&shown["lastError"]["message"]);
    assert!(message.starts_with("policies/a.cedar:2: "), "{message}");
    assert!(message.contains("`bank.pay`"), "{message}");
    let member = guarded.key(Role::Member).await;
    let seen = guarded.get_as(&member, path).await;
    assert!(!seen.text.contains("greaterThan"), "only administrators learn that: {seen:?}");
}

#[tokio::test]
async fn a_server_without_policies_says_so() {
    let house = House::demo().await;
    let listed = house.get(POLICIES).await;
    assert_eq!((listed.status, &listed.body["items"]), (200, &json!([])), "{listed:?}");
    assert_eq!(listed.body["deciding"], json!(false), "a local server");
    let body = json!({"functionalDomain": "Server", "action": "administer"});
    let checked = house.post(CHECK, body).await;
    assert_eq!(decided(&checked.body), words("ALLOW", "EXACT"), "{checked:?}");
}

#[tokio::test]
async fn a_check_says_what_a_call_would_meet() {
    let guarded = Guarded::with_policies(OPEN, Some(FILE)).await;
    let member = guarded.key(Role::Member).await;
    let admin = guarded.key(Role::Admin).await;
    for (body, expected) in [
        (adding(1), words("ALLOW", "EXACT")),
        (adding(600), words("ALLOW", "SCOPED")),
        (
            json!({"functionalDomain": "plan", "action": "RUN",
                "resourceId": "interaction::greeting"}),
            words("DENY", "EXACT"),
        ),
        (json!({"functionalDomain": "Plan", "action": "run"}), words("ALLOW", "EXACT")),
        (json!({"functionalDomain": "Server", "action": "operate"}), words("DENY", "DEFAULT")),
        (json!({"functionalDomain": "Trade", "action": "LIST"}), words("DENY", "DEFAULT")),
        (
            json!({"area": "sales", "functionalDomain": "Plan", "action": "run"}),
            words("DENY", "DEFAULT"),
        ),
        (
            json!({"functionalDomain": "Tool", "action": "call", "resourceId": "none"}),
            words("DENY", "DEFAULT"),
        ),
    ] {
        let answer = guarded.post_as(&member, CHECK, body.clone()).await;
        assert_eq!(decided(&answer.body), expected, "{body}: {answer:?}");
        let names = ["winningRuleName", "winningRulePriority", "matchedRuleResults", "naLabel"];
        assert!(names.iter().all(|name| answer.body[*name].is_null()), "{answer:?}");
    }
    let asked = guarded.post_as(&admin, CHECK, adding(600)).await.body;
    assert_eq!(
        (&asked["winningRuleName"], &asked["finalEffect"]),
        (&json!("sums"), &json!("ALLOW"))
    );
    let approval = json!([{"type": "APPROVAL", "reason": "it is a large sum"}]);
    assert_eq!(asked["scopedConstraints"], approval);
    let incomplete = guarded.post_as(&member, CHECK, json!({"action": "run"})).await;
    assert_eq!(incomplete.refusal(), refused(422, "wrong_shape", &["/functionalDomain"]));
    let elsewhere = json!({"realm": "acme", "functionalDomain": "Plan", "action": "run"});
    let refusal = guarded.post_as(&member, CHECK, elsewhere).await;
    assert_eq!(refusal.refusal(), refused(403, "realm_not_allowed", &[]));
}

/// Of every type, members reach the rows of their region, and no costs.
const RECORDS: &str = r#"
@id("own-region")
@rows("region:${region}")
forbid (principal in Role::"member", action, resource is RecordType);

@id("no-costs")
@rows("cost:<#100")
@hide("cost")
forbid (principal in Role::"member", action == Action::"read", resource is RecordType);
"#;

#[tokio::test]
async fn a_check_about_records_says_what_is_left_of_them() {
    let guarded = Guarded::with_policies(OPEN, Some(RECORDS)).await;
    let member = guarded.key(Role::Member).await;
    let viewer = guarded.key(Role::Viewer).await;
    let asked = |action: &str, body: &Value| {
        let mut whole = json!({"area": "integration", "functionalDomain": "query",
            "action": action});
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        whole
    };
    let orders = json!({"modelClass": "shop.Order"});
    let named = json!({"resource": {"rootType": "shop.Order"}});
    let region = json!({"andFilterString": "region:${region}", "joinOp": "AND"});
    let secret = json!({"andFilterString": null, "joinOp": "AND"});
    for (action, filters) in [
        ("find", json!([region, secret])),
        ("COUNT", json!([region, secret])),
        ("save", json!([region])),
        ("deleteMany", json!([region])),
    ] {
        for body in [&orders, &named] {
            let answer = guarded.post_as(&member, CHECK, asked(action, body)).await;
            assert_eq!(decided(&answer.body), words("ALLOW", "SCOPED"), "{action}: {answer:?}");
            assert_eq!(answer.body["filterConstraints"], filters, "{action}");
        }
    }
    let save = guarded.post_as(&viewer, CHECK, asked("save", &orders)).await;
    assert_eq!(decided(&save.body), words("DENY", "DEFAULT"), "{save:?}");
    let find = guarded.post_as(&viewer, CHECK, asked("find", &orders)).await;
    assert_eq!(decided(&find.body), words("ALLOW", "EXACT"), "{find:?}");
    assert_eq!(find.body["filterConstraints"], Value::Null);
    let no_tool = guarded.post_as(&member, CHECK, asked("importAnalyze", &json!({}))).await;
    assert_eq!(decided(&no_tool.body), words("DENY", "DEFAULT"), "{no_tool:?}");
    let elsewhere = json!({"area": "waypost", "functionalDomain": "query", "action": "find",
        "modelClass": "shop.Order"});
    let elsewhere = guarded.post_as(&member, CHECK, elsewhere).await;
    assert_eq!(decided(&elsewhere.body), words("DENY", "DEFAULT"), "{elsewhere:?}");
    let of_others = json!({"modelClass": "shop.Order", "roles": ["member"]});
    let told = guarded.post_as(ADMIN_KEY, CHECK, asked("find", &of_others)).await.body;
    let costs = json!({"andFilterString": "cost:<#100", "joinOp": "AND"});
    let hidden = json!({"andFilterString": null, "joinOp": "AND", "excludedFields": ["cost"]});
    assert_eq!(told["filterConstraints"], json!([region, costs, hidden]), "{told}");
    let all = guarded.post_as(&member, EVALUATE, asked("find", &orders)).await.body;
    assert_eq!(all["allow"], json!({"integration": {"query": ["find"]}}), "{all}");
}

#[tokio::test]
async fn only_administrators_ask_about_others() {
    let guarded = Guarded::with_policies(OPEN, Some(FILE)).await;
    let member = guarded.key(Role::Member).await;
    let admin = guarded.key(Role::Admin).await;
    let whoami = guarded.get_as(&member, "/api/v1/whoami").await.body;
    let body = |identity: &str, roles: Value| {
        json!({"identity": identity, "roles": roles, "functionalDomain": "Server",
            "action": "administer"})
    };
    let subject = text(&whoami["subject"]);
    let own = guarded.post_as(&member, CHECK, body(&subject, Value::Null)).await;
    assert_eq!(decided(&own.body), words("DENY", "DEFAULT"), "{own:?}");
    for other in [body("admin", Value::Null), body(&subject, json!(["clerk"]))] {
        let refusal = guarded.post_as(&member, CHECK, other).await;
        assert_eq!(refusal.refusal(), refused(403, "forbidden", &[]));
    }
    let other = guarded.post_as(&admin, CHECK, body(&subject, Value::Null)).await;
    assert_eq!(decided(&other.body), words("DENY", "DEFAULT"), "{other:?}");
    for identity in [subject.as_str(), "not-known-yet"] {
        let tried = guarded.post_as(&admin, CHECK, body(identity, json!(["clerk"]))).await;
        assert_eq!(decided(&tried.body), words("ALLOW", "EXACT"), "{tried:?}");
        assert_eq!(tried.body["winningRuleName"], json!("clerks"));
    }
}

#[tokio::test]
async fn no_role_permits_agents_that_the_realm_does_not_enable() {
    let settings = format!("{OPEN}[realms.default]\nenabled_agents = [\"desk\"]\n");
    let guarded = Guarded::with_policies(&settings, Some(FILE)).await;
    let admin = guarded.key(Role::Admin).await;
    for (agent, expected) in
        [("desk", words("ALLOW", "EXACT")), ("other", words("DENY", "DEFAULT"))]
    {
        for roles in [json!(["operator"]), Value::Null] {
            let body = json!({"functionalDomain": "Agent", "action": "talk", "resourceId": agent,
                "roles": roles});
            let answer = guarded.post_as(&admin, CHECK, body).await;
            assert_eq!(decided(&answer.body), expected, "{agent} {roles}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_property_of_a_principal_decides_and_its_change_counts_at_once() {
    let sales = "@id(\"sales\") permit(principal,\n\
                 action in [Action::\"run\", Action::\"call\"], resource) when {\n\
                 principal.hasTag(\"department\") &&\n\
                 principal.getTag(\"department\").contains(\"sales\") };";
    let guarded = Guarded::with_policies(OPEN, Some(sales)).await;
    let store = async |department: &str| {
        let realms = json!({"default": ["viewer"]});
        let body = json!({"realms": realms, "properties": {"department": department}});
        let headers = [("x-api-key", ADMIN_KEY)];
        let stored = guarded.open(Method::PUT, "/api/v1/principals/bob", &headers, &body).await;
        assert!(stored.status().is_success(), "{stored:?}");
    };
    store("legal").await;
    let new_key = json!({"name": "laptop", "of": "bob"});
    let made = guarded.post_as(ADMIN_KEY, "/api/v1/keys", new_key).await;
    let bobs = text(&made.body["text"]);
    let no_ones = guarded.key(Role::Viewer).await;
    let run = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 2}});
    for department in ["legal", "sales", "legal"] {
        store(department).await;
        let started = guarded.post_as(&bobs, "/api/v1/runs", run.clone()).await;
        match department {
            "sales" => assert!(started.status < 300, "{started:?}"),
            _ => assert_eq!(told(&started), (403, "forbidden".to_owned()), "{started:?}"),
        }
        let other = guarded.post_as(&no_ones, "/api/v1/runs", run.clone()).await;
        assert_eq!(told(&other), (403, "forbidden".to_owned()), "a key that is no principal's");
    }
}

/// Everyone may store new definitions and change their own.
const OWN: &str = r#"
@id("own") permit(principal, action == Action::"define", resource is Definition) when {
    if resource has definedBy then resource.definedBy == principal else true
};
"#;

#[tokio::test]
async fn a_policy_can_let_only_the_author_change_a_definition() {
    let guarded = Guarded::with_policies(OPEN, Some(OWN)).await;
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Member).await;
    let agent = json!({"name": "Helper", "llmConfigRef": "openai"});
    for (path, body) in [("/api/v1/plans/it%2Fapproval", approval()), ("/api/v1/agents/x", agent)] {
        let stores = async |key: &str| {
            let headers = [("x-api-key", key)];
            guarded.open(Method::PUT, path, &headers, &body).await.status().as_u16()
        };
        assert_eq!(stores(&ann).await, 201, "{path}: there was none");
        assert_eq!(stores(&bob).await, 403, "{path}: it is another's");
        assert_eq!(stores(&ann).await, 200, "{path}: it is hers");
        assert_eq!(stores(ADMIN_KEY).await, 200, "{path}: by a role");
        assert_eq!(stores(&ann).await, 403, "{path}: it is not hers any more");
    }
}

#[tokio::test]
async fn of_two_concurrent_writers_the_second_is_judged_against_the_first() {
    let guarded = Guarded::with_policies(OPEN, Some(OWN)).await;
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Member).await;
    let provider = json!({"providerType": "MCP", "baseUrl": "https://crm.example.com/mcp",
        "disabled": true});
    for round in 0..10 {
        let mut plan = approval();
        plan["planId"] = json!(format!("it/approval{round}"));
        for (path, body) in [
            (format!("/api/v1/plans/it%2Fapproval{round}"), plan),
            (format!("/api/v1/agents/x{round}"), json!({"name": "x", "llmConfigRef": "openai"})),
            (format!("/api/v1/providers/crm{round}"), provider.clone()),
        ] {
            let send = async |method: Method, key: &str, body: &Value| {
                let headers = [("x-api-key", key)];
                guarded.open(method, &path, &headers, body).await.status().as_u16()
            };
            let stores = async |key: &str| send(Method::PUT, key, &body).await;
            let (hers, his) = tokio::join!(stores(&ann), stores(&bob));
            let (winner, loser, lost) =
                if hers == 201 { (&ann, &bob, his) } else { (&bob, &ann, hers) };
            // Who may not even read it does not learn that it is there.
            assert!(hers.min(his) == 201 && [403, 404].contains(&lost), "{path}: {hers}, {his}");
            assert_eq!(stores(loser).await, lost, "{path}");
            assert_eq!(stores(winner).await, 200, "{path}");
            if !path.contains("plans") {
                assert_eq!(send(Method::DELETE, loser, &Value::Null).await, lost, "{path}");
                assert_eq!(send(Method::DELETE, winner, &Value::Null).await, 204, "{path}");
            }
        }
    }
}

#[tokio::test]
async fn all_acts_are_evaluated_at_both_paths() {
    let guarded = Guarded::with_policies(OPEN, Some(FILE)).await;
    let viewer = guarded.key(Role::Viewer).await;
    let all = guarded.post_as(&viewer, EVALUATE, Value::Null).await;
    assert_eq!(all.status, 200, "{all:?}");
    assert_eq!(all.body["allow"]["waypost"]["Plan"], json!(["read"]), "{all:?}");
    assert_eq!(all.body["deny"]["waypost"]["Plan"], json!(["run", "define"]));
    assert_eq!(all.body["allow"]["waypost"]["Server"], json!(["read", "export"]));
    let same = guarded.post_as(&viewer, "/system/permissions/fd/evaluate", Value::Null).await;
    assert_eq!(same.body, all.body);
    let one = json!({"functionalDomain": "server", "action": "administer"});
    let one = guarded.post_as(ADMIN_KEY, EVALUATE, one).await.body;
    let expected = json!({"waypost": {"Server": ["administer"]}});
    assert_eq!((&one["allow"], &one["deny"]), (&expected, &json!({})));
    let decision = &one["decisions"]["waypost"]["Server"]["administer"];
    assert_eq!((&decision["effect"], &decision["rule"]), (&json!("ALLOW"), &json!("role:admin")));
    let elsewhere = guarded.post_as(&viewer, EVALUATE, json!({"area": "sales"})).await.body;
    assert_eq!(elsewhere["decisions"], json!({}));
}

/// Who supports may act as `ann`, and as `root`, who administers.
const SUPPORT: &str = r#"
permit (principal in Role::"support", action == Action::"impersonate",
    resource == Principal::"ann");
permit (principal in Role::"support", action == Action::"impersonate",
    resource == Principal::"root");
"#;

#[tokio::test]
async fn a_policy_lets_a_role_act_as_those_whom_it_names_and_as_no_one_else() {
    let guarded = Guarded::with_policies(OPEN, Some(SUPPORT)).await;
    let people = [("ann", "member"), ("bob", "member"), ("root", "admin"), ("sue", "support")];
    for (id, role) in people {
        knows(&guarded, id, role).await;
    }
    let (_, sue) = lent_by(&guarded, ADMIN_KEY, "sue").await;
    let (_, ann) = lent_by(&guarded, ADMIN_KEY, "ann").await;
    let who = async |key: &str, id: &str| {
        let headers = [("x-api-key", key), ("x-impersonate-subject", id)];
        guarded.get("/api/v1/whoami", &headers).await
    };
    let acting = who(&sue, "ann").await;
    assert_eq!(acting.status, 200, "{acting:?}");
    assert_eq!((&acting.body["subject"], &acting.body["actor"]), (&json!("ann"), &json!("sue")));
    let others = [
        (&*sue, "bob", "no policy names it"),
        (&*sue, "zoe", "there is none"),
        (&*sue, "root", "it administers, whatever a policy says"),
        (&*ann, "bob", "its role is another"),
        (ADMIN_KEY, "ann", "no built-in role permits it"),
    ];
    for (key, id, why) in others {
        let refusal = who(key, id).await;
        assert_eq!(refusal.refusal(), refused(403, "impersonation_refused", &[]), "{id}: {why}");
    }
    // What is begun like this is the subject's.
    let run = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 2}});
    let as_ann = [("x-api-key", &*sue), ("x-impersonate-subject", "ann")];
    let started = read(guarded.open(Method::POST, "/api/v1/runs", &as_ann, &run).await).await;
    assert!(started.status < 300, "{started:?}");
    let session = format!("/api/v1/sessions/{}", text(&started.body["session"]["id"]));
    assert_eq!(guarded.get_as(&ann, &session).await.status, 200);
    assert_ne!(guarded.get_as(&sue, &session).await.status, 200, "in her own name she may not");
}
