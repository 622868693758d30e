//! Sealing: what lies on a disk or goes to others and comes back can neither be read nor changed,
//! and is good for one purpose only. Whatever comes back is an attacker's until it opens.
//!
//! Each text is sealed with a key of its own, made of a secret, the purpose and random bytes. An
//! envelope names its secret by an id, so that a secret can be replaced: the new one seals, and the
//! older ones still open what they sealed.

use kernel::values::secret::is_same_secret;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::fmt;
use std::iter::once;

/// How many bytes a secret has.
pub const SECRET_BYTES: usize = 32;

/// The first byte of an envelope: how the rest is sealed. The id of the secret follows it.
const FORM: u8 = 2;
/// The form of stable envelopes.
const FORM_STABLE: u8 = 3;
const ID_BYTES: usize = 4;
/// Form and id.
const HEAD_BYTES: usize = 1 + ID_BYTES;
const SALT_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
/// How many bytes an envelope has beyond what it holds.
pub const ENVELOPE_BYTES: usize = HEAD_BYTES + SALT_BYTES + TAG_BYTES;

/// Too many for anybody to guess one. With the head and any text they are a multiple of three:
/// base64 has no bits left over that could be changed unseen.
const STABLE_TAG_BYTES: usize = 13;
/// Stable texts are filled up to whole blocks: how long one is does not tell how large a number is.
const BLOCK_BYTES: usize = 12;
/// Separates a text from its zero padding.
const FILL: u8 = 0x80;
/// How many bytes one hash masks.
const MASK_BYTES: usize = 32;

/// What a secret is used for to name itself: keys for other purposes differ.
const ID_PURPOSE: &[u8] = b"waypost key id";

/// The name of a secret. It tells nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyId([u8; ID_BYTES]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// Why an envelope does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// The secret that it names is none of ours.
    #[error("it was sealed with the secret key `{0}`, which this server does not have")]
    UnknownKey(KeyId),
    /// It was changed or cut, is of another purpose, or is bound to something else.
    #[error("it was changed, or it was sealed for something else")]
    Changed,
}

/// The secrets of a server, as keys: one that seals, and older ones that only open.
#[derive(Clone)]
pub struct Keyring<K = hmac::Key> {
    current: Named<K>,
    older: Vec<Named<K>>,
}

/// A key of a secret, by the secret's name.
#[derive(Clone)]
struct Named<K> {
    id: KeyId,
    key: K,
}

impl Keyring {
    /// With this secret alone.
    pub fn new(secret: [u8; SECRET_BYTES]) -> Self {
        Self { current: Named::new(&secret), older: Vec::new() }
    }

    /// The same; what this older secret sealed opens, too.
    #[must_use]
    pub fn with_older(mut self, secret: [u8; SECRET_BYTES]) -> Self {
        self.older.push(Named::new(&secret));
        self
    }
}

impl<K> Keyring<K> {
    /// The same secrets with the keys that are made of these.
    fn map<N>(&self, make: impl Fn(&K) -> N) -> Keyring<N> {
        let named = |one: &Named<K>| Named { id: one.id, key: make(&one.key) };
        Keyring { current: named(&self.current), older: self.older.iter().map(named).collect() }
    }

    fn all(&self) -> impl Iterator<Item = &Named<K>> {
        once(&self.current).chain(&self.older)
    }

    /// Opens an envelope with the secret of this id.
    fn open<T>(&self, id: KeyId, open: impl Fn(&K) -> Option<T>) -> Result<T, Unopened> {
        let mut fitting = self.all().filter(|one| one.id == id).peekable();
        if fitting.peek().is_none() {
            return Err(Unopened::UnknownKey(id));
        }
        fitting.find_map(|one| open(&one.key)).ok_or(Unopened::Changed)
    }
}

impl From<[u8; SECRET_BYTES]> for Keyring {
    fn from(secret: [u8; SECRET_BYTES]) -> Self {
        Self::new(secret)
    }
}

impl From<&Keyring> for Keyring {
    fn from(keys: &Keyring) -> Self {
        keys.clone()
    }
}

/// Only the names.
impl<K> fmt::Debug for Keyring<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().map(|one| one.id)).finish()
    }
}

impl Named<hmac::Key> {
    fn new(secret: &[u8; SECRET_BYTES]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let whole = hmac::sign(&key, ID_PURPOSE);
        let whole: &[u8] = whole.as_ref();
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&whole[..ID_BYTES]);
        Self { id: KeyId(id), key }
    }
}

/// An envelope in parts.
struct Parts<'e> {
    /// The secret that it names.
    id: KeyId,
    /// Authenticated header of the envelope.
    head: &'e [u8],
    sealed: &'e [u8],
}

