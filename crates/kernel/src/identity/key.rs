//! API keys: `wp_<id>_<secret>`. The text is shown once; what is stored is a hash of it.

use crate::identity::grants::Grants;
use crate::values::caller::Scopes;
use crate::values::ids::{ContentHash, Millis};
use crate::values::secret::{Secret, is_same_secret};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Prefix of every key text.
pub const KEY_PREFIX: &str = "wp_";

/// Prefix of every exchanged token.
pub const TOKEN_PREFIX: &str = "wpt_";

/// After how many days a key expires for which nothing else was said.
pub const EXPIRES_DEFAULT_DAYS: u64 = 90;

/// How long the old text of a rotated key stays good where nothing else was said: a day.
pub const OVERLAP_DEFAULT_MS: u64 = 24 * 60 * 60 * 1000;

/// Prefix of the subjects of keys.
pub(super) const SUBJECT_PREFIX: &str = "key:";

/// How many texts of one key are good at the same time.
const SECRETS_MAX: usize = 2;

/// Base32 in lower case, without the digits that look like letters.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const ID_BYTES: usize = 7;
const ID_CHARS: usize = 10;
const SECRET_BYTES: usize = 32;
const SECRET_CHARS: usize = 52;

/// The id of a key, which is no secret: ten characters of base32 in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(pub Arc<str>);

impl KeyId {
    pub fn parse(text: &str) -> Option<Self> {
        is_base32(text, ID_CHARS).then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for KeyId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The whole text of a key, as its holder sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyText {
    pub id: KeyId,
    pub text: Secret,
}

impl KeyText {
    /// A new one of random bytes.
    pub fn mint(bits: [u8; ID_BYTES + SECRET_BYTES]) -> Self {
        let (id, secret) = bits.split_at(ID_BYTES);
        Self::with(KeyId(base32(id, ID_CHARS).into()), secret)
    }

    /// A new text for the key of this id.
    pub fn renewed(id: KeyId, bits: [u8; SECRET_BYTES]) -> Self {
        Self::with(id, &bits)
    }

    /// Reads a text that has exactly the form of a key. Whether there is such a key is not known
    /// yet.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(KEY_PREFIX)?.split_once('_')?;
        let id = KeyId::parse(id)?;
        is_base32(secret, SECRET_CHARS).then(|| Self { id, text: text.into() })
    }

    fn with(id: KeyId, secret: &[u8]) -> Self {
        let text = format!("{KEY_PREFIX}{id}_{}", base32(secret, SECRET_CHARS));
        Self { id, text: text.into() }
    }
}

/// The hash of a key's whole text, in hexadecimal digits: what is stored of it.
pub fn hash_of(text: &str) -> String {
    ContentHash::of(text.as_bytes()).as_str().to_owned()
}

/// A key as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    pub id: KeyId,
    pub name: String,
    /// The principal whose it is: who calls with it is that one, with its roles as they are then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Arc<str>>,
    /// The realms that it may enter, and its roles there; none of its own where it is a
    /// principal's.
    pub realms: Grants,
    /// The most that it allows; none is no ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Scopes>,
    /// The hashes of the texts that are good: one, or two while it is being rotated, the newest
    /// first.
    pub secrets: Vec<SecretHash>,
    /// The subject that made it.
    pub by: Arc<str>,
    pub created: Millis,
    /// When it stops to be good; never where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Millis>,
    /// When it was revoked, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Millis>,
}

/// Why a key is not good any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyRejection {
    /// Someone revoked it.
    #[error("the key was revoked")]
    Revoked,
    /// Its time is over.
    #[error("the key has expired")]
    Expired,
}

impl ApiKey {
    pub fn subject(&self) -> Arc<str> {
        match &self.of {
            Some(principal) => principal.clone(),
            None => format!("{SUBJECT_PREFIX}{}", self.id).into(),
        }
    }

    /// Whether it is good at this moment, whatever its text is. A revoked key stays revoked if the
    /// clock is set back.
    pub fn check(&self, now: Millis) -> Result<(), KeyRejection> {
        if self.revoked.is_some() {
            return Err(KeyRejection::Revoked);
        }
        if self.expires.is_some_and(|expires| expires <= now) {
            return Err(KeyRejection::Expired);
        }
        Ok(())
    }

