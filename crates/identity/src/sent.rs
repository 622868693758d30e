//! The credential that a request brings: the text of one header, and which texts are refused before
//! anyone looks at them. It is never taken from a query, and never shown.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use std::fmt;

/// No credential is longer.
pub const SENT_BYTES_MAX: usize = 16 * 1024;

/// A credential as it was sent, where its request holds it. Nothing is known of it yet, not even
/// whether it is a text.
#[derive(Clone, Copy)]
pub struct Sent<'r> {
    bytes: &'r [u8],
}

/// Without the text.
impl fmt::Debug for Sent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sent(***)")
    }
}

/// How many bytes a fingerprint has.
const FINGERPRINT_LEN: usize = 16;

/// What is remembered of a credential that was good.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u8; FINGERPRINT_LEN]);

/// Makes fingerprints: the mac of a credential (AES-GCM over nothing but it), with a key that this
/// process alone has and no one sees a mac of. So no one can find another text with the same
/// fingerprint, and a nonce that is always the same gives nothing away. One is made for each
/// credential that its connection does not know, and processors have instructions for this that
/// take less time than SHA-256.
pub(crate) struct Fingerprints(LessSafeKey);

impl Fingerprints {
    /// With a key that is made of these random bits.
    pub(crate) fn new(bits: u128) -> Result<Self, Unspecified> {
        Ok(Self(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &bits.to_ne_bytes())?)))
    }

    /// By what a credential is found again.
    pub(crate) fn of(&self, text: &str) -> Result<Fingerprint, Unspecified> {
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(text.as_bytes()), &mut [])?;
        Ok(Fingerprint(tag.as_ref().try_into().map_err(|_| Unspecified)?))
    }
}

/// Why what was sent is no credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Two of them, be they equal: which one was meant is anyone's guess.
    #[error("the request has more than one credential")]
    Several,
    /// Another scheme than `Bearer`.
    #[error("`Authorization` must be `Bearer` and a key or token")]
    Scheme,
    /// Nothing.
    #[error("the credential is empty")]
    Empty,
    /// Control characters, or what is not ASCII.
    #[error("the credential has other characters than printable ASCII")]
    Characters,
    /// More than 16 KiB.
    #[error("the credential is longer than 16 KiB")]
    TooLong,
}

impl<'r> Sent<'r> {
    /// What these headers bring: all values of `Authorization`, and all of `X-Api-Key`. None where
    /// there are none. `text` refuses characters that no credential has.
    pub fn of(
        authorization: impl IntoIterator<Item = &'r [u8]>,
        api_key: impl IntoIterator<Item = &'r [u8]>,
    ) -> Result<Option<Self>, Malformed> {
        let (mut authorization, mut api_key) = (authorization.into_iter(), api_key.into_iter());
        let (first, second) = (authorization.next(), api_key.next());
        if authorization.next().or_else(|| api_key.next()).is_some() {
            return Err(Malformed::Several);
        }
        match (first, second) {
            (None, None) => Ok(None),
            (Some(value), None) => Self::bearer(value).map(Some),
            (None, Some(value)) => Self::plain(value).map(Some),
            (Some(_), Some(_)) => Err(Malformed::Several),
        }
    }

