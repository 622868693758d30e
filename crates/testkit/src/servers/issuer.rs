//! An issuer of access tokens, on threads of its own: it serves its documents, hangs or lies,
//! replaces its key, says how often its keys were asked for, and signs whatever a test wants. Not a
//! line of it is the product's.

use crate::http::{Connection, Message};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What its tokens are for, unless a test says otherwise.
pub const AUDIENCE: &str = "waypost";
/// The id of its key.
pub const KEY_ID: &str = "a";
/// The id of the key that it has beside that one, for a rotation.
pub const NEXT_KEY_ID: &str = "b";

/// A client may keep a connection idle; no test takes as long as this.
const IDLE_LIMIT: Duration = Duration::from_secs(3_600);
const LIFETIME_S: u64 = 600;
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// How it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It serves its documents.
    Serves,
    /// It takes a connection and says nothing.
    Hangs,
    /// Its document says that it is another.
    Lies,
    /// Under the id of its key it lists a secret, which is the public half.
    ListsASecret,
}

/// How far it is with replacing its key by the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rotation {
    /// It lists its key.
    #[default]
    Before,
    /// It lists both.
    Both,
    /// It lists the next one.
    After,
}

/// An issuer; it ends with the process of the test.
pub struct Issuer {
    /// Its address, which is its name.
    pub url: String,
    desk: Arc<Desk>,
}

struct Desk {
    url: String,
    manner: Manner,
    key: Ed25519KeyPair,
    next: Ed25519KeyPair,
    rotation: Mutex<Rotation>,
    asked: AtomicUsize,
}

impl Issuer {
    /// Starts one with a key of its own.
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.unwrap_or_else(|error| panic!("no issuer: {error}"));
        let address = listener.local_addr();
        let address = address.unwrap_or_else(|error| panic!("no address: {error}"));
        let url = format!("http://{address}");
        let desk = Arc::new(Desk {
            url: url.clone(),
            manner,
            key: new_key(),
            next: new_key(),
            rotation: Mutex::default(),
            asked: AtomicUsize::new(0),
        });
        let serving = desk.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let desk = serving.clone();
                thread::spawn(move || desk.converse(stream));
            }
        });
        Self { url, desk }
    }

    /// How often its keys were asked for.
    pub fn asked(&self) -> usize {
        self.desk.asked.load(Ordering::SeqCst)
    }

    /// The public half of its key.
    pub fn public_key(&self) -> &[u8] {
        self.desk.key.public_key().as_ref()
    }

    /// Its key as an honest issuer lists it.
    pub fn listed(&self) -> Value {
        self.desk.listed()
    }

    /// Lists other keys from now on. What it signs with is up to who asks for a token.
    pub fn rotate(&self, rotation: Rotation) {
        *self.desk.rotation.lock().unwrap_or_else(PoisonError::into_inner) = rotation;
    }

    /// The claims of a good token of this subject, issued now.
    pub fn claims(&self, subject: &str) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        json!({
            "iss": self.url, "sub": subject, "aud": AUDIENCE, "iat": now, "exp": now + LIFETIME_S,
            "scope": "read use", "roles": ["staff"],
        })
    }

    pub fn token(&self, claims: &Value) -> String {
        self.signed(&header("EdDSA"), claims)
    }

    /// A token with these claims, signed with the next key.
    pub fn next_token(&self, claims: &Value) -> String {
        let mut header = header("EdDSA");
        header["kid"] = json!(NEXT_KEY_ID);
        signed_with(&self.desk.next, &header, claims)
    }

    /// A token with this header, signed with its key whatever the header says.
    pub fn signed(&self, header: &Value, claims: &Value) -> String {
        signed_with(&self.desk.key, header, claims)
    }
}

fn new_key() -> Ed25519KeyPair {
    let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
    let key = made.and_then(|made| {
        Ed25519KeyPair::from_pkcs8(made.as_ref()).map_err(|_| ring::error::Unspecified)
    });
    key.unwrap_or_else(|error| panic!("no key for an issuer: {error}"))
}

fn signed_with(key: &Ed25519KeyPair, header: &Value, claims: &Value) -> String {
    let message = unsigned(header, claims);
    let signature = key.sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// A key as an honest issuer lists it.
fn as_listed(id: &str, key: &Ed25519KeyPair) -> Value {
    let x = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
    json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": x})
}

/// The header of a token with this algorithm.
pub fn header(algorithm: &str) -> Value {
    json!({"alg": algorithm, "typ": "at+jwt", "kid": KEY_ID})
}

/// The first two parts of a token.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// A token that is signed with a secret.
pub fn with_secret(secret: &[u8], claims: &Value) -> String {
    let message = unsigned(&header("HS256"), claims);
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac))
}

impl Desk {
    fn converse(&self, stream: TcpStream) {
        let Ok(mut connection) = Connection::new(stream) else { return };
        while let Ok(Some(request)) = connection.read(IDLE_LIMIT) {
            let Some(answer) = self.answer(&request) else { continue };
            if connection.write(answer.as_bytes()).is_err() || request.closes {
                return;
            }
        }
    }

    /// None where it says nothing.
    fn answer(&self, request: &Message) -> Option<String> {
        let path = request.first_line.split(' ').nth(1).unwrap_or_default();
        let body = match path {
            _ if self.manner == Manner::Hangs => return None,
            DISCOVERY => self.described(),
            "/keys" => {
                self.asked.fetch_add(1, Ordering::SeqCst);
                json!({"keys": self.shown()})
            }
            _ => return Some("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()),
        };
        let body = body.to_string();
        let length = body.len();
        Some(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n\
             {body}"
        ))
    }

    fn described(&self) -> Value {
        let own = self.url.as_str();
        let issuer = if self.manner == Manner::Lies { "https://login.test" } else { own };
        json!({"issuer": issuer, "jwks_uri": format!("{own}/keys")})
    }

    fn listed(&self) -> Value {
        as_listed(KEY_ID, &self.key)
    }

    fn shown(&self) -> Vec<Value> {
        if self.manner == Manner::ListsASecret {
            let k = URL_SAFE_NO_PAD.encode(self.key.public_key().as_ref());
            return vec![json!({"kty": "oct", "kid": KEY_ID, "alg": "HS256", "k": k})];
        }
        let next = || as_listed(NEXT_KEY_ID, &self.next);
        match *self.rotation.lock().unwrap_or_else(PoisonError::into_inner) {
            Rotation::Before => vec![self.listed()],
            Rotation::Both => vec![self.listed(), next()],
            Rotation::After => vec![next()],
        }
    }
}
