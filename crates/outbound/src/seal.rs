//! Sealing: what lies on a disk or goes to others and comes back can neither be read nor changed,
//! and is good for one purpose only. Whatever comes back is an attacker's until it opens.
//!
//! Each text is sealed with a key of its own, made of a secret, the purpose and random bytes. An
//! envelope names its secret by an id, so that a secret can be replaced: the new one seals, and the
//! older ones still open what they sealed.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::iter::once;

/// How many bytes a secret has.
pub const SECRET_BYTES: usize = 32;

/// The first byte of an envelope: how the rest is sealed.
const FORM: u8 = 2;
/// The form of 0.1.0, which names no secret. Nothing is sealed in it any more.
const FORM_UNNAMED: u8 = 1;
const ID_BYTES: usize = 4;
const SALT_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
/// How many bytes an envelope has beyond what it holds.
pub const ENVELOPE_BYTES: usize = 1 + ID_BYTES + SALT_BYTES + TAG_BYTES;

/// What a secret is used for to name itself: keys for other purposes differ.
const ID_PURPOSE: &[u8] = b"waypost key id";

/// The secrets of a server: one that seals, and older ones that only open.
#[derive(Clone)]
pub struct Keyring {
    current: Key,
    older: Vec<Key>,
}

impl Keyring {
    /// With this secret alone.
    pub fn new(secret: [u8; SECRET_BYTES]) -> Self {
        Self { current: Key::new(&secret), older: Vec::new() }
    }

    /// The same; what this older secret sealed opens, too.
    #[must_use]
    pub fn with_older(mut self, secret: [u8; SECRET_BYTES]) -> Self {
        self.older.push(Key::new(&secret));
        self
    }

    /// A key made of the secret for this purpose, for what is sealed in another way than here.
    pub fn derived(&self, purpose: &[u8]) -> hmac::Key {
        let own = hmac::sign(&self.current.secret, purpose);
        hmac::Key::new(hmac::HMAC_SHA256, own.as_ref())
    }

    fn all(&self) -> impl Iterator<Item = &Key> {
        once(&self.current).chain(&self.older)
    }
}

impl From<[u8; SECRET_BYTES]> for Keyring {
    fn from(secret: [u8; SECRET_BYTES]) -> Self {
        Self::new(secret)
    }
}

/// A secret and its name.
#[derive(Clone)]
struct Key {
    id: [u8; ID_BYTES],
    secret: hmac::Key,
}

impl Key {
    fn new(secret: &[u8; SECRET_BYTES]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let whole = hmac::sign(&secret, ID_PURPOSE);
        let whole: &[u8] = whole.as_ref();
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&whole[..ID_BYTES]);
        Self { id, secret }
    }

    /// The key of one text.
    fn of_text(&self, purpose: &[u8], salt: &[u8; SALT_BYTES]) -> Option<LessSafeKey> {
        let mut context = hmac::Context::with_key(&self.secret);
        context.update(purpose);
        context.update(salt);
        let own = context.sign();
        UnboundKey::new(&CHACHA20_POLY1305, own.as_ref()).ok().map(LessSafeKey::new)
    }
}

/// Seals texts for one purpose, and opens them.
#[derive(Clone)]
pub struct Envelopes {
    keys: Keyring,
    purpose: &'static [u8],
}

impl Envelopes {
    /// With these secrets, for this purpose. Purposes differ, and none is the beginning of another.
    pub fn new(keys: impl Into<Keyring>, purpose: &'static [u8]) -> Self {
        Self { keys: keys.into(), purpose }
    }

    /// A text in an envelope that opens only with the same `bound`: for whom or what it is. The
    /// salt is random and never used again. It cannot fail with a text that memory holds; if it
    /// did, nothing may leave unsealed.
    pub fn seal(&self, bound: &[u8], salt: u128, plain: &[u8]) -> Option<Vec<u8>> {
        let salt = salt.to_be_bytes();
        let key = &self.keys.current;
        let own = key.of_text(self.purpose, &salt)?;
        let mut envelope: Vec<u8> = once(FORM).chain(key.id).collect();
        let aad = Aad::from([envelope.as_slice(), bound].concat());
        let mut sealed = plain.to_vec();
        own.seal_in_place_append_tag(nonce(), aad, &mut sealed).ok()?;
        envelope.extend_from_slice(&salt);
        envelope.append(&mut sealed);
        Some(envelope)
    }

