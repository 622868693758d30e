//! Who may do what by A2A: each operation asks for a credential, and what is not the caller's is
//! not found.

use crate::a2a::{ADD, SETTINGS, message, project};
use crate::a2a_grpc_client::{parts, until};
use crate::credentials::{ADMIN_KEY, Guarded, OPEN, maker, new_key};
use crate::house::{Answer, assembled, read};
use axum::http::Method;
use identity::keys::Expiry;
use kernel::identity::roles::Role;
use serde_json::{Value, json};
use server::A2A_OPERATIONS;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use upstreams::{A2aConfig, CardPlace, Peer, Secret, TokenClient};
use wire::a2a::task::TaskState;

const CARD: &str = "/.well-known/agent-card.json";

async fn guarded() -> Guarded {
    let settings = format!("{OPEN}[a2a]\nexpose = [\"math::*\"]\npublic = [\"{ADD}\"]\n");
    Guarded::start(&settings).await
}

async fn rpc(guarded: &Guarded, key: Option<&str>, method: &str, params: &Value) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut headers = vec![("a2a-version", "1.0")];
    headers.extend(key.map(|key| ("x-api-key", key)));
    read(guarded.open(Method::POST, "/a2a/v1", &headers, &body).await).await
}

fn sent(id: &str) -> Value {
    json!({"message": message(id, ADD, json!({"data": {"a": 1, "b": 2}}))})
}

#[tokio::test]
async fn every_operation_wants_a_credential_in_both_bindings() {
    let guarded = guarded().await;
    for operation in A2A_OPERATIONS {
        for key in [None, Some("wp_wrong")] {
            let answer = rpc(&guarded, key, operation.method, &json!({"id": "x"})).await;
            assert_eq!(answer.status, 401, "{}: {answer:?}", operation.method);
            assert_eq!(answer.body["error"]["code"], -32000, "{answer:?}");
        }
        let verb: Method = operation.verb.parse().unwrap();
        let path =
            format!("/a2a/v1{}", operation.path.replace("{id}", "x").replace("{configId}", "y"));
        let headers = [("a2a-version", "1.0")];
        let answer = read(guarded.open(verb, &path, &headers, &json!({})).await).await;
        let status = &answer.body["error"]["status"];
        assert_eq!((answer.status, status), (401, &json!("UNAUTHENTICATED")), "{answer:?}");
    }
}

#[tokio::test]
async fn clients_of_0_3_pass_the_same_checks() {
    let guarded = guarded().await;
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Operator).await;
    let call = async |key: Option<&str>, method: &str, params: Value| -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers: Vec<_> = key.map(|key| ("x-api-key", key)).into_iter().collect();
        read(guarded.open(Method::POST, "/a2a/v1", &headers, &body).await).await
    };
    let answer = rpc(&guarded, Some(&ann), "SendMessage", &sent("m1")).await;
    let id = answer.body["result"]["task"]["id"].clone();
    let path = format!("/a2a/v1/v1/tasks/{}", id.as_str().unwrap());
    for method in [
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotificationConfig/delete",
    ] {
        let params = json!({"id": id, "pushNotificationConfigId": "x"});
        let stranger = call(None, method, params.clone()).await;
        assert_eq!((stranger.status, &stranger.body["error"]["code"]), (401, &json!(-32000)));
        let other = call(Some(&bob), method, params).await;
        assert_eq!(other.body["error"]["code"], -32001, "{method}: {other:?}");
    }
    let own = call(Some(&ann), "tasks/get", json!({"id": id})).await;
    assert_eq!(own.body["result"]["status"]["state"], "completed", "{own:?}");
    for (key, status) in [(None, 401), (Some(&bob), 404), (Some(&ann), 200)] {
        let headers: Vec<_> = key.map(|key| ("x-api-key", key.as_str())).into_iter().collect();
        assert_eq!(guarded.get(&path, &headers).await.status, status, "{key:?}");
    }
}