impl<'e> Parts<'e> {
    fn of(form: u8, envelope: &'e [u8]) -> Result<Self, Unopened> {
        let (head, sealed) = envelope.split_at_checked(HEAD_BYTES).ok_or(Unopened::Changed)?;
        let id: Option<[u8; ID_BYTES]> =
            head.strip_prefix(&[form]).and_then(|id| id.try_into().ok());
        Ok(Self { id: KeyId(id.ok_or(Unopened::Changed)?), head, sealed })
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
        let Named { id, key } = &self.keys.current;
        let own = self.own_key(key, &salt)?;
        let mut envelope = head(FORM, *id);
        let aad = Aad::from([envelope.as_slice(), bound].concat());
        let mut sealed = plain.to_vec();
        own.seal_in_place_append_tag(nonce(), aad, &mut sealed).ok()?;
        envelope.extend_from_slice(&salt);
        envelope.append(&mut sealed);
        Some(envelope)
    }

    /// The text in an envelope, if it is one of ours, of this purpose and with this `bound`.
    pub fn open(&self, bound: &[u8], envelope: &[u8]) -> Result<Vec<u8>, Unopened> {
        let parts = Parts::of(FORM, envelope)?;
        let bound = [parts.head, bound].concat();
        self.keys.open(parts.id, |key| {
            let (salt, sealed) = parts.sealed.split_first_chunk::<SALT_BYTES>()?;
            let own = self.own_key(key, salt)?;
            let mut text = sealed.to_vec();
            let aad = Aad::from(bound.as_slice());
            let length = own.open_in_place(nonce(), aad, &mut text).ok()?.len();
            text.truncate(length);
            Some(text)
        })
    }

    /// The key of one text.
    fn own_key(&self, key: &hmac::Key, salt: &[u8; SALT_BYTES]) -> Option<LessSafeKey> {
        let mut context = hmac::Context::with_key(key);
        context.update(self.purpose);
        context.update(salt);
        let own = context.sign();
        UnboundKey::new(&CHACHA20_POLY1305, own.as_ref()).ok().map(LessSafeKey::new)
    }
}

/// Seals short texts for one purpose so that the same text always gives the same envelope, as long
/// as the secret stays: then two envelopes can be compared.
///
/// So it takes no random bytes. A tag over `bound` and text takes their place, and the text is
/// masked with what the tag gives (a synthetic initialisation vector, RFC 5297, with HMAC-SHA256
/// for both). That costs two hashes and 18 bytes.
#[derive(Clone)]
pub struct StableEnvelopes {
    keys: Keyring<StableKey>,
}

impl StableEnvelopes {
    /// With these secrets, for this purpose.
    pub fn new(keys: impl Into<Keyring>, purpose: &[u8]) -> Self {
        let keys: Keyring = keys.into();
        Self { keys: keys.map(|secret| StableKey::new(secret, purpose)) }
    }

    /// A text in an envelope that opens only with the same `bound`.
    pub fn seal(&self, bound: &[u8], plain: &[u8]) -> Vec<u8> {
        let Named { id, key } = &self.keys.current;
        let mut envelope = head(FORM_STABLE, *id);
        let mut text = plain.to_vec();
        text.push(FILL);
        text.resize(text.len().next_multiple_of(BLOCK_BYTES), 0);
        let whole = key.tag(&envelope, bound, &text);
        let whole: &[u8] = whole.as_ref();
        let tag = &whole[..STABLE_TAG_BYTES];
        key.mask(tag, &mut text);
        envelope.extend_from_slice(tag);
        envelope.append(&mut text);
        envelope
    }

    /// Whether this is as long as an envelope is.
    pub fn is_one(bytes: &[u8]) -> bool {
        let before = HEAD_BYTES + STABLE_TAG_BYTES;
        bytes.len() > before && (bytes.len() - before).is_multiple_of(BLOCK_BYTES)
    }

    /// The text in an envelope, if it is one of ours, of this purpose and with this `bound`.
    pub fn open(&self, bound: &[u8], envelope: &[u8]) -> Result<Vec<u8>, Unopened> {
        let parts = Parts::of(FORM_STABLE, envelope)?;
        self.keys.open(parts.id, |key| key.opened(bound, &parts))
    }
}

/// The keys of one secret for stable envelopes.
#[derive(Clone)]
struct StableKey {
    tags: hmac::Key,
    masks: hmac::Key,
}

