//! An issuer of access tokens: a process that lists its key, and tokens that are signed here with
//! RS256.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};

use ::axum::routing::get;
use ::axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Result;
use crate::child;

/// The key of the tests of tokens: it signs nothing that counts.
const KEY: &str = include_str!("../../../crates/identity/src/tests/rsa_2048.pk8.b64");
const KEY_ID: &str = "bench";
/// What the tokens are for.
pub const AUDIENCE: &str = "bench";
/// The role of their subjects at the issuer.
pub const ROLE: &str = "staff";
const LASTS_S: u64 = 3_600;

/// The child's side: lists the key until the parent is gone.
pub fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(accept())
}

async fn accept() -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let url = url(address);
    let about = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
    let keys = json!({"keys": [listed(&key()?)]});
    child::announce(address)?;
    let router = Router::new()
        .route("/.well-known/openid-configuration", get(move || async move { Json(about) }))
        .route("/keys", get(move || async move { Json(keys) }));
    ::axum::serve(listener, router).await?;
    Ok(())
}

/// As its tokens name it.
pub fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn key() -> Result<RsaKeyPair> {
    let text: String = KEY.split_ascii_whitespace().collect();
    let key = RsaKeyPair::from_pkcs8(&STANDARD.decode(text)?);
    Ok(key.map_err(|why| format!("the key of the issuer cannot be used: {why}"))?)
}

/// The public half of the key.
fn listed(key: &RsaKeyPair) -> Value {
    let RsaPublicKeyComponents::<Vec<u8>> { n, e } = key.public().into();
    let n = URL_SAFE_NO_PAD.encode(n);
    let e = URL_SAFE_NO_PAD.encode(e);
    json!({"kty": "RSA", "kid": KEY_ID, "n": n, "e": e})
}

/// The first part of a token that names this key.
pub fn header(key_id: &str) -> String {
    part(&json!({"alg": "RS256", "typ": "at+jwt", "kid": key_id}))
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// Signs tokens of an issuer.
pub struct Signer {
    key: RsaKeyPair,
    url: String,
    random: SystemRandom,
}

impl Signer {
    /// Those of the issuer at this address.
    pub fn new(address: SocketAddr) -> Result<Self> {
        Ok(Self { key: key()?, url: url(address), random: SystemRandom::new() })
    }

    /// A token of one subject as a header line. Each number makes another token.
    pub fn token(&self, number: usize) -> Result<String> {
        let issued = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let claims = json!({
            "iss": self.url, "sub": "ann", "aud": AUDIENCE, "iat": issued,
            "exp": issued + LASTS_S, "scope": "read use", "roles": [ROLE],
            "jti": number.to_string(),
        });
        let signed = format!("{}.{}", header(KEY_ID), part(&claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let done =
            self.key.sign(&RSA_PKCS1_SHA256, &self.random, signed.as_bytes(), &mut signature);
        done.map_err(|_| "the key of the issuer does not sign")?;
        let signature = URL_SAFE_NO_PAD.encode(signature);
        Ok(format!("authorization: Bearer {signed}.{signature}\r\n"))
    }
}