    /// Whether this is the hash of a text of it that is good at this moment. Whether the key itself
    /// is good, `check` says. All hashes are compared as a whole, so that the time it takes tells
    /// nothing about them.
    pub fn holds(&self, sha256: &str, now: Millis) -> bool {
        self.secrets.iter().fold(false, |held, secret| {
            let is_good = secret.until.is_none_or(|until| now < until);
            held | (is_same_secret(secret.sha256.as_bytes(), sha256.as_bytes()) & is_good)
        })
    }

    /// The same key with a new text. The text before it is good for `overlap` milliseconds more, at
    /// most; one that is still older ends now.
    #[must_use]
    pub fn rotated(&self, sha256: String, now: Millis, overlap: u64) -> Self {
        let end = now.plus_ms(overlap);
        let ending = |old: &SecretHash| SecretHash {
            until: Some(old.until.map_or(end, |until| until.min(end))),
            ..old.clone()
        };
        let newest = SecretHash { sha256, until: None, by: Vec::new() };
        let older = self.secrets.iter().take(SECRETS_MAX - 1).map(ending);
        Self { secrets: std::iter::once(newest).chain(older).collect(), ..self.clone() }
    }

    /// The same key, whose newest text these people were shown.
    #[must_use]
    pub fn shown_to<'p>(mut self, people: impl Iterator<Item = &'p Arc<str>>) -> Self {
        let others = people.filter(|one| **one != self.by).cloned().collect();
        if let Some(newest) = self.secrets.first_mut() {
            newest.by = others;
        }
        self
    }
}

/// SHA-256 of the whole text of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretHash {
    /// The hash, in hexadecimal digits.
    pub sha256: String,
    /// When it stops to be good, where a newer one took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    /// Who was shown the text, beside the key's maker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<Arc<str>>,
}

/// The first bits of these bytes, five to a character; bits that are missing are zero.
fn base32(bytes: &[u8], characters: usize) -> String {
    let bit = |at: usize| {
        let byte = bytes.get(at / 8).copied().unwrap_or_default();
        usize::from((byte >> (7 - at % 8)) & 1)
    };
    let character = |index: usize| {
        let value = (0..5).fold(0_usize, |value, offset| (value << 1) | bit(index * 5 + offset));
        char::from(ALPHABET[value])
    };
    (0..characters).map(character).collect()
}

