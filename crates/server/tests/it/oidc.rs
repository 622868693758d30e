//! Access tokens of an issuer at the endpoints: who calls is what the token says, and clients of
//! `/mcp` learn where to log in.

use crate::api_keys::{asking, get, send};
use crate::house::{House, read, refused, request};
use axum::body::Body;
use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::system::clock::SystemClock;
use kernel::contracts::Clock;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// An issuer on this machine.
struct Issuer {
    url: String,
    key: Ed25519KeyPair,
}

impl Issuer {
    async fn open() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let about = json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string();
        let x = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
        let listed = json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": x});
        let keys = json!({"keys": [listed]}).to_string();
        tokio::spawn(serve(listener, about, keys));
        Self { url, key }
    }

    /// A server that takes its tokens.
    async fn house(&self) -> House {
        let url = &self.url;
        asking(&format!(
            "public_url = \"https://wp.example.com\"\n[auth.issuers.corp]\nurl = \"{url}\"\n\
             audience = \"waypost\"\nrealms = [\"default\"]\nroles = {{ staff = [\"member\"] }}\n"
        ))
        .await
    }

    /// A token with these claims beside those that all have.
    fn token(&self, more: &[(&str, Value)]) -> String {
        let now = SystemClock.now().0 / 1_000;
        let mut claims = json!({
            "iss": self.url, "sub": "ann", "aud": "waypost", "iat": now, "exp": now + 600,
            "scope": "read use", "roles": ["staff"],
        });
        for (name, value) in more {
            claims[*name] = value.clone();
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "a"});
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// Answers each connection once.
async fn serve(listener: TcpListener, about: String, keys: String) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { break };
            head.push(byte);
        }
        let body = if head.starts_with(b"GET /keys ") { &keys } else { &about };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        drop(stream.write_all(answer.as_bytes()).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_with_a_token_of_an_issuer_is_its_subject() {
    let issuer = Issuer::open().await;
    let house = issuer.house().await;
    let who = get(&house, &issuer.token(&[]), "/api/v1/whoami").await;
    assert_eq!(who.status, 200, "{who:?}");
    assert_eq!(who.body["subject"], "corp:ann");
    assert_eq!(who.body["roles"], json!(["member"]));
    assert_eq!(who.body["scopes"], json!(["read", "use"]));
    assert_eq!(who.body["realms"], json!({"default": ["member"]}));
    let acting = issuer.token(&[("act", json!({"sub": "bot"}))]);
    assert_eq!(get(&house, &acting, "/api/v1/whoami").await.body["actor"], "corp:bot");
    // A member does not administer, whatever its issuer calls it.
    let named_so = issuer.token(&[("roles", json!(["staff", "admin"]))]);
    assert_eq!(get(&house, &named_so, "/api/v1/keys").await.status, 403);
    let expired = issuer.token(&[("iat", json!(1)), ("exp", json!(2))]);
    let refusal = get(&house, &expired, "/api/v1/whoami").await;
    assert_eq!(refusal.refusal(), refused(401, "unauthorized", &[]));
    assert!(refusal.header("www-authenticate").contains("error=\"invalid_token\""));
    let nowhere = issuer.token(&[("aud", json!("other"))]);
    assert_eq!(get(&house, &nowhere, "/livez").await.status, 401, "at every endpoint");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_mcp_is_good_at_no_other_endpoint() {
    let issuer = Issuer::open().await;
    let house = issuer.house().await;
    let token = issuer.token(&[("aud", json!("https://wp.example.com/mcp"))]);
    assert_eq!(get(&house, &token, "/api/v1/whoami").await.status, 401);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let answer = send(&house, &token, Method::POST, "/mcp", ping).await;
    assert_ne!(answer.status, 401, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_led_to_the_issuer() {
    let issuer = Issuer::open().await;
    let house = issuer.house().await;
    let metadata = house.get("/.well-known/oauth-protected-resource/mcp").await;
    assert_eq!(metadata.body["resource"], "https://wp.example.com/mcp");
    assert_eq!(metadata.body["authorization_servers"], json!([issuer.url]));
}

/// The agent card, which is no part of our REST.
async fn card_of(house: &House) -> Value {
    let request = request(Method::GET, "/.well-known/agent-card.json", Body::empty());
    read(house.open(request).await).await.body
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_card_names_issuers_whose_tokens_are_taken_there() {
    let issuer = Issuer::open().await;
    let house = issuer.house().await;
    let card = card_of(&house).await;
    let scheme = &card["securitySchemes"]["openId-corp"];
    let discovery = format!("{}/.well-known/openid-configuration", issuer.url);
    let told = &scheme["openIdConnectSecurityScheme"]["openIdConnectUrl"];
    assert_eq!((told, &scheme["openIdConnectUrl"]), (&json!(discovery), &json!(discovery)));
    assert_eq!(scheme["type"], "openIdConnect", "{card}");
    let wanted = json!({"schemes": {"openId-corp": {"list": ["read", "use"]}}});
    let requirements = card["securityRequirements"].as_array().unwrap();
    assert!(requirements.contains(&wanted), "{card}");
    // Without an audience, tokens are for `/mcp` alone.
    let settings = format!(
        "public_url = \"https://wp.example.com\"\n[auth.issuers.corp]\nurl = \"{}\"\n\
         realms = [\"default\"]\n",
        issuer.url
    );
    let for_mcp = asking(&settings).await;
    let card = card_of(&for_mcp).await;
    assert!(card["securitySchemes"]["oauth2"].is_object(), "{card}");
    assert!(card["securitySchemes"].get("openId-corp").is_none(), "{card}");
}
