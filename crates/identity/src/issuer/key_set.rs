//! Key sets of issuers (RFC 7517). Unusable keys are skipped: encryption keys, short keys, secret
//! keys and unknown types.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::identity::issuer::Algorithm;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::Value;
use std::sync::Arc;

/// How many keys a document has at most.
pub(crate) const LISTED_MAX: usize = 64;
/// How many bits the modulus of an RSA key has.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
/// How many bytes a coordinate on P-256 has, and a key of Ed25519.
const POINT_BYTES: usize = 32;
/// First byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;

/// The keys of an issuer at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySet {
    keys: Vec<Arc<PublicKey>>,
    /// How many keys the document has, those that are left out included.
    listed: usize,
}

/// A key that tokens can be checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    id: Option<String>,
    /// The only algorithm that it is for, where the document says so.
    only: Option<Algorithm>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    /// Both without zeros at the beginning.
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Why a set has no key for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// It may be a new one.
    Unknown,
    /// It is there and does not fit, or it cannot be said which one is meant.
    Unfit(&'static str),
}

impl KeySet {
    /// Reads a document; none of it is taken where one part of it is wrong.
    pub(crate) fn parse(document: &Value) -> Result<Self, &'static str> {
        let listed = document.get("keys").and_then(Value::as_array);
        let listed = listed.ok_or("the key set has no list `keys`")?;
        if listed.len() > LISTED_MAX {
            return Err("the key set has more than 64 keys");
        }
        if !listed.iter().all(Value::is_object) {
            return Err("the key set lists something that is not a key");
        }
        let keys = listed.iter().filter_map(PublicKey::read).map(Arc::new).collect();
        Ok(Self { keys, listed: listed.len() })
    }

    /// The key of this id for this algorithm. Without an id, the set must have one key only.
    pub(crate) fn key(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<&Arc<PublicKey>, NoKey> {
        if id.is_none() && self.listed > 1 {
            return Err(NoKey::Unfit("the token names no key, and its issuer has several"));
        }
        let is_meant = |key: &&Arc<PublicKey>| id.is_none() || key.id.as_deref() == id;
        let meant: Vec<_> = self.keys.iter().filter(is_meant).collect();
        if meant.is_empty() {
            return Err(NoKey::Unknown);
        }
        let mut fitting = meant.into_iter().filter(|key| key.fits(algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key),
            (None, _) => Err(NoKey::Unfit("the token's algorithm does not fit its key")),
            (Some(_), Some(_)) => Err(NoKey::Unfit("several keys have the id that it names")),
        }
    }

    /// Whether this key is still one of them.
    pub(crate) fn has(&self, key: &Arc<PublicKey>) -> bool {
        self.keys.iter().any(|own| Arc::ptr_eq(own, key) || own == key)
    }

    /// Whether all keys of another set are in this one.
    pub(crate) fn has_all_of(&self, other: &Self) -> bool {
        other.keys.iter().all(|key| self.has(key))
    }
}

impl PublicKey {
    fn read(key: &Value) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        // A member that is there and is no text is not the same as none.
        let is_absent = |name: &str| key.get(name).is_none();
        if !(is_absent("use") || text("use") == Some("sig")) || !verifies(key) {
            return None;
        }
        let only = match text("alg") {
            Some(name) => Some(Algorithm::from_name(name)?),
            None if is_absent("alg") => None,
            None => return None,
        };
        let id = match text("kid") {
            None if !is_absent("kid") => return None,
            id => id.map(str::to_owned),
        };
        let read = Self { id, only, material: Material::read(key)? };
        // A key that is for none of what its material can do fits no token.
        Algorithm::ALL.iter().any(|algorithm| read.fits(*algorithm)).then_some(read)
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let can = match self.material {
            Material::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        can && self.only.is_none_or(|only| only == algorithm)
    }

    /// Whether this key made this signature of a message, by an algorithm that fits it.
    pub(crate) fn signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.material, algorithm) {
            (Material::Rsa { modulus, exponent }, Algorithm::Rs256) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Material::Rsa { modulus, exponent }, Algorithm::Ps256) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PSS_2048_8192_SHA256, message, signature)
            }
            (Material::P256(point), Algorithm::Es256) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(message, signature)
            }
            (Material::Ed25519(point), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return false,
        };
        verified.is_ok()
    }
}

/// Whether signatures may be verified with a key, as far as it says what may be done with it.
fn verifies(key: &Value) -> bool {
    match key.get("key_ops") {
        None => true,
        Some(Value::Array(names)) => names.iter().any(|name| name == "verify"),
        Some(_) => false,
    }
}

impl Material {
    fn read(key: &Value) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let point = |name: &str| bytes(name).filter(|bytes| bytes.len() == POINT_BYTES);
        match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let modulus = without_zeros(bytes("n")?);
                let exponent = without_zeros(bytes("e")?);
                RSA_BITS.contains(&bits(&modulus)).then_some(Self::Rsa { modulus, exponent })
            }
            ("EC", Some("P-256")) => {
                let x = point("x")?;
                let y = point("y")?;
                Some(Self::P256([vec![UNCOMPRESSED], x, y].concat()))
            }
            ("OKP", Some("Ed25519")) => point("x").map(Self::Ed25519),
            _ => None,
        }
    }
}

