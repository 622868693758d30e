//! Keys that sign tokens in tests, and tokens.

use super::NOW;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use kernel::values::ids::Millis;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

/// An RSA key of 2048 bits in PKCS #8, made by `openssl genpkey` for these tests alone.
const RSA: &str = include_str!("rsa_2048.pk8.b64");

/// A key that signs.
pub(super) enum Signer {
    Ed25519(Ed25519KeyPair),
    /// In PKCS #8: it signs in two forms.
    P256(Vec<u8>),
    Rsa(RsaKeyPair),
}

impl Signer {
    pub(super) fn ed25519() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
    }

    pub(super) fn p256() -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        Self::P256(made.unwrap().as_ref().to_vec())
    }

    pub(super) fn rsa() -> Self {
        let text: String = RSA.split_ascii_whitespace().collect();
        Self::Rsa(RsaKeyPair::from_pkcs8(&STANDARD.decode(text).unwrap()).unwrap())
    }

    /// Its public half, as an issuer lists it.
    pub(super) fn listed(&self, id: &str) -> Value {
        match self {
            Self::Ed25519(key) => {
                let x = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": x})
            }
            Self::P256(key) => {
                let random = SystemRandom::new();
                let form = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let key = EcdsaKeyPair::from_pkcs8(form, key, &random).unwrap();
                let point = key.public_key().as_ref().to_vec();
                let x = &point[1..33];
                let y = &point[33..65];
                let x = URL_SAFE_NO_PAD.encode(x);
                let y = URL_SAFE_NO_PAD.encode(y);
                json!({"kty": "EC", "crv": "P-256", "kid": id, "x": x, "y": y})
            }
            Self::Rsa(key) => {
                let RsaPublicKeyComponents::<Vec<u8>> { n, e } = key.public().into();
                let n = URL_SAFE_NO_PAD.encode(n);
                let e = URL_SAFE_NO_PAD.encode(e);
                json!({"kty": "RSA", "kid": id, "n": n, "e": e})
            }
        }
    }

    /// The signature of a message by an algorithm of this name.
    pub(super) fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            Self::P256(key) => {
                let form = match algorithm {
                    "DER" => &ECDSA_P256_SHA256_ASN1_SIGNING,
                    _ => &ECDSA_P256_SHA256_FIXED_SIGNING,
                };
                let key = EcdsaKeyPair::from_pkcs8(form, key, &random).unwrap();
                key.sign(&random, message).unwrap().as_ref().to_vec()
            }
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                match algorithm {
                    "PS256" => key.sign(&RSA_PSS_SHA256, &random, message, &mut signature),
                    _ => key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature),
                }
                .unwrap();
                signature
            }
        }
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => "EdDSA",
            Self::P256(_) => "ES256",
            Self::Rsa(_) => "RS256",
        }
    }

    /// A token of this key, which is listed under this id, with these claims.
    pub(super) fn token(&self, id: &str, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm(), "typ": "at+jwt", "kid": id});
        self.token_with(&header, claims)
    }

    /// The same with this header.
    pub(super) fn token_with(&self, header: &Value, claims: &Value) -> String {
        let signed = unsigned(header, claims);
        let algorithm = header["alg"].as_str().unwrap_or_default();
        let signature = URL_SAFE_NO_PAD.encode(self.sign(algorithm, signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// The first two parts of a token.
pub(super) fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// The claims of a good token, issued at this moment for an hour.
pub(super) fn claims_at(issuer: &str, now: Millis) -> Value {
    let issued = now.0 / 1_000;
    json!({
        "iss": issuer,
        "sub": "ann",
        "aud": "waypost",
        "iat": issued,
        "exp": issued + 3_600,
        "scope": "openid read use",
        "roles": ["staff"],
    })
}

/// The same, issued when every test begins.
pub(super) fn claims(issuer: &str) -> Value {
    claims_at(issuer, NOW)
}

/// The claims with another value of one of them; null takes it out.
pub(super) fn with(mut claims: Value, name: &str, value: Value) -> Value {
    match value {
        Value::Null => {
            claims.as_object_mut().unwrap().remove(name);
        }
        value => claims[name] = value,
    }
    claims
}