fn is_base32(text: &str, characters: usize) -> bool {
    let is_known = |byte: u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
    text.len() == characters && text.bytes().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::grants::RealmPattern;
    use crate::identity::roles::{Role, Roles};

    const NOW: Millis = Millis(1_000_000);

    fn later(ms: u64) -> Millis {
        NOW.plus_ms(ms)
    }

    /// The hash of a text that nobody but the key's maker was shown.
    fn only(text: &str, until: Option<Millis>) -> SecretHash {
        SecretHash { sha256: hash_of(text), until, by: Vec::new() }
    }

    fn key() -> ApiKey {
        let default = RealmPattern::parse("default").unwrap();
        ApiKey {
            id: KeyId("abcdefghij".into()),
            name: "ci".to_owned(),
            of: None,
            realms: Grants::one(default, Roles::of(&[Role::Member])),
            scopes: None,
            secrets: vec![only("first", None)],
            by: "admin".into(),
            created: Millis(1),
            expires: None,
            revoked: None,
        }
    }

    #[test]
    fn base32_follows_rfc_4648_in_lower_case() {
        let cases = [
            ("", ""),
            ("f", "my"),
            ("fo", "mzxq"),
            ("foo", "mzxw6"),
            ("foob", "mzxw6yq"),
            ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ];
        for (bytes, text) in cases {
            assert_eq!(base32(bytes.as_bytes(), text.len()), text);
        }
    }

    #[test]
    fn a_new_key_is_made_of_all_its_random_bits_and_reads_as_one() {
        let zeros = KeyText::mint([0; 39]);
        assert_eq!(zeros.text.expose(), format!("wp_{}_{}", "a".repeat(10), "a".repeat(52)));
        let ones = KeyText::mint([0xff; 39]);
        assert_eq!(ones.text.expose(), format!("wp_{}_{}q", "7".repeat(10), "7".repeat(51)));
        for minted in [zeros, ones] {
            assert_eq!(KeyText::parse(minted.text.expose()), Some(minted));
        }
        let mut bits = [0_u8; 39];
        bits[..7].copy_from_slice(b"foobarX");
        bits[38] = 1;
        let minted = KeyText::mint(bits);
        assert_eq!(minted.id.as_str(), "mzxw6ytboj");
        assert!(minted.text.expose().ends_with("aq"), "the last bit counts");
    }

    #[test]
    fn the_characters_of_keys_are_those_of_the_alphabet() {
        for byte in 0..=u8::MAX {
            let text = char::from(byte).to_string();
            assert_eq!(is_base32(&text, 1), ALPHABET.contains(&byte), "{byte}");
        }
    }

    #[test]
    fn a_renewed_text_keeps_the_id() {
        let minted = KeyText::mint([1; 39]);
        let renewed = KeyText::renewed(minted.id.clone(), [2; 32]);
        assert_eq!(renewed.id, minted.id);
        assert_ne!(renewed.text, minted.text);
        assert_eq!(KeyText::parse(renewed.text.expose()), Some(renewed));
    }

    #[test]
    fn malformed_key_texts_are_refused() {
        let id = "a".repeat(10);
        let secret = "b".repeat(52);
        let good = format!("wp_{id}_{secret}");
        assert_eq!(KeyText::parse(&good).unwrap().id, KeyId(id.as_str().into()));
        let wrong = [
            String::new(),
            "wp_".to_owned(),
            "wp__".to_owned(),
            format!("wp_{id}"),
            format!("wp_{id}_"),
            format!("wp_{id}{secret}"),
            format!("wp__{secret}"),
            format!("{id}_{secret}"),
            format!("wpt_{id}_{secret}"),
            format!("wp-{id}-{secret}"),
            format!("WP_{id}_{secret}"),
            format!("wp_{}_{secret}", "a".repeat(9)),
            format!("wp_{}_{secret}", "a".repeat(11)),
            format!("wp_{id}_{}", "b".repeat(51)),
            format!("wp_{id}_{}", "b".repeat(53)),
            format!("wp_{id}_{secret}_"),
            format!("wp_{id}__{}", "b".repeat(51)),
            format!(" {good}"),
            format!("{good} "),
            format!("{good}\n"),
            format!("{good}\0"),
            format!("{good}="),
            good.to_uppercase(),
            good.replace('a', "A"),
            good.replacen('b', "0", 1),
            good.replacen('b', "1", 1),
            good.replacen('b', "8", 1),
            good.replacen('a', "9", 1),
            good.replacen("bb", "ß", 1),
            good.replacen("aa", "ß", 1),
        ];
        for text in wrong {
            assert!(KeyText::parse(&text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn ids_are_ten_characters_of_base32() {
        assert_eq!(KeyId::parse("abcxyz2347").unwrap().to_string(), "abcxyz2347");
        for wrong in ["", "abcxyz234", "abcxyz23456", "abcxyz2341", "ABCXYZ2347", "abcxyz 234"] {
            assert_eq!(KeyId::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_text_of_a_key_is_not_shown() {
        let minted = KeyText::mint([3; 39]);
        let shown = format!("{minted:?}");
        assert!(shown.contains(minted.id.as_str()));
        assert!(!shown.contains(minted.text.expose()) && !shown.contains("wp_"));
    }

    #[test]
    fn the_hash_is_sha_256_in_hexadecimal_digits() {
        assert_eq!(
            hash_of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_key_is_good_until_it_expires_or_is_revoked() {
        assert_eq!(&*key().subject(), "key:abcdefghij");
        assert_eq!(&*ApiKey { of: Some("ann".into()), ..key() }.subject(), "ann");
        let plain = key();
        let expiring = ApiKey { expires: Some(later(10)), ..key() };
        let revoked = ApiKey { revoked: Some(NOW), ..expiring.clone() };
        let revoked_later = ApiKey { revoked: Some(later(10)), ..key() };
        let cases = [
            (&plain, Millis(i64::MAX), Ok(())),
            (&expiring, later(9), Ok(())),
            (&expiring, later(10), Err(KeyRejection::Expired)),
            (&expiring, later(11), Err(KeyRejection::Expired)),
            (&revoked, NOW, Err(KeyRejection::Revoked)),
            (&revoked, later(11), Err(KeyRejection::Revoked)),
            (&revoked_later, NOW, Err(KeyRejection::Revoked)),
        ];
        for (key, now, expected) in cases {
            assert_eq!(key.check(now), expected, "{now:?}");
        }
    }

    #[test]
    fn a_key_holds_its_own_hash_and_no_other() {
        assert!(key().holds(&hash_of("first"), NOW));
        let nearly = format!("{}0", &hash_of("first")[..63]);
        let longer = format!("{}0", hash_of("first"));
        assert_ne!(nearly, hash_of("first"));
        for other in ["", "first", &hash_of("second"), &nearly, &longer, &longer[..63]] {
            assert!(!key().holds(other, NOW), "{other}");
        }
        let none = ApiKey { secrets: Vec::new(), ..key() };
        assert!(!none.holds("", NOW) && !none.holds(&hash_of("first"), NOW));
    }

    #[test]
    fn after_a_rotation_both_texts_are_good_until_the_overlap_ends() {
        let rotated = key().rotated(hash_of("second"), NOW, 100);
        let first = only("first", Some(later(100)));
        let second = only("second", None);
        assert_eq!(rotated, ApiKey { secrets: vec![second, first], ..key() });
        assert!(rotated.holds(&hash_of("first"), later(99)));
        assert!(!rotated.holds(&hash_of("first"), later(100)));
        assert!(rotated.holds(&hash_of("second"), NOW));
        assert!(rotated.holds(&hash_of("second"), Millis(i64::MAX)));
    }

    #[test]
    fn a_rotated_text_records_who_it_was_shown_to() {
        let people: Vec<Arc<str>> = vec!["eve".into(), "admin".into()];
        let rotated = key().rotated(hash_of("second"), NOW, 100).shown_to(people.iter());
        assert_eq!(rotated.secrets[0].by, [Arc::<str>::from("eve")]);
        assert!(rotated.secrets[1].by.is_empty(), "nobody was shown the text before it");
        let written = serde_json::to_string(&rotated).unwrap();
        assert_eq!(serde_json::from_str::<ApiKey>(&written).unwrap(), rotated);
        let own = key().rotated(hash_of("second"), NOW, 100).shown_to(people[1..].iter());
        assert!(!serde_json::to_string(&own.secrets).unwrap().contains("by"));
    }

    #[test]
    fn without_an_overlap_the_old_text_ends_at_once() {
        let rotated = key().rotated(hash_of("second"), NOW, 0);
        assert!(!rotated.holds(&hash_of("first"), NOW));
        assert!(rotated.holds(&hash_of("second"), NOW));
    }

    #[test]
    fn a_second_rotation_ends_the_oldest_text() {
        let twice = key().rotated(hash_of("second"), NOW, 100).rotated(hash_of("third"), NOW, 50);
        assert!(!twice.holds(&hash_of("first"), NOW));
        assert!(twice.holds(&hash_of("second"), later(49)));
        assert!(!twice.holds(&hash_of("second"), later(50)));
        assert!(twice.holds(&hash_of("third"), later(50)));
        assert_eq!(twice.secrets.len(), SECRETS_MAX);
    }

    #[test]
    fn a_rotation_never_lets_a_text_live_longer_than_it_would_have() {
        let mut ending = key();
        ending.secrets[0].until = Some(later(5));
        let rotated = ending.rotated(hash_of("second"), NOW, u64::MAX);
        assert_eq!(rotated.secrets[1].until, Some(later(5)));
    }

    #[test]
    fn rotating_an_expired_or_revoked_key_does_not_revive_it() {
        let dead = ApiKey { expires: Some(NOW), revoked: Some(NOW), ..key() };
        let rotated = dead.rotated(hash_of("second"), NOW, 100);
        assert_eq!(rotated.check(NOW), Err(KeyRejection::Revoked));
        assert_eq!(rotated.expires, Some(NOW));
    }

    #[test]
    fn keys_round_trip_through_json() {
        let text = r#"{"id":"abcdefghij","name":"ci","of":"ann","realms":{"default":["member"]},
            "scopes":["use","answer"],"secrets":[{"sha256":"b"},{"sha256":"a","until":7}],
            "by":"admin","created":1,"expires":8,"revoked":9}"#;
        let full: ApiKey = serde_json::from_str(text).unwrap();
        let older = SecretHash { sha256: "a".to_owned(), ..only("a", Some(Millis(7))) };
        assert_eq!(full.secrets[1], older);
        assert_eq!((full.expires, full.revoked), (Some(Millis(8)), Some(Millis(9))));
        let written: String = text.split_whitespace().collect();
        assert_eq!(serde_json::to_string(&full).unwrap(), written);

        let plain = serde_json::to_string(&key()).unwrap();
        assert_eq!(serde_json::from_str::<ApiKey>(&plain).unwrap(), key());
        for absent in ["\"of\"", "scopes", "until", "expires", "revoked"] {
            assert!(!plain.contains(absent), "{absent}");
        }
        assert!(serde_json::from_str::<ApiKey>(&plain.replace("default", "De fault")).is_err());
    }
}