    /// The text in an envelope, if it is one of ours, of this purpose and with this `bound`.
    pub fn open(&self, bound: &[u8], envelope: &[u8]) -> Option<Vec<u8>> {
        let (form, rest) = envelope.split_first()?;
        let (id, sealed) = match *form {
            FORM => rest.split_first_chunk::<ID_BYTES>().map(|(id, sealed)| (Some(id), sealed))?,
            FORM_UNNAMED => (None, rest),
            _ => return None,
        };
        let head = &envelope[..envelope.len() - sealed.len()];
        let bound = [head, bound].concat();
        let mut named = self.keys.all().filter(|key| id.is_none_or(|id| key.id == *id));
        named.find_map(|key| self.opened(key, &bound, sealed))
    }

    fn opened(&self, key: &Key, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (salt, sealed) = sealed.split_first_chunk::<SALT_BYTES>()?;
        let own = key.of_text(self.purpose, salt)?;
        let mut sealed = sealed.to_vec();
        let length = own.open_in_place(nonce(), Aad::from(bound), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}

/// Each key seals one text only, so one nonce does for all.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURPOSE: &[u8] = b"waypost vault";
    const BOUND: &[u8] = b"token desk";
    /// `hushhush`, as 0.1.0 sealed it with the secret of these tests.
    const BEFORE: &str =
        "01000102030405060708090a0b0c0d0e0f3f4d67ff07b62638f0797c7ae0cd9db8ea13009733de4453";
    /// The same as it is sealed now, with the same random bytes.
    const NOW: &str = "0229bfed58000102030405060708090a0b0c0d0e0f\
        3f4d67ff07b62638b0e562d2681cc03fd839f01e7da99204";
    const SALT: u128 = 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f;

    fn bytes(digits: &str) -> Vec<u8> {
        let pairs = (0..digits.len()).step_by(2);
        pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    }

    fn envelopes() -> Envelopes {
        Envelopes::new([7; 32], PURPOSE)
    }

    #[test]
    fn an_envelope_opens_as_it_was_sealed_and_its_form_stays() {
        let sealed = envelopes().seal(BOUND, SALT, b"hushhush").unwrap();
        assert_eq!(sealed, bytes(NOW));
        assert_eq!(sealed.len(), b"hushhush".len() + ENVELOPE_BYTES);
        for envelope in [NOW, BEFORE] {
            let opened = envelopes().open(BOUND, &bytes(envelope));
            assert_eq!(opened.as_deref(), Some(&b"hushhush"[..]));
        }
        let nothing = envelopes().seal(b"", 1, b"").unwrap();
        assert_eq!(envelopes().open(b"", &nothing), Some(Vec::new()));
    }

    #[test]
    fn no_byte_of_it_can_be_changed() {
        for envelope in [bytes(NOW), bytes(BEFORE)] {
            for index in 0..envelope.len() {
                let mut changed = envelope.clone();
                changed[index] ^= 3;
                assert_eq!(envelopes().open(BOUND, &changed), None, "{index}");
                assert_eq!(envelopes().open(BOUND, &envelope[..index]), None, "cut at {index}");
            }
        }
    }

    #[test]
    fn it_is_good_for_one_purpose_and_bound_to_one_thing() {
        for envelope in [bytes(NOW), bytes(BEFORE)] {
            assert_eq!(envelopes().open(b"token des", &envelope), None);
            assert_eq!(Envelopes::new([7; 32], b"other").open(BOUND, &envelope), None);
            assert_eq!(Envelopes::new([8; 32], PURPOSE).open(BOUND, &envelope), None);
        }
    }

    #[test]
    fn what_an_older_secret_sealed_opens_and_the_new_one_seals() {
        let ring = Keyring::new([9; 32]).with_older([8; 32]).with_older([7; 32]);
        let replaced = Envelopes::new(ring, PURPOSE);
        for envelope in [NOW, BEFORE] {
            assert!(replaced.open(BOUND, &bytes(envelope)).is_some());
        }
        let sealed = replaced.seal(BOUND, SALT, b"hushhush").unwrap();
        assert_eq!(envelopes().open(BOUND, &sealed), None);
        assert!(Envelopes::new([9; 32], PURPOSE).open(BOUND, &sealed).is_some());
    }
}