#[tokio::test]
async fn a_task_of_somebody_else_is_not_found_by_any_operation() {
    let guarded = guarded().await;
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Operator).await;
    let answer = rpc(&guarded, Some(&ann), "SendMessage", &sent("m1")).await;
    let task = answer.body["result"]["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{answer:?}");
    let unknown = format!("run_{:032x}", 1);
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        let told = async |id: &Value| {
            let answer = rpc(&guarded, Some(&bob), method, &json!({"id": id})).await;
            let text = answer.body["error"].to_string();
            text.replace(id.as_str().unwrap(), "ID")
        };
        let other = told(&task["id"]).await;
        let none = told(&json!(unknown)).await;
        assert_eq!(other, none, "{method} tells nothing");
        assert!(other.contains("TASK_NOT_FOUND"), "{other}");
    }
    let mut reply = sent("m2");
    reply["message"]["taskId"] = task["id"].clone();
    let answer = rpc(&guarded, Some(&bob), "SendMessage", &reply).await;
    assert_eq!(answer.body["error"]["code"], -32001, "{answer:?}");
    let listed = rpc(&guarded, Some(&bob), "ListTasks", &json!({})).await;
    assert_eq!(listed.body["result"]["totalSize"], 0, "{listed:?}");
    // The same context id is another context.
    let mut own = sent("m3");
    own["message"]["contextId"] = task["contextId"].clone();
    let answer = rpc(&guarded, Some(&bob), "SendMessage", &own).await;
    assert_eq!(answer.body["result"]["task"]["contextId"], task["contextId"], "{answer:?}");
    let listed = rpc(&guarded, Some(&ann), "ListTasks", &json!({})).await;
    assert_eq!(listed.body["result"]["totalSize"], 1, "{listed:?}");
}

#[tokio::test]
async fn a_page_token_is_good_for_its_caller_alone() {
    let guarded = guarded().await;
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Member).await;
    for index in 0..2 {
        rpc(&guarded, Some(&ann), "SendMessage", &sent(&format!("m{index}"))).await;
    }
    let page = rpc(&guarded, Some(&ann), "ListTasks", &json!({"pageSize": 1})).await;
    let token = &page.body["result"]["nextPageToken"];
    let params = json!({"pageSize": 1, "pageToken": token});
    let next = rpc(&guarded, Some(&ann), "ListTasks", &params).await;
    assert_eq!(next.body["result"]["tasks"].as_array().unwrap().len(), 1, "{next:?}");
    let other = rpc(&guarded, Some(&bob), "ListTasks", &params).await;
    assert_eq!(other.body["error"]["code"], -32602, "{other:?}");
}

