//! Signatures of cards: JWS with ES256 over the card's canonical form (RFC 8785). Only keys that
//! the operator pinned count; what a signature says of its key is a hint and nothing more.

use crate::config::PinnedKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::values::canonical;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;
use wire::a2a::card::{AgentCard, AgentCardSignature};

/// The only algorithm that is taken.
const ALGORITHM: &str = "ES256";
/// How many signatures of one card are checked.
const SIGNATURES_MAX: usize = 16;

/// Whether one of these keys signed this card; else why not.
pub(super) fn verify(document: &Value, keys: &[PinnedKey]) -> Result<(), String> {
    let card: AgentCard = serde_json::from_value(document.clone())
        .map_err(|error| format!("it is no card of 1.0: {error}"))?;
    if card.signatures.is_empty() {
        return Err("it is not signed".to_owned());
    }
    let content = card.signed_content();
    // One of the SDKs leaves out everything that is empty before it signs.
    let payloads = [payload(&content), payload(&without_empty(&content))];
    let mut told = String::new();
    for signature in card.signatures.iter().take(SIGNATURES_MAX) {
        match signed(signature, keys, &payloads) {
            Ok(()) => return Ok(()),
            Err(why) => told = why,
        }
    }
    Err(told)
}

fn payload(content: &Value) -> String {
    URL_SAFE_NO_PAD.encode(canonical::text(content))
}

fn signed(
    signature: &AgentCardSignature,
    keys: &[PinnedKey],
    payloads: &[String],
) -> Result<(), String> {
    let protected = URL_SAFE_NO_PAD.decode(&signature.protected).ok();
    let header: Value = protected
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or("the header of its signature cannot be read")?;
    if header["alg"] != ALGORITHM {
        return Err(format!("it is signed with {}, and only `ES256` is taken", header["alg"]));
    }
    // What must be understood and is not makes a signature invalid (RFC 7515).
    if header.get("crit").is_some() {
        return Err("its signature has a critical extension".to_owned());
    }
    let bytes = URL_SAFE_NO_PAD.decode(&signature.signature);
    let bytes = bytes.map_err(|_| "its signature cannot be read")?;
    let named = header["kid"].as_str();
    let may_be = |key: &&PinnedKey| match (key.id.as_deref(), named) {
        (Some(id), Some(named)) => id == named,
        (None, _) | (_, None) => true,
    };
    let mut known = keys.iter().filter(may_be).peekable();
    if known.peek().is_none() {
        return Err(format!("it is signed by the key {}, which is not pinned", header["kid"]));
    }
    let made = |key: &PinnedKey, payload: &String| {
        let input = format!("{}.{payload}", signature.protected);
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key.point);
        key.verify(input.as_bytes(), &bytes).is_ok()
    };
    match known.any(|key| payloads.iter().any(|payload| made(key, payload))) {
        true => Ok(()),
        false => Err("its signature does not fit what it says".to_owned()),
    }
}

/// The same without empty texts, lists and objects.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().map(|(name, member)| (name.clone(), without_empty(member)));
            Value::Object(kept.filter(|(_, member)| !is_empty(member)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_empty).collect()),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    struct Signer {
        pair: EcdsaKeyPair,
        random: SystemRandom,
    }

    impl Signer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).unwrap();
            Self { pair, random }
        }

        fn key(&self, id: Option<&str>) -> PinnedKey {
            let point = self.pair.public_key().as_ref().to_vec();
            let x = URL_SAFE_NO_PAD.encode(&point[1..33]);
            let y = URL_SAFE_NO_PAD.encode(&point[33..]);
            let key = PinnedKey::new(id.map(str::to_owned), &x, &y).unwrap();
            assert_eq!(key.point, point);
            key
        }

        fn sign(&self, header: &Value, content: &Value) -> Value {
            let protected = URL_SAFE_NO_PAD.encode(header.to_string());
            let input = format!("{protected}.{}", payload(content));
            let signature = self.pair.sign(&self.random, input.as_bytes()).unwrap();
            json!({"protected": protected, "signature": URL_SAFE_NO_PAD.encode(signature)})
        }
    }

    fn card() -> Value {
        json!({"name": "a", "description": "", "version": "1", "supportedInterfaces": [
            {"url": "https://a.test/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {"streaming": false}, "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"], "skills": []})
    }

    fn header() -> Value {
        json!({"alg": "ES256", "typ": "JOSE", "kid": "k1"})
    }

    #[test]
    fn only_cards_signed_by_a_pinned_key_are_accepted() {
        let signer = Signer::new();
        let other = Signer::new();
        let mut signed = card();
        // What came from elsewhere beside it is not signed and does not matter.
        signed["signatures"] =
            json!([other.sign(&header(), &card()), signer.sign(&header(), &card())]);
        signed["url"] = json!("https://old.test/");
        for key in [signer.key(Some("k1")), signer.key(None)] {
            assert_eq!(verify(&signed, &[other.key(Some("k2")), key]), Ok(()));
        }
        let told = verify(&signed, &[signer.key(Some("k2"))]).unwrap_err();
        assert!(told.contains("not pinned"), "{told}");
        signed["skills"] = json!([{"id": "x", "name": "", "description": "", "tags": []}]);
        let told = verify(&signed, &[signer.key(Some("k1"))]).unwrap_err();
        assert!(told.contains("does not fit"), "{told}");
        assert_eq!(verify(&card(), &[signer.key(None)]), Err("it is not signed".to_owned()));
    }

    #[test]
    fn a_signature_omission_of_one_sdk_is_accepted() {
        let signer = Signer::new();
        let mut signed = card();
        signed["signatures"] = json!([signer.sign(&header(), &without_empty(&card()))]);
        assert_eq!(verify(&signed, &[signer.key(None)]), Ok(()));
    }

    #[test]
    fn other_algorithms_and_critical_extensions_are_refused() {
        let signer = Signer::new();
        for (header, told) in [
            (json!({"alg": "none", "kid": "k1"}), "ES256"),
            (json!({"alg": "HS256", "kid": "k1"}), "ES256"),
            (json!({"alg": "ES256", "kid": "k1", "crit": ["b64"]}), "critical"),
        ] {
            let mut signed = card();
            signed["signatures"] = json!([signer.sign(&header, &card())]);
            let why = verify(&signed, &[signer.key(None)]).unwrap_err();
            assert!(why.contains(told), "{why}");
        }
        let mut broken = card();
        broken["signatures"] = json!([{"protected": "!", "signature": ""}]);
        assert!(verify(&broken, &[signer.key(None)]).is_err());
    }

    #[test]
    fn a_key_has_two_whole_coordinates() {
        let whole = URL_SAFE_NO_PAD.encode([7u8; 32]);
        assert!(PinnedKey::new(None, &whole, &whole).is_ok());
        assert_eq!(PinnedKey::new(None, "AA", &whole), Err("x"));
        assert_eq!(PinnedKey::new(None, &whole, "?"), Err("y"));
    }
}