    fn bearer(value: &'r [u8]) -> Result<Self, Malformed> {
        let value = value.trim_ascii();
        if value.is_empty() {
            return Err(Malformed::Empty);
        }
        let end = value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len());
        let (scheme, text) = value.split_at(end);
        if !scheme.eq_ignore_ascii_case(b"bearer") {
            return Err(Malformed::Scheme);
        }
        Self::plain(text)
    }

    fn plain(value: &'r [u8]) -> Result<Self, Malformed> {
        let value = value.trim_ascii();
        if value.is_empty() {
            return Err(Malformed::Empty);
        }
        if value.len() > SENT_BYTES_MAX {
            return Err(Malformed::TooLong);
        }
        Ok(Self { bytes: value })
    }

    /// The text, unless it has characters that no credential has.
    pub fn text(&self) -> Result<&'r str, Malformed> {
        // No key or token has blanks, but an admin key is whatever its operator chose. All bytes
        // are looked at, whatever the first ones are: so many are looked at in one step.
        let is_printable = |all: bool, byte: &u8| all & matches!(byte, b' '..=b'~');
        if !self.bytes.iter().fold(true, is_printable) {
            return Err(Malformed::Characters);
        }
        std::str::from_utf8(self.bytes).map_err(|_| Malformed::Characters)
    }

    /// All of it, to be compared.
    pub(crate) fn bytes(&self) -> &'r [u8] {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(value: &[u8]) -> Result<String, Malformed> {
        Sent::of([value], [])?.unwrap().text().map(str::to_owned)
    }

    fn api_key(value: &[u8]) -> Result<String, Malformed> {
        Sent::of([], [value])?.unwrap().text().map(str::to_owned)
    }

    #[test]
    fn a_credential_is_in_one_of_two_headers() {
        assert!(Sent::of([], []).unwrap().is_none());
        for value in ["Bearer abc", "bearer abc", "BEARER   abc", " Bearer abc ", "Bearer\tabc"] {
            assert_eq!(bearer(value.as_bytes()).as_deref(), Ok("abc"), "{value}");
        }
        assert_eq!(bearer(b"Bearer my own words").as_deref(), Ok("my own words"));
        assert_eq!(api_key(b" abc ").as_deref(), Ok("abc"));
        assert_eq!(api_key(b"Bearer").as_deref(), Ok("Bearer"), "a key has no scheme");
    }

    #[test]
    fn two_are_refused_even_if_they_are_equal() {
        let (key, one): (&[u8], &[u8]) = (b"abc", b"Bearer abc");
        let (basic, empty): (&[u8], &[u8]) = (b"Basic eA==", b"");
        type Values<'a> = &'a [&'a [u8]];
        let cases: [(Values<'_>, Values<'_>); 5] = [
            (&[one, one], &[]),
            (&[], &[key, key]),
            (&[one], &[key]),
            (&[one], &[empty]),
            (&[basic], &[key]),
        ];
        for (authorization, api_key) in cases {
            let (first, second) = (authorization.iter().copied(), api_key.iter().copied());
            let several = Sent::of(first, second).unwrap_err();
            assert_eq!(several, Malformed::Several, "{authorization:?} {api_key:?}");
        }
    }

    #[test]
    fn what_is_no_credential_is_told_apart() {
        let cases: [(&[u8], Malformed); 10] = [
            (b"", Malformed::Empty),
            (b"Bearer", Malformed::Empty),
            (b"Bearer ", Malformed::Empty),
            (b"Basic dXNlcjpwYXNz", Malformed::Scheme),
            (b"abc", Malformed::Scheme),
            (b"Bearerabc", Malformed::Scheme),
            (b"Bearer a\tb", Malformed::Characters),
            (b"Bearer a\x00c", Malformed::Characters),
            ("Bearer abc\u{e9}".as_bytes(), Malformed::Characters),
            (b"Bearer \xff", Malformed::Characters),
        ];
        for (value, why) in cases {
            assert_eq!(bearer(value), Err(why), "{value:?}");
        }
        assert_eq!(api_key(b"a\x7fb"), Err(Malformed::Characters));
        assert_eq!(api_key(b" "), Err(Malformed::Empty));
    }

    #[test]
    fn one_that_is_too_long_is_refused() {
        let whole = "a".repeat(SENT_BYTES_MAX);
        assert_eq!(api_key(whole.as_bytes()).as_deref(), Ok(whole.as_str()));
        let more = format!("{whole}a");
        assert_eq!(api_key(more.as_bytes()), Err(Malformed::TooLong));
        assert_eq!(bearer(format!("Bearer {more}").as_bytes()), Err(Malformed::TooLong));
    }

    #[test]
    fn a_fingerprint_is_of_one_text_and_one_key() {
        let (one, other) = (Fingerprints::new(1).unwrap(), Fingerprints::new(2).unwrap());
        let of = |made_by: &Fingerprints, text| made_by.of(text).unwrap().0;
        assert_eq!(of(&one, "abc"), of(&one, "abc"));
        for text in ["abd", "ab", "abc0", "cba"] {
            assert_ne!(of(&one, "abc"), of(&one, text), "{text}");
        }
        assert_ne!(of(&one, "abc"), of(&other, "abc"));
    }

    #[test]
    fn it_is_never_shown() {
        let sent = Sent::of([b"Bearer hush".as_slice()], []).unwrap();
        assert!(!format!("{sent:?}").contains("hush"));
    }
}