#[tokio::test]
async fn a_viewer_starts_nothing_and_enters_no_other_realm() {
    let guarded = guarded().await;
    let viewer = guarded.key(Role::Viewer).await;
    let member = guarded.key(Role::Member).await;
    let answer = rpc(&guarded, Some(&viewer), "SendMessage", &sent("m1")).await;
    assert!(answer.body["error"].is_object(), "{answer:?}");
    let mut elsewhere = sent("m1");
    elsewhere["tenant"] = json!("other");
    let answer = rpc(&guarded, Some(&member), "SendMessage", &elsewhere).await;
    assert_eq!((answer.status, &answer.body["error"]["code"]), (403, &json!(-32000)), "{answer:?}");
    let headers = [("a2a-version", "1.0"), ("x-api-key", member.as_str())];
    let path = "/a2a/v1/other/message:send";
    let mut mixed = sent("m1");
    mixed["tenant"] = json!("default");
    let answer = read(guarded.open(Method::POST, path, &headers, &mixed).await).await;
    assert_eq!(answer.status, 400, "two realms: {answer:?}");
    for operation in A2A_OPERATIONS.iter().filter(|one| !one.path.starts_with("/message:")) {
        let path = operation.path.replace("{id}", "x").replace("{configId}", "y");
        for (path, status) in [
            (format!("/a2a/v1{path}?tenant=other"), 403),
            (format!("/a2a/v1/default{path}?tenant=other"), 400),
        ] {
            let verb: Method = operation.verb.parse().unwrap();
            let answer = read(guarded.open(verb, &path, &headers, &json!({})).await).await;
            assert_eq!(answer.status, status, "{path}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_viewer_learns_that_it_may_not_start_the_default_agent() {
    let guarded = guarded().await;
    let agent = json!({"name": "Helper", "llmConfigRef": "openai"});
    let admin = [("x-api-key", ADMIN_KEY)];
    let stored = guarded.open(Method::PUT, "/api/v1/agents/helper", &admin, &agent).await;
    assert_eq!(stored.status().as_u16(), 201);
    let viewer = guarded.key(Role::Viewer).await;
    let said = json!({"message": {"messageId": "m", "role": "ROLE_USER",
        "parts": [{"text": "hello"}]}});
    let answer = rpc(&guarded, Some(&viewer), "SendMessage", &said).await;
    let why = answer.body["error"]["message"].as_str().unwrap();
    assert_eq!(answer.body["error"]["code"], -32000, "{answer:?}");
    assert!(why.contains("may see the default agent `helper` but not start it"), "{why}");
}

#[tokio::test]
async fn strangers_see_public_skills_and_callers_their_own() {
    let guarded = guarded().await;
    let ids = |answer: &Answer| -> Vec<String> {
        let skills = answer.body["skills"].as_array().unwrap();
        skills.iter().map(|skill| skill["id"].as_str().unwrap().to_owned()).collect()
    };
    let public = guarded.get(CARD, &[]).await;
    assert_eq!((public.status, ids(&public)), (200, vec![ADD.to_owned()]), "{public:?}");
    let schemes = public.body["securitySchemes"].as_object().unwrap();
    assert_eq!(schemes.keys().collect::<Vec<_>>(), ["apiKey", "bearer", "oauth2"], "{public:?}");
    let address = public.body["supportedInterfaces"][0]["url"].as_str().unwrap();
    let token_url = format!("{}/oauth/token", address.strip_suffix("/a2a/v1").unwrap());
    let oauth = &schemes["oauth2"];
    for flows in [&oauth["oauth2SecurityScheme"]["flows"], &oauth["flows"]] {
        let flow = &flows["clientCredentials"];
        assert_eq!(flow["tokenUrl"], token_url.as_str(), "{public:?}");
        assert!(flow["scopes"]["use"].is_string(), "{public:?}");
    }
    assert!(public.header("cache-control").starts_with("public"));
    let key = guarded.key(Role::Member).await;
    let own = guarded.get_as(&key, CARD).await;
    assert!(own.header("cache-control").starts_with("private"));
    assert!(ids(&own).len() >= ids(&public).len(), "{own:?}");
    assert_eq!(guarded.get("/a2a/v1/other/agent-card.json", &[]).await.status, 404);
    assert_eq!(guarded.get_as("wp_wrong", CARD).await.status, 401, "a wrong one never counts");
}

#[tokio::test]
async fn our_own_client_gets_its_token_where_the_card_says() {
    let data = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = format!("{OPEN}{SETTINGS}");
    let assembled = assembled(project(&settings), &data, address, Some(ADMIN_KEY)).await;
    let new = new_key(Role::Member, None, Expiry::Usual);
    let made = assembled.identity().create(&maker(), new).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server::serve(assembled, listener, None, async move {
        let _ = stopped.await;
    }));
    let client = |secret: &str| {
        let mut config = A2aConfig::new(CardPlace::Url(format!("http://{address}")));
        config.allow_private = true;
        let id = made.stored.key.id.0.to_string();
        config.client = Some(TokenClient { id, secret: Secret::new(secret), scopes: Vec::new() });
        config
    };
    let message = message("m1", ADD, json!({"data": {"a": 1, "b": 2}}));
    let stranger = Peer::open(&client("wp_wrong"), &parts()).await.unwrap();
    let refused = stranger.send(serde_json::from_value(message.clone()).unwrap()).await;
    assert_eq!(refused.unwrap_err().fault.name, "UpstreamUnauthorized");
    let peer = Peer::open(&client(made.text.expose()), &parts()).await.unwrap();
    let done = until(&peer, &message, TaskState::Completed).await;
    assert!(!done.artifacts.is_empty(), "{done:?}");
    drop((stranger, peer));
    stop.send(()).unwrap();
    serving.await.unwrap();
}
