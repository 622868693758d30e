//! Who gives tokens for a server, and who is not believed.

use super::super::challenge::Challenge;
use super::super::discovery::{Discovery, discover};
use super::super::error::{OauthError, OauthErrorKind};
use super::super::web::{Ground, Web};
use super::site::{Reply, Site};
use super::stage::{ISSUER, RESOURCE, Scene, metadata};
use reqwest::Url;
use serde_json::{Value, json};

async fn found(scene: &Scene, challenge: Challenge) -> Result<Option<Discovery>, OauthError> {
    let web = Web::new(&scene.parts());
    let server = Url::parse(&format!("{}/mcp", scene.site.url)).unwrap();
    discover(&web, &server, &challenge, None).await
}

fn silent() -> Challenge {
    Challenge::unknown("127.0.0.1".parse().ok())
}

fn pointing(to: &str) -> Challenge {
    Challenge { resource_metadata: Some(to.to_owned()), is_bearer: true, ..silent() }
}

#[tokio::test]
async fn metadata_named_by_the_server_is_read_first() {
    let scene = Scene::new().await;
    let elsewhere = json!({"resource": "{}", "authorization_servers": ["{}"]});
    scene.document("/custom.json", |document| *document = elsewhere);
    let found = found(&scene, pointing(&format!("{}/custom.json", scene.site.url))).await;
    let found = found.unwrap().unwrap();
    assert_eq!((found.resource, found.scopes), (scene.site.url.clone(), None));
    assert_eq!(found.ground, Ground::Private);
    let asked = ["GET /custom.json".to_owned(), format!("GET {ISSUER}")];
    assert_eq!(scene.site.lines(), asked);
}

#[tokio::test]
async fn without_a_pointer_well_known_metadata_urls_are_tried() {
    for at_root in [false, true] {
        let scene = Scene::new().await;
        if at_root {
            let root = RESOURCE.strip_suffix("/mcp").unwrap();
            let document = json!({"resource": "{}", "authorization_servers": ["{}"]});
            scene.rule(|rules| drop(rules.documents.remove(RESOURCE)));
            scene.document(root, |place| *place = document);
        }
        // Nobody answers there.
        let challenge = pointing("http://127.0.0.1:1/resource");
        for challenge in [silent(), challenge] {
            assert!(found(&scene, challenge).await.unwrap().is_some());
        }
        assert_eq!(scene.site.lines()[0], format!("GET {RESOURCE}"));
        assert_eq!(scene.site.asked("/.well-known/oauth-p").len(), if at_root { 4 } else { 2 });
    }
}

#[tokio::test]
async fn metadata_of_another_resource_is_refused() {
    let scene = Scene::new().await;
    for resource in [json!("https://evil.test/mcp"), json!("{}/other"), Value::Null] {
        scene.document(RESOURCE, |document| document["resource"] = resource);
        let trouble = found(&scene, silent()).await.unwrap_err();
        assert_eq!(trouble.kind, OauthErrorKind::Refused);
        assert!(trouble.why.contains("not this server"), "{trouble}");
    }
    assert!(scene.site.asked(ISSUER).is_empty());
}

#[tokio::test]
async fn issuer_metadata_urls_are_tried_in_order_and_must_match() {
    let scene = Scene::new().await;
    scene.document(RESOURCE, |document| {
        document["authorization_servers"] = json!(["{}/tenant", "{}/other"]);
    });
    let trouble = found(&scene, silent()).await.unwrap_err();
    assert!(trouble.why.contains("does not describe itself"), "{trouble}");
    assert_eq!(
        scene.site.lines()[1..],
        [
            "GET /.well-known/oauth-authorization-server/tenant",
            "GET /.well-known/openid-configuration/tenant",
            "GET /tenant/.well-known/openid-configuration"
        ]
    );
    scene.document("/tenant/.well-known/openid-configuration", |document| {
        *document = metadata();
    });
    let trouble = found(&scene, silent()).await.unwrap_err();
    assert!(trouble.why.contains("which is another"), "{trouble}");
    // What a wrong one says is not made up for by a right one after it.
    scene.document(&format!("{ISSUER}/tenant"), |document| {
        *document = metadata();
        document["issuer"] = json!("https://evil.test");
    });
    scene.document("/tenant/.well-known/openid-configuration", |document| {
        document["issuer"] = json!("{}/tenant");
    });
    assert!(found(&scene, silent()).await.is_err());
    scene.rule(|rules| drop(rules.documents.remove(&format!("{ISSUER}/tenant"))));
    let issuer = found(&scene, silent()).await.unwrap().unwrap().issuer;
    assert_eq!(issuer.name, format!("{}/tenant", scene.site.url));
}

