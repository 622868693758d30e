//! Who we are to authorization servers, and what is asked for.

use super::site::{Reply, Site};
use super::stage::{ISSUER, Page, RESOURCE, Scene, metadata, upstream};
use crate::UpstreamState;
use crate::config::{Grant, OauthConfig, Secret};
use crate::oauth::LoginPlaces;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::ready;
use kernel::contracts::{Vault, VaultCondition, VaultEntry, VaultFuture, VaultLease};
use kernel::values::fault::Fault;
use serde_json::json;
use std::sync::Arc;

fn configured() -> OauthConfig {
    OauthConfig {
        client_id: Some("known".to_owned()),
        client_secret: Some("hush".into()),
        ..OauthConfig::default()
    }
}

#[tokio::test]
async fn a_configured_client_is_preferred() {
    let mut scene = Scene::new().await;
    scene.oauth = configured();
    scene.document(ISSUER, |document| document["registration_endpoint"] = json!(null));
    let (remote, page) = scene.wanting().await;
    assert_eq!(page.field("client_id"), Some("known"));
    remote.finish_login(page.back()).await.unwrap();
    let asked = &scene.site.asked("/token")[0];
    let basic = format!("Basic {}", STANDARD.encode("known:hush"));
    assert_eq!(asked.headers["authorization"], basic);
    assert!(!asked.form().contains_key("client_secret"));
}

#[tokio::test]
async fn a_client_id_document_is_preferred_to_registration() {
    let mut scene = Scene::new().await;
    let ours = "https://us.test/oauth/client.json".to_owned();
    scene.places =
        scene.places.map(|places| LoginPlaces { client_metadata: Some(ours.clone()), ..places });
    scene.document(ISSUER, |document| {
        document["client_id_metadata_document_supported"] = json!(true);
    });
    let (remote, page) = scene.wanting().await;
    assert_eq!(page.field("client_id"), Some(ours.as_str()));
    remote.finish_login(page.back()).await.unwrap();
    assert_eq!(scene.site.asked("/token")[0].form()["client_id"], ours);
    assert!(scene.site.asked("/register").is_empty());
}

