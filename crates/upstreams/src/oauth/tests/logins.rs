//! A person logs in: all goes well, or something is not as it should be.

use super::super::challenge::Challenge;
use super::super::pkce;
use super::stage::{CALLBACK, ISSUER, Page, RESOURCE, Scene, metadata, upstream};
use crate::config::{Grant, Secret, UpstreamConfig, UpstreamKind};
use crate::oauth::{Account, LoginCallback, RetryDecision};
use crate::{Remote, UpstreamState};
use futures::future::join_all;
use serde_json::json;

#[tokio::test]
async fn a_login_makes_the_server_usable() {
    let scene = Scene::new().await;
    let (remote, page) = scene.wanting().await;
    let far = upstream(&remote);
    let status = far.status();
    assert_eq!((status.state, status.tools), (UpstreamState::Login, 0));
    let error = status.last_error.unwrap();
    assert!(error.message.contains(&format!("wants a login at `{}`", scene.site.url)), "{error}");
    assert!(error.hint.unwrap().contains("waypost mcp login far"));

    assert_eq!(page.place, format!("{}/authorize", scene.site.url));
    let resource = format!("{}/mcp", scene.site.url);
    for (name, value) in [
        ("tenant", "1"),
        ("response_type", "code"),
        ("client_id", "registered"),
        ("redirect_uri", CALLBACK),
        ("code_challenge_method", "S256"),
        ("resource", resource.as_str()),
        ("scope", "read"),
    ] {
        assert_eq!(page.field(name), Some(value), "{name}");
    }
    assert_eq!(page.field("prompt"), None);
    let registered = scene.site.asked("/register")[0].json();
    assert_eq!(registered["application_type"], "native");
    assert_eq!(registered["redirect_uris"], json!([CALLBACK]));

    let finished = remote.finish_login(page.back()).await.unwrap();
    assert_eq!((finished.upstream.name(), finished.code), ("far", None));
    let status = far.check().await.unwrap();
    assert_eq!((status.state, status.tools), (UpstreamState::Ready, 1));
    assert_eq!((status.last_error, far.login_url()), (None, None));
    let asked = scene.site.asked("/token")[0].form();
    assert_eq!(asked["grant_type"], "authorization_code");
    assert_eq!((asked["code"].as_str(), asked["redirect_uri"].as_str()), ("the-code", CALLBACK));
    assert_eq!(Some(asked["resource"].as_str()), page.field("resource"));
    let challenge = pkce::challenge(&asked["code_verifier"]);
    assert_eq!(Some(challenge.as_str()), page.field("code_challenge"));
    let shown: Vec<_> = scene.site.asked("/mcp").into_iter().map(|asked| asked.line).collect();
    assert!(shown.iter().all(|line| line == "POST /mcp"), "the token is in no URL: {shown:?}");
    assert_eq!(scene.site.asked("/mcp").last().unwrap().bearer(), Some("token-1"));
}

#[tokio::test]
async fn a_server_that_waits_for_a_login_is_not_polled() {
    let scene = Scene::new().await;
    let (remote, page) = scene.wanting().await;
    let asked = scene.site.lines().len();
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.site.lines().len(), asked);
    // Who looks at it gets the same page.
    assert!(upstream(&remote).check().await.is_err());
    assert_eq!(Page::of(upstream(&remote)), page);
    assert_eq!(scene.site.asked("/register").len(), 1);
}

/// How a login ends that comes back with this `iss`.
async fn finished(says_iss: bool, iss: Option<&str>) -> (Option<String>, usize) {
    let scene = Scene::new().await;
    scene.document(ISSUER, |document| {
        document["authorization_response_iss_parameter_supported"] = json!(says_iss);
    });
    let (remote, page) = scene.wanting().await;
    let iss = iss.map(|iss| iss.replace("{}", &scene.site.url));
    let finished = remote.finish_login(LoginCallback { iss, ..page.back() }).await;
    (finished.err().map(|fault| fault.name), scene.site.asked("/token").len())
}

#[tokio::test]
async fn the_code_must_come_from_the_expected_issuer() {
    let refused = || (Some("LoginWrongIssuer".to_owned()), 0);
    assert_eq!(finished(true, Some("{}")).await, (None, 1));
    assert_eq!(finished(false, Some("{}")).await, (None, 1));
    assert_eq!(finished(false, None).await, (None, 1));
    assert_eq!(finished(true, None).await, refused());
    for says_iss in [true, false] {
        assert_eq!(finished(says_iss, Some("https://evil.test")).await, refused());
        assert_eq!(finished(says_iss, Some("{}/")).await, refused());
    }
}

#[tokio::test]
async fn a_login_is_finished_once_and_only_by_its_state() {
    let scene = Scene::new().await;
    let (remote, page) = scene.wanting().await;
    for state in ["", "guessed", &page.fields["state"][1..]] {
        let guessed = LoginCallback { state: state.to_owned(), ..page.back() };
        assert_eq!(remote.finish_login(guessed).await.err().unwrap().name, "LoginNotFound");
    }
    assert!(scene.site.asked("/token").is_empty());
    let (one, other) =
        tokio::join!(remote.finish_login(page.back()), remote.finish_login(page.back()));
    assert!(one.is_ok() != other.is_ok());
    let late = remote.finish_login(page.back()).await.err().unwrap();
    assert_eq!((late.name.as_str(), scene.site.asked("/token").len()), ("LoginNotFound", 1));
}

