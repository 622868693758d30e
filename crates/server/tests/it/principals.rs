//! `/api/v1/principals`: who is known by name, from the file and from the store, and what their
//! keys are worth.

use crate::api_keys::{ADMIN, Key, get, send};
use crate::house::{ADDRESS, Answer, House, approval, refused, request, setup, text};
use axum::body::Body;
use axum::http::Method;
use engine::AllowAll;
use futures::StreamExt;
use kernel::identity::principal_reader::{KnownNames, read_text};
use kernel::limits::Limits;
use project::config::Config;
use project::folder::Project;
use project::policies::{PolicyFile, PolicyFiles};
use serde_json::{Value, json};
use server::{Extra, Setup};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const PRINCIPALS: &str = "/api/v1/principals";
/// After so long without a word a stream has told all that there is.
const QUIET: Duration = Duration::from_millis(300);
/// Long enough for a stream to end, and shorter than the time between two heartbeats.
const ENDS: Duration = Duration::from_secs(12);

/// A project that others reach, whose file names `ann`, an operator here, with more settings.
fn project(settings: &str) -> Project {
    let settings = format!("[server]\nhosts = [\"wp.example.com\"]\n{settings}");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let file = "principals:\n  ann:\n    realms: {default: [operator]}\n    name: Ann Lee\n";
    let names = KnownNames { issuers: Some(&[]), has_policies: false };
    let read = read_text(file, "principals.yaml", names, &Limits::default());
    Project { config, principals: Some(read.unwrap().0), ..Project::demo() }
}

/// Its server.
async fn knowing_ann() -> House {
    House::build(project(""), Some(ADMIN)).await
}