#[tokio::test]
async fn a_registered_client_uses_its_registered_auth_method() {
    let scene = Scene::new().await;
    scene.document(ISSUER, |document| {
        document["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    });
    scene.rule(|rules| rules.registers = json!({"client_id": "c", "client_secret": "s-e-c"}));
    let (remote, page) = scene.wanting().await;
    remote.finish_login(page.back()).await.unwrap();
    let registered = scene.site.asked("/register")[0].json();
    assert_eq!(registered["token_endpoint_auth_method"], "client_secret_post");
    let asked = &scene.site.asked("/token")[0];
    assert_eq!(asked.form()["client_secret"], "s-e-c");
    assert!(!asked.headers.contains_key("authorization"));
}

#[tokio::test]
async fn without_registration_the_error_has_a_hint() {
    let scene = Scene::new().await;
    scene.document(ISSUER, |document| document["registration_endpoint"] = json!(null));
    let remote = scene.start();
    let fault = upstream(&remote).check().await.unwrap_err();
    assert_eq!(fault.name, "UpstreamUnauthorized");
    assert!(fault.hint.unwrap().contains("`client_id`"));
}

#[tokio::test]
async fn clients_are_not_shared_between_issuers() {
    let scene = Scene::new().await;
    let remote = scene.ready().await;
    let far = upstream(&remote);
    // The server has moved to another issuer, which takes nothing of the first.
    let second = Site::start(|root, asked| match asked.line.as_str() {
        "GET /.well-known/oauth-authorization-server" => Reply::json(
            200,
            &json!({"issuer": root, "authorization_endpoint": format!("{root}/authorize"),
                "token_endpoint": format!("{root}/token"),
                "registration_endpoint": format!("{root}/register"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"]}),
        ),
        "POST /register" => Reply::json(201, &json!({"client_id": "second"})),
        "POST /token" => Reply::json(200, &json!({"access_token": "other"})),
        _ => Reply::status(404),
    })
    .await;
    scene.document(RESOURCE, |document| {
        document["authorization_servers"] = json!([second.url]);
    });
    scene.rule(|rules| {
        rules.good = [("other".to_owned(), String::new())].into();
        rules.refresh = None;
    });
    assert_eq!(far.check().await.unwrap_err().name, "UpstreamLogin");
    let page = Page::of(far);
    assert_eq!(page.place, format!("{}/authorize", second.url));
    assert_eq!(page.field("client_id"), Some("second"));
    remote.finish_login(page.back()).await.unwrap();
    assert_eq!(far.check().await.unwrap().state, UpstreamState::Ready);
    for asked in second.asked("/") {
        let all = format!("{asked:?}");
        let leaked = ["registered", "refresh-1", "token-1"].iter().any(|old| all.contains(old));
        assert!(!leaked, "{all}");
    }
}

#[tokio::test]
async fn a_configured_secret_belongs_to_one_issuer() {
    let mut scene = Scene::new().await;
    scene.oauth = configured();
    let remote = scene.ready().await;
    let far = upstream(&remote);
    let evil = Site::start(|root, asked| match asked.line.as_str() {
        "GET /.well-known/oauth-authorization-server" => Reply::json(
            200,
            &json!({"issuer": root, "authorization_endpoint": format!("{root}/authorize"),
                "token_endpoint": format!("{root}/token")}),
        ),
        _ => Reply::status(404),
    })
    .await;
    scene.document(RESOURCE, |document| document["authorization_servers"] = json!([evil.url]));
    scene.rule(|rules| (rules.good, rules.refresh) = (Default::default(), None));
    let fault = far.check().await.unwrap_err();
    assert_eq!((fault.name.as_str(), far.login_url()), ("UpstreamUnauthorized", None));
    assert!(fault.message.contains("the configured client is of"), "{fault}");
    // The operator says that it is right.
    far.log_out().await.unwrap();
    assert_eq!(far.check().await.unwrap_err().name, "UpstreamLogin");
    assert_eq!(Page::of(far).place, format!("{}/authorize", evil.url));
}

/// A vault that does not say where the configured client was first shown.
struct Mute(Arc<dyn Vault>);

impl Vault for Mute {
    fn read<'a>(&'a self, key: &'a str) -> VaultFuture<'a, Option<VaultEntry>> {
        match key {
            "issuer-far" => Box::pin(ready(Err(Fault::new("Mute", "it cannot be read").into()))),
            _ => self.0.read(key),
        }
    }

    fn write<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        expected: VaultCondition,
    ) -> VaultFuture<'a, u64> {
        self.0.write(key, value, expected)
    }

    fn remove<'a>(&'a self, key: &'a str) -> VaultFuture<'a, ()> {
        self.0.remove(key)
    }

    fn remove_all<'a>(&'a self, under: &'a str) -> VaultFuture<'a, ()> {
        self.0.remove_all(under)
    }

    fn hold<'a>(&'a self, key: &'a str, ms: u64) -> VaultFuture<'a, Option<VaultLease>> {
        self.0.hold(key, ms)
    }
}

#[tokio::test]
async fn a_configured_secret_is_not_sent_before_its_issuer_is_known() {
    let mut scene = Scene::new().await;
    scene.vault = Arc::new(Mute(scene.vault.clone()));
    scene.oauth = OauthConfig { grant: Grant::Ourselves, ..configured() };
    let remote = scene.start();
    let fault = upstream(&remote).check().await.unwrap_err();
    assert!(fault.message.contains("it cannot be read"), "{fault}");
    assert!(scene.site.asked("/token").is_empty());
}

#[tokio::test]
async fn changing_issuers_leave_only_one_stored_client() {
    let scene = Scene::new().await;
    let remote = scene.start();
    for name in ["one", "two", "one"] {
        scene.document(&format!("{ISSUER}/{name}"), |document| {
            *document = metadata();
            document["issuer"] = json!(format!("{{}}/{name}"));
        });
        scene.document(RESOURCE, |document| {
            document["authorization_servers"] = json!([format!("{{}}/{name}")]);
        });
        let fault = upstream(&remote).check().await.unwrap_err();
        assert!(fault.message.contains(&format!("/{name}`")), "{fault}");
    }
    assert_eq!(scene.site.asked("/register").len(), 3, "the first one is not kept");
}

#[tokio::test]
async fn client_credentials_need_no_person() {
    let mut scene = Scene::new().await;
    scene.oauth = OauthConfig { grant: Grant::Ourselves, ..configured() };
    let remote = scene.start();
    let far = upstream(&remote);
    assert_eq!(far.check().await.unwrap().state, UpstreamState::Ready);
    let asked = &scene.site.asked("/token")[0];
    let form = asked.form();
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!((form["scope"].as_str(), form.contains_key("code")), ("read", false));
    assert_eq!(form["resource"], format!("{}/mcp", scene.site.url));
    // Refused later, another is asked for.
    scene.rule(|rules| rules.good.clear());
    assert!(far.check().await.is_ok());
    assert_eq!(scene.site.asked("/token").len(), 2);
}

#[tokio::test]
async fn a_client_credentials_token_refused_at_once_is_not_requested_in_a_loop() {
    let mut scene = Scene::new().await;
    scene.oauth = OauthConfig { grant: Grant::Ourselves, ..configured() };
    scene.rule(|rules| rules.token = Some((200, json!({"access_token": "not good"}))));
    let remote = scene.start();
    let fault = upstream(&remote).check().await.unwrap_err();
    assert_eq!(fault.name, "UpstreamUnauthorized");
    assert!(fault.message.contains("a moment ago is refused"), "{fault}");
    assert_eq!(scene.site.asked("/token").len(), 1);
    scene.oauth.client_secret = None;
    let remote = scene.start();
    assert!(upstream(&remote).check().await.is_err());
}

/// What is asked for in a login.
async fn asked(scene: &Scene) -> Option<String> {
    let (_remote, page) = scene.wanting().await;
    page.field("scope").map(str::to_owned)
}

#[tokio::test]
async fn scopes_come_from_the_operator_or_the_server() {
    let mut scene = Scene::new().await;
    assert_eq!(asked(&scene).await.as_deref(), Some("read"));
    scene.rule(|rules| rules.challenge.push_str(", scope=\"write\""));
    assert_eq!(asked(&scene).await.as_deref(), Some("write"));
    scene.document(ISSUER, |document| {
        document["scopes_supported"] = json!(["write", "offline_access"]);
    });
    let (_remote, page) = scene.wanting().await;
    assert_eq!(page.field("scope"), Some("write offline_access"));
    assert_eq!(page.field("prompt"), Some("consent"));
    scene.oauth.scopes = Some(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(asked(&scene).await.as_deref(), Some("a b"));
    scene.oauth.scopes = Some(Vec::new());
    assert_eq!(asked(&scene).await, None);
}

#[tokio::test]
async fn unnamed_scopes_are_not_requested() {
    let scene = Scene::new().await;
    scene.document(RESOURCE, |document| document["scopes_supported"] = json!(null));
    scene.document(ISSUER, |document| document["scopes_supported"] = json!(["offline_access"]));
    assert_eq!(asked(&scene).await, None);
}