#[tokio::test]
async fn an_expired_login_begins_again() {
    let scene = Scene::new().await;
    let (remote, page) = scene.wanting().await;
    scene.clock.set(3_600_000);
    assert_eq!(upstream(&remote).login_url(), None);
    let fault = remote.finish_login(page.back()).await.err().unwrap();
    assert_eq!((fault.name.as_str(), scene.site.asked("/token").len()), ("LoginExpired", 0));
    assert_eq!(upstream(&remote).check().await.unwrap_err().name, "UpstreamLogin");
    let next = Page::of(upstream(&remote));
    assert_ne!(next.field("state"), page.field("state"));
    remote.finish_login(next.back()).await.unwrap();
    assert!(upstream(&remote).check().await.is_ok());
}

#[tokio::test]
async fn a_user_who_is_refused_can_try_again() {
    let scene = Scene::new().await;
    let (remote, page) = scene.wanting().await;
    let denied = LoginCallback {
        code: None,
        error: Some("access_denied".to_owned()),
        error_description: Some("not today\n".to_owned()),
        ..page.back()
    };
    let fault = remote.finish_login(denied).await.err().unwrap();
    assert_eq!(fault.name, "LoginRefused");
    assert!(fault.message.ends_with("access_denied not today"), "{fault}");
    assert!(upstream(&remote).check().await.is_err());
    let next = Page::of(upstream(&remote));
    assert_ne!(next.field("state"), page.field("state"));

    scene.rule(|rules| {
        let said = json!({"error": "invalid_grant", "error_description": "`the-code`?"});
        rules.token = Some((400, said));
    });
    let fault = remote.finish_login(next.back()).await.err().unwrap();
    assert_eq!(fault.name, "LoginFailed");
    assert!(fault.message.contains("invalid_grant `***`?"), "{fault}");
}

#[tokio::test]
async fn a_login_can_finish_after_a_restart() {
    let scene = Scene::new().await;
    let (remote, page) = scene.wanting().await;
    remote.stop().await;
    drop(remote);
    let (remote, other) = scene.wanting().await;
    assert_ne!(other.field("state"), page.field("state"));
    assert_eq!(scene.site.asked("/register").len(), 1, "we are known there");
    remote.finish_login(page.back()).await.unwrap();
    assert!(upstream(&remote).check().await.is_ok());
    remote.stop().await;
    drop(remote);
    // The token outlives us, too.
    let remote = scene.start();
    assert!(upstream(&remote).check().await.is_ok());
    assert_eq!(scene.site.asked("/token").len(), 1);
}

#[tokio::test]
async fn a_login_is_for_the_server_that_it_began_at() {
    let scene = Scene::new().await;
    let (remote, page) = scene.wanting().await;
    remote.stop().await;
    let mut config = scene.config();
    if let UpstreamKind::Http { url, .. } = &mut config.kind {
        url.push_str("/moved");
    }
    let remote = Remote::start(vec![config], scene.parts());
    let fault = remote.finish_login(page.back()).await.err().unwrap();
    assert_eq!((fault.name.as_str(), scene.site.asked("/token").len()), ("LoginNotFound", 0));
    let remote = Remote::start(Vec::new(), scene.parts());
    assert!(remote.finish_login(page.back()).await.is_err());
}

#[tokio::test]
async fn a_login_can_begin_while_a_token_is_valid() {
    let scene = Scene::new().await;
    let remote = scene.ready().await;
    let far = upstream(&remote);
    let page = Page::read(&far.begin_login().await.unwrap());
    assert_eq!(Page::of(far), page);
    assert_eq!(far.status().state, UpstreamState::Ready);
    assert!(far.check().await.is_ok(), "the token is still good");
    remote.finish_login(page.back()).await.unwrap();
    far.check().await.unwrap();
    assert_eq!(scene.site.asked("/mcp").last().unwrap().bearer(), Some("token-2"));
}

#[tokio::test]
async fn a_login_can_begin_before_the_first_connection() {
    let scene = Scene::new().await;
    let parts = scene.parts();
    let account = Account::new(&scene.config(), &parts).unwrap();
    let page = Page::read(&account.begin().await.unwrap());
    assert_eq!(page.field("client_id"), Some("registered"));
    assert_eq!(scene.site.lines()[0], "GET /mcp");
}

#[tokio::test]
async fn a_user_who_logs_out_is_forgotten() {
    let scene = Scene::new().await;
    let remote = scene.ready().await;
    let far = upstream(&remote);
    let page = Page::read(&far.begin_login().await.unwrap());
    far.log_out().await.unwrap();
    let late = remote.finish_login(page.back()).await.err().unwrap();
    assert_eq!((late.name.as_str(), scene.site.asked("/token").len()), ("LoginNotFound", 1));
    let given_back: Vec<String> =
        scene.site.asked("/revoke").iter().map(|asked| asked.form()["token"].clone()).collect();
    assert_eq!(given_back, ["refresh-1", "token-1"]);
    assert_eq!(far.check().await.unwrap_err().name, "UpstreamLogin");
    assert_eq!(far.status().tools, 1, "its tools are still known");
    assert_eq!(scene.site.asked("/register").len(), 2);
}