impl StableKey {
    fn new(secret: &hmac::Key, purpose: &[u8]) -> Self {
        let derived = |part: &[u8]| {
            let own = hmac::sign(secret, &[purpose, part].concat());
            hmac::Key::new(hmac::HMAC_SHA256, own.as_ref())
        };
        Self { tags: derived(b" tag"), masks: derived(b" mask") }
    }

    fn opened(&self, bound: &[u8], parts: &Parts<'_>) -> Option<Vec<u8>> {
        let (tag, masked) = parts.sealed.split_at_checked(STABLE_TAG_BYTES)?;
        let mut text = masked.to_vec();
        self.mask(tag, &mut text);
        let whole = self.tag(parts.head, bound, &text);
        let whole: &[u8] = whole.as_ref();
        if !is_same_secret(tag, &whole[..STABLE_TAG_BYTES]) {
            return None;
        }
        // The zeros go, and `FILL` before them.
        while text.pop()? == 0 {}
        Some(text)
    }

    fn tag(&self, head: &[u8], bound: &[u8], text: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.tags);
        context.update(head);
        context.update(&(bound.len() as u64).to_be_bytes());
        context.update(bound);
        context.update(text);
        context.sign()
    }

    /// Masks a text; a second time gives the text again.
    fn mask(&self, tag: &[u8], text: &mut [u8]) {
        for (number, part) in (0_u64..).zip(text.chunks_mut(MASK_BYTES)) {
            let mut context = hmac::Context::with_key(&self.masks);
            context.update(tag);
            context.update(&number.to_be_bytes());
            let whole = context.sign();
            let mask: &[u8] = whole.as_ref();
            for (byte, other) in part.iter_mut().zip(mask) {
                *byte ^= other;
            }
        }
    }
}

/// Makes message authentication codes for one purpose: without the secret no one can make one, nor
/// change what has one.
#[derive(Clone)]
pub struct Macs {
    keys: Keyring,
}

impl Macs {
    /// With these secrets, for this purpose.
    pub fn new(keys: impl Into<Keyring>, purpose: &[u8]) -> Self {
        let keys: Keyring = keys.into();
        let derived = |secret: &hmac::Key| {
            let own = hmac::sign(secret, purpose);
            hmac::Key::new(hmac::HMAC_SHA256, own.as_ref())
        };
        Self { keys: keys.map(derived) }
    }

    /// The name of the secret that new ones are made with.
    pub fn current(&self) -> KeyId {
        self.keys.current.id
    }

    /// That of these parts, each with its length, with the secret of this name; none where it is
    /// not one of ours.
    pub fn mac(&self, name: &str, parts: &[&[u8]]) -> Option<[u8; SECRET_BYTES]> {
        let named = self.keys.all().find(|one| one.id.to_string() == name)?;
        signed(&named.key, parts)
    }

    /// The same with the secret that new ones are made with, which needs no search for its name.
    pub fn current_mac(&self, parts: &[&[u8]]) -> Option<[u8; SECRET_BYTES]> {
        signed(&self.keys.current.key, parts)
    }
}

/// The mac of these parts, each with its length.
fn signed(key: &hmac::Key, parts: &[&[u8]]) -> Option<[u8; SECRET_BYTES]> {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let whole = context.sign();
    let whole: &[u8] = whole.as_ref();
    whole.try_into().ok()
}

