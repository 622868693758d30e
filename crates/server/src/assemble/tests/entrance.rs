//! Who comes in: local mode by the admin key, and by credentials what a stranger is answered. Keys
//! themselves are tested where they are checked.

use crate::assemble::assembled_with;
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use edge::problem::{Failure, Result};
use edge::request::auth::open_paths::{HEALTH_PATH, OPEN_PATHS, TOKEN_PATH};
use edge::request::auth::{API_KEY, Entrance, RequestHead, Visitor};
use futures::executor::block_on;
use identity::failures::FAILURES_MAX;
use kernel::values::caller::{Scope, Scopes};
use project::config::{AdminRule, Config, ServerConfig};

const ADDRESS: &str = "127.0.0.1:8420";

fn headers(given: &[(HeaderName, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.append(HOST, HeaderValue::from_static("localhost:8420"));
    for (name, value) in given {
        headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn local(key: Option<&str>, admin: AdminRule) -> Entrance {
    let config = ServerConfig { admin, ..ServerConfig::default() };
    Entrance::local(ADDRESS.parse().unwrap(), &config, key)
}

fn admitted(entrance: &Entrance, path: &str, headers: &HeaderMap) -> Result<Option<Visitor>> {
    let uri: Uri = path.parse().unwrap();
    let arrival = RequestHead { method: &Method::GET, uri: &uri, headers, peer: None };
    block_on(entrance.admit(&arrival))
}

/// `administers`, `calls`, `stranger`, or why it is refused.
fn told(entrance: &Entrance, path: &str, given: &[(HeaderName, &str)]) -> String {
    match admitted(entrance, path, &headers(given)) {
        Ok(Some(visitor)) if visitor.administers() => "administers".to_owned(),
        Ok(Some(_)) => "calls".to_owned(),
        Ok(None) => "stranger".to_owned(),
        Err(failure) => format!("{} {}", failure.status().as_u16(), failure.code()),
    }
}

#[test]
fn the_admin_key_decides_in_local_mode_where_there_is_one() {
    let keyed = local(Some("secret"), AdminRule::Local);
    let api_key = API_KEY.clone();
    for (name, value, answer) in [
        (AUTHORIZATION, "Bearer secret", "administers"),
        (AUTHORIZATION, "bearer  secret ", "administers"),
        (api_key.clone(), "secret", "administers"),
        (AUTHORIZATION, "Bearer secres", "401 unauthorized"),
        (AUTHORIZATION, "Bearer secret2", "401 unauthorized"),
        (api_key, "Bearer", "401 unauthorized"),
        (AUTHORIZATION, "Bearer", "400 bad_credential"),
        (AUTHORIZATION, "Basic secret", "400 bad_credential"),
        (AUTHORIZATION, "secret", "400 bad_credential"),
        (AUTHORIZATION, "Bearer sec\tret", "400 bad_credential"),
    ] {
        assert_eq!(told(&keyed, "/mcp", &[(name, value)]), answer, "{value}");
    }
    let visitor = admitted(&keyed, "/", &headers(&[(AUTHORIZATION, "Bearer secret")]));
    let visitor = visitor.unwrap().unwrap();
    assert!(!visitor.caller.admin, "what does not need an administrator is not done as one");
    let two = [(AUTHORIZATION, "Bearer secret"), (AUTHORIZATION, "Bearer secret")];
    assert_eq!(told(&keyed, "/", &two), "400 bad_credential");
    assert_eq!(told(&keyed, "/", &[]), "calls");
    assert_eq!(told(&local(None, AdminRule::Local), "/", &[]), "administers");
    assert_eq!(told(&local(Some(""), AdminRule::Local), "/", &[]), "administers");
    assert_eq!(told(&local(None, AdminRule::Key), "/", &[]), "calls");
}

#[test]
fn a_server_without_keys_takes_no_credential() {
    for rule in [AdminRule::Local, AdminRule::Key] {
        let sent = [(AUTHORIZATION, "Bearer secret")];
        assert_eq!(told(&local(None, rule), "/livez", &sent), "401 unauthorized");
        assert_eq!(
            told(&local(None, rule), TOKEN_PATH, &[(AUTHORIZATION, "Basic eA==")]),
            told(&local(None, rule), TOKEN_PATH, &[])
        );
    }
}

#[test]
fn a_refusal_says_how_to_administer() {
    let refusal = |key, rule| local(key, rule).no_administrator();
    let refusals = [refusal(Some("secret"), AdminRule::Local), refusal(None, AdminRule::Key)];
    let told = refusals.each_ref().map(Failure::message);
    let expected = [
        "this needs the admin key",
        "no one may administer this server, because no admin key is set",
    ];
    assert_eq!(told, expected);
    for refusal in &refusals {
        assert_eq!(refusal.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(refusal.code(), "unauthorized");
    }
}

#[test]
fn without_a_key_only_this_machine_administers() {
    let config = ServerConfig::default();
    let open = Entrance::local("192.0.2.1:80".parse().unwrap(), &config, None);
    assert!(!open.everybody_administers());
    assert!(local(None, AdminRule::Local).everybody_administers());
}

#[test]
fn forwarded_requests_are_refused_in_local_mode() {
    let forwarded = HeaderName::from_static("x-forwarded-for");
    let entrance = local(None, AdminRule::Local);
    for path in ["/", "/livez", "/mcp"] {
        let answer = told(&entrance, path, &[(forwarded.clone(), "192.0.2.7")]);
        assert_eq!(answer, "403 forwarded_request", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_credentials_has_few_open_paths() {
    let folder = tempfile::tempdir().unwrap();
    let key = "k".repeat(32);
    let text = "[server]\nhosts = [\"wp.example.com\"]\norigins = [\"https://app.example.com\"]\n";
    let config = Config::parse("waypost.toml", text).unwrap();
    let assembled = assembled_with(folder.path(), config, Some(key.as_str())).await;
    let entrance = &assembled.server.entrance;
    for path in OPEN_PATHS {
        assert_eq!(told(entrance, path, &[]), "stranger", "{path}");
        for near in [format!("{path}/"), format!("{path}x"), format!("/x{path}")] {
            assert_eq!(told(entrance, &near, &[]), "401 unauthorized", "{near}");
        }
    }
    for path in ["/", "/?a=b"] {
        assert_eq!(told(entrance, path, &[]), "stranger", "{path}");
    }
    assert_eq!(told(entrance, "/", &[(AUTHORIZATION, "Bearer wp_x")]), "401 unauthorized");
    for path in [
        "//",
        "/mcp",
        "/rpc",
        "/metrics",
        "/openapi.json",
        "//livez",
        "/%6civez",
        "/livez/../metrics",
        "/LIVEZ",
        "http://wp.example.com/metrics",
        "/readyz?verbose",
        "/readyz?a&verbose=1",
        "/readyz?%76erbose",
    ] {
        assert_eq!(told(entrance, path, &[]), "401 unauthorized", "{path}");
        assert_eq!(told(entrance, path, &[(AUTHORIZATION, "Bearer wp_x")]), "401 unauthorized");
    }
    let own = entrance.beside("127.0.0.1:8420".parse().unwrap());
    assert_eq!(told(&own, HEALTH_PATH, &[]), "stranger");
    assert_eq!(told(&own, "/livez", &[]), "401 unauthorized");
    let bearer = format!("Bearer {key}");
    for (path, answer) in [("/mcp", "administers"), ("/livez", "administers")] {
        assert_eq!(told(entrance, path, &[(AUTHORIZATION, bearer.as_str())]), answer, "{path}");
    }
    let wrong = [(AUTHORIZATION, "Bearer wrong")];
    assert_eq!(told(entrance, "/livez", &wrong), "401 unauthorized", "nobody falls back to less");
    assert_eq!(told(entrance, TOKEN_PATH, &wrong), "stranger", "its own concern");
    let page = [(ORIGIN, "https://app.example.com")];
    assert_eq!(told(entrance, "/livez", &page), "stranger");
    assembled.stopper().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_credential_is_400_and_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let key = "k".repeat(32);
    let text = "[server]\npublic_url = \"https://wp.example.com\"\n";
    let config = Config::parse("waypost.toml", text).unwrap();
    let assembled = assembled_with(folder.path(), config, Some(key.as_str())).await;
    let entrance = &assembled.server.entrance;
    for malformed in ["Bearer a\tb", "Bearer", "Basic %", "a"] {
        for _ in 0..FAILURES_MAX {
            let answer = told(entrance, "/mcp", &[(AUTHORIZATION, malformed)]);
            assert_eq!(answer, "400 bad_credential", "{malformed}");
        }
    }
    let wrong = [(AUTHORIZATION, "Bearer wrong")];
    for _ in 0..FAILURES_MAX {
        assert_eq!(told(entrance, "/mcp", &wrong), "401 unauthorized");
    }
    assert_eq!(told(entrance, "/mcp", &wrong), "429 too_many_failures", "wrong ones are counted");
    assembled.stopper().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_says_what_a_client_can_do() {
    let folder = tempfile::tempdir().unwrap();
    let key = "k".repeat(32);
    let text = "[server]\npublic_url = \"https://wp.example.com/x\"\n";
    let config = Config::parse("waypost.toml", text).unwrap();
    let assembled = assembled_with(folder.path(), config, Some(key.as_str())).await;
    let entrance = &assembled.server.entrance;
    let metadata = "https://wp.example.com/x/.well-known/oauth-protected-resource/mcp";
    let of_mcp = format!("resource_metadata=\"{metadata}\", scope=\"read use\"");
    for (path, sent, challenge) in [
        ("/api/v1/runs", false, "Bearer realm=\"waypost\"".to_owned()),
        ("/api/v1/runs", true, "Bearer realm=\"waypost\", error=\"invalid_token\"".to_owned()),
        ("/mcp", false, format!("Bearer realm=\"waypost\", {of_mcp}")),
        ("/mcp", true, format!("Bearer realm=\"waypost\", {of_mcp}, error=\"invalid_token\"")),
    ] {
        let mut given = headers(&[]);
        if sent {
            given.append(AUTHORIZATION, HeaderValue::from_static("Bearer wrong"));
        }
        let refused = admitted(entrance, path, &given).unwrap_err();
        let response = refused.render(edge::problem::Shape::Problem, "0".repeat(32));
        let told: Vec<_> = response.headers().get_all(WWW_AUTHENTICATE).iter().collect();
        assert_eq!(told, [challenge.as_str()], "{path}");
    }
    let reads = Scopes::from_iter([Scope::Read]);
    let answers = Scopes::from_iter([Scope::Answer]);
    for (has, scope) in [
        (None, "use"),
        (Some(Scopes::default()), "use"),
        (Some(reads), "read use"),
        // What the credential has is not lost by who asks for just this.
        (Some(answers), "use answer"),
    ] {
        let step_up = entrance.step_up(Scope::Use, has).unwrap();
        let expected = format!(
            "Bearer error=\"insufficient_scope\", scope=\"{scope}\", \
             resource_metadata=\"{metadata}\""
        );
        assert_eq!(step_up, expected.as_str());
    }
    assembled.stopper().stop().await;
}