#[tokio::test]
async fn some_upstreams_have_no_logins() {
    let mut scene = Scene::new().await;
    let begun = async |config: UpstreamConfig, scene: &Scene| {
        let remote = Remote::start(vec![config], scene.parts());
        upstream(&remote).begin_login().await.unwrap_err().name
    };
    let mut fixed = scene.config();
    if let UpstreamKind::Http { headers, .. } = &mut fixed.kind {
        headers.push(("authorization".to_owned(), Secret::new("Bearer fixed")));
    }
    assert_eq!(begun(fixed, &scene).await, "LoginNotPossible");
    let mut ourselves = scene.config();
    if let UpstreamKind::Http { oauth, .. } = &mut ourselves.kind {
        oauth.grant = Grant::Ourselves;
    }
    assert_eq!(begun(ourselves, &scene).await, "LoginNotPossible");
    scene.places = None;
    assert_eq!(begun(scene.config(), &scene).await, "LoginNotPossible");
    let remote = scene.start();
    let fault = upstream(&remote).check().await.unwrap_err();
    assert_eq!(fault.name, "UpstreamUnauthorized");
    assert!(fault.message.contains("wants a login, but there is no address"), "{fault}");
}

#[tokio::test]
async fn an_invalid_issuer_is_reported_and_nobody_is_redirected() {
    let scene = Scene::new().await;
    scene.document(RESOURCE, |document| document["resource"] = json!("https://evil.test/mcp"));
    let remote = scene.start();
    let far = upstream(&remote);
    let fault = far.check().await.unwrap_err();
    assert_eq!((fault.name.as_str(), far.login_url()), ("UpstreamUnauthorized", None));
    assert!(fault.message.contains("`https://evil.test/mcp`"), "{fault}");
    assert_eq!(far.status().state, UpstreamState::Failing);
    scene.document(RESOURCE, |document| document["resource"] = json!("{}/mcp"));
    scene.document(ISSUER, |document| document["issuer"] = json!("https://evil.test"));
    assert!(far.check().await.unwrap_err().message.contains("which is another"));
    scene.document(ISSUER, |document| {
        *document = metadata();
        document["code_challenge_methods_supported"] = json!(["plain"]);
    });
    assert!(far.check().await.unwrap_err().message.contains("S256"));
    assert!(scene.site.asked("/register").is_empty() && scene.site.asked("/auth").is_empty());
}

#[tokio::test]
async fn concurrent_refusals_discover_the_server_once() {
    let scene = Scene::new().await;
    let account = Account::new(&scene.config(), &scene.parts()).unwrap();
    let refused = async || {
        let pass = account.pass().await.unwrap();
        let challenge = Challenge::unknown("127.0.0.1".parse().ok());
        join_all((0..20).map(|_| account.challenged(&pass, challenge.clone()))).await
    };
    scene.document(ISSUER, |document| document["issuer"] = json!("https://evil.test"));
    assert!(refused().await.iter().all(Result::is_err));
    assert_eq!(scene.site.asked(ISSUER).len(), 1);
    // A later caller looks again.
    scene.rule(|rules| rules.documents.clear());
    assert!(refused().await.iter().all(|answered| *answered == Ok(RetryDecision::NotOurs)));
    assert_eq!(scene.site.asked(ISSUER).len(), 2);
}

#[tokio::test]
async fn authorization_urls_are_bounded() {
    let scene = Scene::new().await;
    scene.rule(|rules| rules.registers = json!({"client_id": "x".repeat(40_000)}));
    let remote = scene.start();
    let far = upstream(&remote);
    let fault = far.check().await.unwrap_err();
    assert_eq!((fault.name.as_str(), far.login_url()), ("UpstreamUnauthorized", None));
    assert!(fault.message.contains("more than 32768 bytes"), "{fault}");
}

#[tokio::test]
async fn callback_parameters_are_not_printed() {
    let scene = Scene::new().await;
    let (_remote, page) = scene.wanting().await;
    let printed =
        format!("{:?}", LoginCallback { iss: Some("https://as.test".into()), ..page.back() });
    assert!(printed.contains("https://as.test") && !printed.contains("the-code"), "{printed}");
    assert!(!printed.contains(page.field("state").unwrap()), "{printed}");
}

#[tokio::test]
async fn a_401_without_oauth_is_an_ordinary_refusal() {
    let scene = Scene::new().await;
    scene.rule(|rules| {
        rules.documents.clear();
        rules.challenge = "Basic realm=\"x\"".to_owned();
    });
    let remote = scene.start();
    let fault = upstream(&remote).check().await.unwrap_err();
    assert_eq!(fault.name, "UpstreamUnauthorized");
    assert!(fault.hint.unwrap().contains("headers"));
    assert_eq!(scene.site.asked("/.well-known").len(), 0);
}