fn head(form: u8, id: KeyId) -> Vec<u8> {
    once(form).chain(id.0).collect()
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
    /// `hushhush`, sealed with the secret of these tests.
    const SEALED: &str = "0229bfed58000102030405060708090a0b0c0d0e0f\
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
    fn an_envelope_round_trips_and_its_format_is_stable() {
        let sealed = envelopes().seal(BOUND, SALT, b"hushhush").unwrap();
        assert_eq!(sealed, bytes(SEALED));
        assert_eq!(sealed.len(), b"hushhush".len() + ENVELOPE_BYTES);
        assert_eq!(envelopes().open(BOUND, &sealed), Ok(b"hushhush".to_vec()));
        let nothing = envelopes().seal(b"", 1, b"").unwrap();
        assert_eq!(envelopes().open(b"", &nothing), Ok(Vec::new()));
    }

    #[test]
    fn a_modified_envelope_does_not_open() {
        let envelope = bytes(SEALED);
        for index in 0..envelope.len() {
            let mut changed = envelope.clone();
            changed[index] ^= 3;
            assert!(envelopes().open(BOUND, &changed).is_err(), "{index}");
            let cut = envelopes().open(BOUND, &envelope[..index]);
            assert_eq!(cut, Err(Unopened::Changed), "cut at {index}");
        }
    }

    #[test]
    fn an_envelope_is_bound_to_its_purpose_and_context() {
        let (envelope, other) = (bytes(SEALED), Envelopes::new([7; 32], b"other"));
        assert_eq!(envelopes().open(b"token des", &envelope), Err(Unopened::Changed));
        assert_eq!(other.open(BOUND, &envelope), Err(Unopened::Changed));
        assert!(Envelopes::new([8; 32], PURPOSE).open(BOUND, &envelope).is_err());
    }

    fn replaced() -> Keyring {
        Keyring::new([9; 32]).with_older([8; 32]).with_older([7; 32])
    }

    #[test]
    fn envelopes_of_an_older_secret_open_and_new_ones_use_the_newest() {
        let replaced = Envelopes::new(replaced(), PURPOSE);
        assert!(replaced.open(BOUND, &bytes(SEALED)).is_ok());
        let sealed = replaced.seal(BOUND, SALT, b"hushhush").unwrap();
        let unknown = envelopes().open(BOUND, &sealed).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "it was sealed with the secret key `ee43bd8c`, which this server does not have"
        );
        assert!(Envelopes::new([9; 32], PURPOSE).open(BOUND, &sealed).is_ok());
    }

    /// `42` for `list`, in a stable envelope.
    const STABLE: &str = "0329bfed5887d9f79a4c626d7af5b609fb1c7aea175787d8f2901084c8ce";

    fn stable(keys: impl Into<Keyring>) -> StableEnvelopes {
        StableEnvelopes::new(keys, b"waypost cursor")
    }

    #[test]
    fn a_stable_envelope_is_the_same_for_the_same_text() {
        let envelope = stable([7; 32]).seal(b"list", b"42");
        assert_eq!(envelope, bytes(STABLE));
        assert!(StableEnvelopes::is_one(&envelope));
        assert_eq!(stable([7; 32]).open(b"list", &envelope), Ok(b"42".to_vec()));
        assert_eq!(stable([7; 32]).open(b"lis", &envelope), Err(Unopened::Changed));
        for text in ["", "123456789ab", "123456789abc", &"x".repeat(1_000)] {
            let sealed = stable([7; 32]).seal(b"", text.as_bytes());
            assert!(StableEnvelopes::is_one(&sealed) && sealed.len().is_multiple_of(3), "{text}");
            assert_eq!(stable([7; 32]).open(b"", &sealed), Ok(text.as_bytes().to_vec()));
        }
    }

    #[test]
    fn a_modified_stable_envelope_does_not_open() {
        let envelope = bytes(STABLE);
        for index in 0..envelope.len() {
            let mut changed = envelope.clone();
            changed[index] ^= 3;
            assert!(stable([7; 32]).open(b"list", &changed).is_err(), "{index}");
            let cut = stable([7; 32]).open(b"list", &envelope[..index]);
            assert!(cut.is_err(), "cut at {index}");
        }
        let headless = stable([7; 32]).open(b"list", &envelope[HEAD_BYTES..]);
        assert!(headless.is_err(), "without a head");
    }

    #[test]
    fn a_stable_envelope_of_an_older_secret_opens() {
        let old = bytes(STABLE);
        assert_eq!(stable(replaced()).open(b"list", &old), Ok(b"42".to_vec()));
        assert_ne!(stable(replaced()).seal(b"list", b"42"), old);
        let gone = [9_u8; 32];
        let unknown = Unopened::UnknownKey(stable([7; 32]).keys.current.id);
        assert_eq!(stable(gone).open(b"list", &old), Err(unknown));
    }

    #[test]
    fn a_mac_depends_on_secret_purpose_and_parts() {
        let macs = Macs::new(replaced(), b"rows");
        let name = macs.current().to_string();
        let parts: [&[u8]; 2] = [b"ab", b"c"];
        let mac = macs.mac(&name, &parts).unwrap();
        assert_eq!(macs.mac(&name, &parts), Some(mac));
        assert_eq!(macs.current_mac(&parts), Some(mac));
        let others: [&[u8]; 2] = [b"a", b"bc"];
        assert_ne!(macs.mac(&name, &others), Some(mac));
        let old = Macs::new([7; 32], b"rows").current().to_string();
        assert!(macs.mac(&old, &parts).is_some_and(|other| other != mac));
        assert_ne!(Macs::new(replaced(), b"other").mac(&name, &parts), Some(mac));
        assert_eq!(Macs::new([7; 32], b"rows").mac(&name, &parts), None);
    }

    #[test]
    fn a_ring_shows_names_only() {
        let shown = format!("{:?}", Keyring::new([9; 32]).with_older([7; 32]));
        assert_eq!(shown, "[KeyId([238, 67, 189, 140]), KeyId([41, 191, 237, 88])]");
    }
}