fn without_zeros(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}

/// How many bits a number has whose first byte is not zero.
fn bits(number: &[u8]) -> usize {
    let unused = number.first().map_or(0, |first| first.leading_zeros() as usize);
    number.len() * 8 - unused
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rsa(bytes: usize) -> Value {
        let modulus = URL_SAFE_NO_PAD.encode(vec![0xff; bytes]);
        json!({"kty": "RSA", "kid": "r", "n": modulus, "e": "AQAB"})
    }

    fn okp() -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "kid": "o", "x": URL_SAFE_NO_PAD.encode([7; 32])})
    }

    /// The key with other members.
    fn with(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    fn set(keys: &[Value]) -> KeySet {
        KeySet::parse(&json!({"keys": keys})).unwrap()
    }

    #[test]
    fn only_usable_keys_of_a_set_are_kept() {
        assert_eq!(set(&[rsa(256), okp()]).keys.len(), 2);
        let point = URL_SAFE_NO_PAD.encode([1; 32]);
        let left_out = [
            rsa(128),
            rsa(255),
            rsa(1_025),
            with(rsa(256), "use", json!("enc")),
            with(rsa(256), "use", json!(null)),
            with(rsa(256), "alg", json!("ES256")),
            with(rsa(256), "alg", json!("RSA-OAEP")),
            with(rsa(256), "kid", json!(7)),
            with(rsa(256), "key_ops", json!(["encrypt"])),
            with(okp(), "crv", json!("X25519")),
            with(okp(), "x", json!(URL_SAFE_NO_PAD.encode([7; 31]))),
            json!({"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"}),
            json!({"kty": "EC", "crv": "P-384", "x": point, "y": point}),
            json!({"kty": "EC", "crv": "P-256", "x": point}),
            json!({}),
        ];
        for key in left_out {
            let set = set(std::slice::from_ref(&key));
            assert_eq!((set.keys.len(), set.listed), (0, 1), "{key}");
        }
        // Leading zeros do not count.
        let padded = [vec![0; 128], vec![0xff; 128]].concat();
        let padded = with(rsa(256), "n", json!(URL_SAFE_NO_PAD.encode(padded)));
        assert!(set(&[padded]).keys.is_empty());
    }

    #[test]
    fn a_key_set_is_taken_completely_or_not_at_all() {
        for wrong in [json!([]), json!({}), json!({"keys": {}}), json!({"keys": [okp(), "x"]})] {
            assert!(KeySet::parse(&wrong).is_err(), "{wrong}");
        }
        assert!(KeySet::parse(&json!({"keys": vec![okp(); LISTED_MAX + 1]})).is_err());
        assert!(KeySet::parse(&json!({"keys": vec![okp(); LISTED_MAX]})).is_ok());
    }

    #[test]
    fn a_key_is_found_by_its_id_alone() {
        let both = set(&[rsa(256), okp()]);
        assert!(both.key(Some("r"), Algorithm::Rs256).is_ok());
        assert!(both.key(Some("r"), Algorithm::Ps256).is_ok());
        assert!(matches!(both.key(Some("r"), Algorithm::Es256), Err(NoKey::Unfit(_))));
        assert!(matches!(both.key(Some("o"), Algorithm::Rs256), Err(NoKey::Unfit(_))));
        assert_eq!(both.key(Some("x"), Algorithm::Rs256), Err(NoKey::Unknown));
        assert!(matches!(both.key(None, Algorithm::Rs256), Err(NoKey::Unfit(_))));
        // One that is left out counts too: it cannot be said which one is meant.
        let hidden = set(&[okp(), rsa(128)]);
        assert!(matches!(hidden.key(None, Algorithm::EdDsa), Err(NoKey::Unfit(_))));
        assert!(set(&[okp()]).key(None, Algorithm::EdDsa).is_ok());
        let twice = set(&[okp(), with(okp(), "x", json!(URL_SAFE_NO_PAD.encode([8; 32])))]);
        assert!(matches!(twice.key(Some("o"), Algorithm::EdDsa), Err(NoKey::Unfit(_))));
        let only = set(&[with(rsa(256), "alg", json!("PS256"))]);
        assert!(matches!(only.key(Some("r"), Algorithm::Rs256), Err(NoKey::Unfit(_))));
    }

    #[test]
    fn a_key_is_recognised_in_a_reloaded_set() {
        let before = set(&[rsa(256), okp()]);
        let after = set(&[okp()]);
        let key = before.key(Some("o"), Algorithm::EdDsa).unwrap();
        assert!(after.has(key) && !after.has_all_of(&before) && before.has_all_of(&after));
    }
}