/// The answer to a request with this credential and these headers.
async fn with_headers(
    house: &House,
    credential: &str,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Answer {
    let mut request = request(Method::GET, path, Body::empty());
    let bearer = format!("Bearer {credential}");
    for (name, value) in headers.iter().copied().chain([("authorization", bearer.as_str())]) {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    house.send(request).await
}

async fn put(house: &House, credential: &str, id: &str, body: Value) -> (u16, Value) {
    let path = format!("{PRINCIPALS}/{id}");
    let answer = send(house, credential, Method::PUT, &path, body).await;
    (answer.status, answer.body)
}

fn member() -> Value {
    json!({"realms": {"default": ["member"]}})
}

#[tokio::test]
async fn principals_are_stored_shown_and_listed() {
    let house = knowing_ann().await;
    let (status, stored) = put(&house, ADMIN, "bob", member()).await;
    assert_eq!((status, &stored["origin"]), (201, &json!("stored")), "{stored}");
    assert_eq!((&stored["by"], &stored["definition"]["kind"]), (&json!("admin"), &json!("user")));
    let whole = json!({"kind": "service", "realms": {"default": ["viewer"]},
        "properties": {"floor": 7}, "dataDomain": {"tenantId": "acme.com"}});
    let (status, stored) = put(&house, ADMIN, "bob", whole.clone()).await;
    assert_eq!((status, &stored["definition"]), (200, &whole));
    let one = get(&house, ADMIN, &format!("{PRINCIPALS}/bob")).await;
    assert_eq!((one.header("etag"), &one.body), ("\"2\"", &stored));
    let all = get(&house, ADMIN, PRINCIPALS).await.body;
    let all = all["items"].as_array().unwrap().clone();
    let told: Vec<_> = all.iter().map(|one| (text(&one["id"]), text(&one["origin"]))).collect();
    let expected = [("ann", "file"), ("bob", "stored")];
    assert_eq!(told, expected.map(|(id, origin)| (id.to_owned(), origin.to_owned())));
    let missing = get(&house, ADMIN, &format!("{PRINCIPALS}/zoe")).await;
    assert_eq!(missing.refusal(), refused(404, "not_found", &[]));
}

#[tokio::test]
async fn principals_of_the_file_are_changed_only_there() {
    let house = knowing_ann().await;
    let (status, told) = put(&house, ADMIN, "ann", member()).await;
    assert_eq!((status, &told["code"]), (409, &json!("principal_in_file")), "{told}");
    assert!(text(&told["detail"]).contains("principals.yaml"), "{told}");
    let (status, told) = put(&house, ADMIN, "ANN", member()).await;
    assert_eq!((status, &told["code"]), (409, &json!("principal_clash")), "{told}");
}

#[tokio::test]
async fn a_key_of_a_principal_is_that_principal() {
    let house = knowing_ann().await;
    let key = Key::created(&house, ADMIN, json!({"name": "laptop", "of": "ann"})).await;
    let who = get(&house, &key.text, "/api/v1/whoami").await.body;
    assert_eq!((&who["subject"], &who["roles"]), (&json!("ann"), &json!(["operator"])), "{who}");
    let shown = get(&house, ADMIN, &key.path()).await.body;
    assert_eq!((&shown["of"], &shown["subject"]), (&json!("ann"), &json!("ann")));
    assert_eq!(shown["realms"], json!({"default": ["operator"]}), "those of the principal");
    for (body, place) in [
        (json!({"name": "x", "of": "ann", "roles": ["admin"]}), "/roles"),
        (json!({"name": "x", "of": "ann", "realms": {"default": ["admin"]}}), "/realms/default"),
        (json!({"name": "x", "of": "zoe"}), "/of"),
        (json!({"name": "x", "of": "ann", "realms": {"acme": []}}), "/of"),
    ] {
        let refusal = send(&house, ADMIN, Method::POST, "/api/v1/keys", body.clone()).await;
        assert_eq!(refusal.refusal(), refused(422, "wrong_shape", &[place]), "{body}");
    }
}

#[tokio::test]
async fn disabling_ends_every_credential_until_it_is_enabled() {
    let house = knowing_ann().await;
    let key = Key::created(&house, ADMIN, json!({"name": "laptop", "of": "ann"})).await;
    assert_eq!(key.status(&house).await, 200);
    let switch = async |word: &str| {
        let path = format!("{PRINCIPALS}/ann/{word}");
        send(&house, ADMIN, Method::POST, &path, Value::Null).await
    };
    let disabled = switch("disable").await;
    assert_eq!(disabled.status, 200, "{disabled:?}");
    assert!(disabled.body["disabledAt"].is_string(), "{disabled:?}");
    assert_eq!(key.status(&house).await, 401);
    assert_eq!(switch("enable").await.body.get("disabledAt"), None);
    assert_eq!(key.status(&house).await, 200);
}

#[tokio::test]
async fn no_one_gives_or_sees_more_than_they_administer() {
    let house = knowing_ann().await;
    let here = Key::created(&house, ADMIN, json!({"name": "here", "roles": ["admin"]})).await;
    let (status, told) = put(&house, &here.text, "bob", member()).await;
    assert_eq!(status, 201, "{told}");
    for wider in [
        json!({"realms": {"*": ["viewer"]}}),
        json!({"realms": {"default": ["admin"], "acme": []}}),
        json!({"realms": {"default": ["member"]}, "identities": ["local"]}),
        json!({"realms": {"default": ["member", "lead"]}}),
    ] {
        let (status, told) = put(&house, &here.text, "bob", wider).await;
        assert_eq!((status, &told["code"]), (403, &json!("grant_exceeds")), "{told}");
    }
    let (status, _) = put(&house, ADMIN, "root", json!({"realms": {"*": ["admin"]}})).await;
    assert_eq!(status, 201);
    // What only policies know may be more than an administrator of one realm may do.
    let (status, _) = put(&house, ADMIN, "cyn", json!({"realms": {"default": ["lead"]}})).await;
    assert_eq!(status, 201);
    let hers = Key::created(&house, ADMIN, json!({"name": "laptop", "of": "cyn"})).await;
    let tried = [
        ("/api/v1/keys".to_owned(), json!({"name": "mine", "of": "cyn"})),
        (format!("{}/rotate", hers.path()), json!({})),
    ];
    for (path, body) in tried {
        let refusal = send(&house, &here.text, Method::POST, &path, body).await;
        assert_eq!(refusal.refusal(), refused(403, "grant_exceeds", &[]), "{path}");
    }
    // Neither while it is disabled: it has its roles again afterwards.
    let disable = format!("{PRINCIPALS}/cyn/disable");
    let rotate = format!("{}/rotate", hers.path());
    let disabled = send(&house, &here.text, Method::POST, &disable, Value::Null).await;
    assert_eq!(disabled.status, 200, "{disabled:?}");
    let refusal = send(&house, &here.text, Method::POST, &rotate, json!({})).await;
    assert_eq!(refusal.refusal(), refused(403, "grant_exceeds", &[]), "{refusal:?}");
    let unseen = get(&house, &here.text, &format!("{PRINCIPALS}/root")).await;
    assert_eq!(unseen.refusal(), refused(404, "not_found", &[]));
    let (status, told) = put(&house, &here.text, "root", member()).await;
    assert_eq!((status, &told["code"]), (409, &json!("principal_taken")), "{told}");
    for role in ["viewer", "member", "approver", "operator"] {
        let key = Key::created(&house, ADMIN, json!({"name": role, "roles": [role]})).await;
        let refusal = get(&house, &key.text, PRINCIPALS).await;
        assert_eq!(refusal.refusal(), refused(403, "forbidden", &[]), "{role}");
    }
}

#[tokio::test]
async fn each_mistake_of_a_principal_has_its_pointer() {
    let house = knowing_ann().await;
    for (id, body, place) in [
        ("bob", json!({"realms": {"A": []}}), "/realms/A"),
        ("bob", json!({"realms": {"default": ["memeber"]}}), "/realms/default/0"),
        ("bob", json!({"realms": {"default": []}, "identities": ["corp:1"]}), "/identities/0"),
        ("bob", json!({"realms": {"default": []}, "properties": {"a": {}}}), "/properties/a"),
        ("bob", json!({"realms": {"default": []}, "role": "admin"}), "/role"),
        ("admin", member(), ""),
        ("corp:1", member(), ""),
    ] {
        let path = format!("{PRINCIPALS}/{id}");
        let refusal = send(&house, ADMIN, Method::PUT, &path, body.clone()).await;
        assert_eq!(refusal.refusal(), refused(422, "wrong_shape", &[place]), "{id} {body}");
    }
}

#[tokio::test]
async fn no_built_in_role_lets_anyone_act_as_another() {
    let house = knowing_ann().await;
    for id in ["ann", "zoe", "admin"] {
        for header in ["x-impersonate-subject", "x-impersonate-userid"] {
            let answer = with_headers(&house, ADMIN, "/api/v1/whoami", &[(header, id)]).await;
            assert_eq!(answer.refusal(), refused(403, "impersonation_refused", &[]), "{id}");
        }
    }
    let both = [("x-impersonate-subject", "ann"), ("x-impersonate-userid", "ann")];
    let answer = with_headers(&house, ADMIN, "/api/v1/whoami", &both).await;
    assert_eq!(answer.refusal(), refused(400, "two_subjects", &[]));
}

#[tokio::test]
async fn impersonation_carries_both_names() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::of(|| {
        let extra = Extra { policy: Some(Arc::new(AllowAll)), ..Extra::default() };
        let admin_key = Some(ADMIN.to_owned());
        Setup { extra, admin_key, ..setup(project(""), &data, ADDRESS.parse().unwrap()) }
    })
    .await;
    let as_ann = [("x-impersonate-subject", "ann")];
    let who = with_headers(&house, ADMIN, "/api/v1/whoami", &as_ann).await.body;
    assert_eq!((&who["subject"], &who["actor"]), (&json!("ann"), &json!("admin")), "{who}");
    assert_eq!(who["scopes"], json!(["read", "use", "operate"]));
    let keys = with_headers(&house, ADMIN, "/api/v1/keys", &as_ann).await;
    assert_eq!(keys.status, 403, "who administers does it in its own name: {keys:?}");
    let tools = with_headers(&house, ADMIN, "/api/v1/tools", &as_ann).await;
    assert_eq!(tools.status, 200, "{tools:?}");
    let nobody = [("x-impersonate-subject", "zoe")];
    let answer = with_headers(&house, ADMIN, "/api/v1/whoami", &nobody).await;
    assert_eq!(answer.refusal(), refused(403, "impersonation_refused", &[]));
    stopper.stop().await;
}

#[tokio::test]
async fn a_request_chooses_among_the_realms_that_exist_and_may_be_entered() {
    let settings = "[realms.acme]\nenabled_tools = [\"math::*\"]\n";
    let house = House::build(project(settings), Some(ADMIN)).await;
    let body = json!({"name": "acme", "realms": {"acme*": ["member"]}});
    let key = Key::created(&house, ADMIN, body).await;
    for (credential, headers, path, expected) in [
        (ADMIN, &[][..], "/api/v1/whoami", "default"),
        (ADMIN, &[("x-realm", "acme")][..], "/api/v1/whoami", "acme"),
        (ADMIN, &[][..], "/api/v1/whoami?realm=acme", "acme"),
        (key.text.as_str(), &[("x-realm", "acme")][..], "/api/v1/whoami", "acme"),
    ] {
        let who = with_headers(&house, credential, path, headers).await;
        assert_eq!(who.body["realm"], expected, "{who:?}");
    }
    for realm in ["default", "acme-eu", "none"] {
        let headers = [("x-realm", realm)];
        let answer = with_headers(&house, &key.text, "/api/v1/whoami", &headers).await;
        assert_eq!(answer.refusal(), refused(403, "realm_not_allowed", &[]), "{realm}");
    }
    let headers = [("x-realm", "acme")];
    let answer = with_headers(&house, ADMIN, "/api/v1/whoami?realm=default", &headers).await;
    assert_eq!(answer.refusal(), refused(400, "two_realms", &[]));
    let shown = get(&house, ADMIN, "/api/v1/realms").await.body;
    let acme = json!({"name": "acme", "origin": "settings", "enabledTools": ["math::*"],
        "usable": true});
    let usual = json!({"name": "default", "origin": "settings", "usable": true});
    assert_eq!(shown["items"], json!([acme, usual]));
    assert_eq!(get(&house, ADMIN, "/api/v1/realms/acme").await.body, acme);
    let missing = get(&house, ADMIN, "/api/v1/realms/none").await;
    assert_eq!(missing.refusal(), refused(404, "not_found", &[]));
    // Only what the realm enables is there.
    for (name, status) in [("math::add", 200), ("test::always_fail", 404)] {
        let path = format!("/api/v1/tools/{name}");
        let answer = with_headers(&house, &key.text, &path, &headers).await;
        assert_eq!(answer.status, status, "{name}: {answer:?}");
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_role_that_let_its_reader_see_it() {
    ends_with_its_role(knowing_ann().await).await;
}

#[tokio::test]
async fn a_stream_ends_with_its_role_also_where_a_policy_reads_the_time() {
    let text = "forbid (principal, action == Action::\"run\", resource)\n\
                when { context.now < datetime(\"2000-01-01\") };";
    let file = "policies/a.cedar".to_owned();
    let text = text.to_owned();
    let policies = PolicyFiles { policies: vec![PolicyFile { file, text }], tests: None };
    let project = Project { policies: Some(policies), ..project("") };
    ends_with_its_role(House::build(project, Some(ADMIN)).await).await;
}

async fn ends_with_its_role(house: House) {
    let viewer = json!({"realms": {"default": ["viewer"]}});
    assert_eq!(put(&house, ADMIN, "bob", viewer).await.0, 201);
    let key = Key::created(&house, ADMIN, json!({"name": "laptop", "of": "bob"})).await;
    let body = json!({"planId": "interaction::greeting"});
    let begun = send(&house, ADMIN, Method::POST, "/api/v1/runs", body).await.body;
    let path = format!("/api/v1/sessions/{}/events", text(&begun["session"]["id"]));
    let mut follow = request(Method::GET, &path, Body::empty());
    follow.headers_mut().insert("x-api-key", key.text.parse().unwrap());
    let stream = house.open(follow).await;
    assert_eq!(stream.status(), 200);
    let mut pieces = stream.into_body().into_data_stream();
    while let Ok(piece) = timeout(QUIET, pieces.next()).await {
        piece.expect("the stream goes on").unwrap();
    }
    // The credential stays good, and nothing happens in the session.
    assert_eq!(put(&house, ADMIN, "bob", member()).await.0, 200);
    let mut read = Vec::new();
    let rest = async {
        while let Some(piece) = pieces.next().await {
            read.extend_from_slice(&piece.unwrap());
        }
    };
    timeout(ENDS, rest).await.expect("waited for the stream to end");
    let read = String::from_utf8(read).unwrap();
    assert!(read.contains("event: error") && read.contains("not_found"), "{read}");
    assert_eq!(key.status(&house).await, 200);
}

/// A project that others reach, perhaps with a principal who was `local` too.
fn with_local(is_principal: bool) -> Project {
    let file = "principals:\n  ann:\n    realms: {default: [member]}\n    identities: [local]\n";
    let names = KnownNames { issuers: Some(&[]), has_policies: false };
    let read = read_text(file, "principals.yaml", names, &Limits::default());
    let principals = is_principal.then(|| read.unwrap().0);
    Project { principals, ..project("") }
}

#[tokio::test]
async fn a_run_of_local_mode_continues_unless_the_principal_that_was_local_is_disabled() {
    for is_principal in [false, true] {
        let data = tempfile::tempdir().unwrap();
        let (house, stopper) = House::over(Project::demo, &data, None).await;
        let asked = house.run(json!({"plan": approval()})).await;
        let path = format!("/api/v1/asks/{}", text(&asked["run"]["asks"][0]["id"]));
        stopper.stop().await;
        drop(house);

        let (house, stopper) = House::over(|| with_local(is_principal), &data, Some(ADMIN)).await;
        let member = Key::created(&house, ADMIN, json!({"name": "another"})).await;
        let unseen = get(&house, &member.text, &path).await;
        assert_eq!(unseen.refusal(), refused(404, "not_found", &[]), "it is nobody else's");
        let approve = async || {
            let ask = get(&house, ADMIN, &path).await.body;
            let decision = json!({"callId": ask["calls"][0]["callId"], "approve": true});
            let body = json!({"decisions": [decision]});
            send(&house, ADMIN, Method::POST, &path, body).await.body["run"].clone()
        };
        if is_principal {
            let disabled = format!("{PRINCIPALS}/ann/disable");
            let disabled = send(&house, ADMIN, Method::POST, &disabled, Value::Null).await;
            assert_eq!(disabled.status, 200, "{disabled:?}");
            let stuck = approve().await;
            assert_eq!(stuck["status"], "stuck", "{stuck}");
            assert_eq!(stuck["lastError"]["name"], "NotPermittedAnyMore", "{stuck}");
        } else {
            let done = approve().await;
            let came = (text(&done["status"]), done["answer"].as_f64());
            assert_eq!(came, ("completed".to_owned(), Some(3.0)), "{done}");
        }
        stopper.stop().await;
    }
}