#[tokio::test]
async fn of_several_issuers_the_known_one_is_preferred() {
    let scene = Scene::new().await;
    scene.document(RESOURCE, |document| {
        document["authorization_servers"] = json!(["https://first.test", "{}"]);
    });
    let web = Web::new(&scene.parts());
    let server = Url::parse(&format!("{}/mcp", scene.site.url)).unwrap();
    let known = Some(scene.site.url.as_str());
    let found = discover(&web, &server, &silent(), known).await.unwrap().unwrap();
    assert_eq!(found.issuer.name, scene.site.url);
}

#[tokio::test]
async fn a_2025_03_26_server_is_its_own_issuer() {
    let scene = Scene::new().await;
    scene.rule(|rules| drop(rules.documents.remove(RESOURCE)));
    scene.document(ISSUER, |document| document["token_endpoint"] = json!("{}/oauth/token"));
    let at_root = found(&scene, silent()).await.unwrap().unwrap();
    assert_eq!(at_root.resource, format!("{}/mcp", scene.site.url));
    assert_eq!(at_root.issuer.token, format!("{}/oauth/token", scene.site.url));

    scene.rule(|rules| rules.documents.clear());
    let challenge = Challenge { is_bearer: true, ..silent() };
    let assumed = found(&scene, challenge).await.unwrap().unwrap().issuer;
    assert_eq!(assumed.authorization.unwrap(), format!("{}/authorize", scene.site.url));
    // One that says nothing of tokens may want a key.
    assert_eq!(found(&scene, silent()).await, Ok(None));
}

#[tokio::test]
async fn metadata_documents_are_bounded_and_not_redirected() {
    let other = Site::start(|_, _| Reply::json(200, &json!({"from": "elsewhere"}))).await;
    let elsewhere = format!("{}/document", other.url);
    let site = Site::start(move |_, asked| match asked.path() {
        "/here" => Reply::status(302).header("location", "/there"),
        "/there" => Reply::json(200, &json!({"is": "there"})),
        "/elsewhere" => Reply::status(302).header("location", elsewhere.clone()),
        "/round" => Reply::status(307).header("location", "/round"),
        "/large" => Reply::json(200, &json!({"text": "x".repeat(300_000)})),
        "/page" => Reply { body: "<html>".to_owned(), ..Reply::status(200) },
        "/list" => Reply::json(200, &json!(["no", "object"])),
        "/broken" => Reply::status(503),
        _ => Reply::status(404),
    })
    .await;
    let scene = Scene::new().await;
    let web = Web::new(&scene.parts());
    let read = async |path: &str| {
        let url = Url::parse(&format!("{}{path}", site.url)).unwrap();
        web.document(Ground::Private, &url).await
    };
    assert_eq!(read("/here").await, Ok(Some(json!({"is": "there"}))));
    for path in ["/elsewhere", "/round", "/page", "/list", "/nothing"] {
        assert_eq!(read(path).await, Ok(None), "{path}");
    }
    for path in ["/large", "/broken"] {
        assert_eq!(read(path).await.unwrap_err().kind, OauthErrorKind::Away, "{path}");
    }
    assert!(other.lines().is_empty());
}

#[tokio::test]
async fn a_public_server_cannot_name_private_addresses() {
    let scene = Scene::new().await;
    let web = Web::new(&scene.parts());
    let here = Url::parse(&format!("{}{ISSUER}", scene.site.url)).unwrap();
    let trouble = web.document(Ground::Public, &here).await.unwrap_err();
    assert_eq!(trouble.kind, OauthErrorKind::Refused);
    assert!(trouble.why.contains("not a public address"), "{trouble}");
    assert!(scene.site.lines().is_empty());

    let ground = |server: &str, from: Option<&str>| {
        let challenge = Challenge::unknown(from.map(|from| from.parse().unwrap()));
        web.ground(&Url::parse(server).unwrap(), &challenge)
    };
    assert_eq!(ground("https://a.test/mcp", Some("93.184.216.34")), Ground::Public);
    assert_eq!(ground("https://a.test/mcp", None), Ground::Public);
    assert_eq!(ground("https://a.test/mcp", Some("10.0.0.7")), Ground::Private);
    assert_eq!(ground("https://a.test/mcp", Some("::ffff:127.0.0.1")), Ground::Private);
    assert_eq!(ground("http://localhost/mcp", None), Ground::Private);
}
