//! The credential of a request: parsed from one header, with malformed ones refused before
//! verification. It is never taken from a query, and never shown.

use ring::digest::SHA256_OUTPUT_LEN;
use ring::hmac;
use std::fmt;

/// No credential is longer.
pub const SENT_BYTES_MAX: usize = 16 * 1024;

/// A credential as it was sent, where its request holds it. Nothing is known of it yet.
#[derive(Clone, Copy)]
pub struct SentCredential<'r> {
    text: &'r str,
}

/// Without the text.
impl fmt::Debug for SentCredential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SentCredential(***)")
    }
}

/// HMAC-SHA256 of a credential: what is remembered of one that was good.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u8; SHA256_OUTPUT_LEN]);

/// Makes fingerprints. The process makes their key when it starts and shows it to no one, so that
/// a fingerprint tells nothing about its credential.
pub(crate) struct Fingerprints(hmac::Key);

impl Fingerprints {
    /// With this random key.
    pub(crate) fn new(key: [u8; SHA256_OUTPUT_LEN]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    /// By what a credential is found again.
    pub(crate) fn of(&self, text: &str) -> Fingerprint {
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        bytes.copy_from_slice(hmac::sign(&self.0, text.as_bytes()).as_ref());
        Fingerprint(bytes)
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
    #[error("the credential is empty")]
    Empty,
    /// Control characters, or what is not ASCII.
    #[error("the credential has other characters than printable ASCII")]
    Characters,
    /// More than 16 KiB.
    #[error("the credential is longer than 16 KiB")]
    TooLong,
}

impl<'r> SentCredential<'r> {
    /// The credential in all values of `Authorization` and `X-Api-Key`; `None` if there are none.
    pub fn of(authorization: &[&'r [u8]], api_key: &[&'r [u8]]) -> Result<Option<Self>, Malformed> {
        match (authorization, api_key) {
            ([], []) => Ok(None),
            ([value], []) => Self::bearer(value).map(Some),
            ([], [value]) => Self::plain(value).map(Some),
            _ => Err(Malformed::Several),
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
        // No key or token has blanks, but an admin key is whatever its operator chose.
        if !value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
            return Err(Malformed::Characters);
        }
        let text = std::str::from_utf8(value).map_err(|_| Malformed::Characters)?;
        Ok(Self { text })
    }

    /// The text itself.
    pub fn text(&self) -> &'r str {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(value: &[u8]) -> Result<String, Malformed> {
        SentCredential::of(&[value], &[]).map(|sent| sent.unwrap().text().to_owned())
    }

    fn api_key(value: &[u8]) -> Result<String, Malformed> {
        SentCredential::of(&[], &[value]).map(|sent| sent.unwrap().text().to_owned())
    }

    #[test]
    fn a_credential_is_in_one_of_two_headers() {
        assert!(SentCredential::of(&[], &[]).unwrap().is_none());
        for value in ["Bearer abc", "bearer abc", "BEARER   abc", " Bearer abc ", "Bearer\tabc"] {
            assert_eq!(bearer(value.as_bytes()).as_deref(), Ok("abc"), "{value}");
        }
        assert_eq!(bearer(b"Bearer my own words").as_deref(), Ok("my own words"));
        assert_eq!(api_key(b" abc ").as_deref(), Ok("abc"));
        assert_eq!(api_key(b"Bearer").as_deref(), Ok("Bearer"), "a key has no scheme");
    }

    #[test]
    fn two_credentials_are_refused_even_if_equal() {
        let key: &[u8] = b"abc";
        let one: &[u8] = b"Bearer abc";
        let basic: &[u8] = b"Basic eA==";
        let empty: &[u8] = b"";
        type Values<'a> = &'a [&'a [u8]];
        let cases: [(Values<'_>, Values<'_>); 5] = [
            (&[one, one], &[]),
            (&[], &[key, key]),
            (&[one], &[key]),
            (&[one], &[empty]),
            (&[basic], &[key]),
        ];
        for (authorization, api_key) in cases {
            let several = SentCredential::of(authorization, api_key).unwrap_err();
            assert_eq!(several, Malformed::Several, "{authorization:?} {api_key:?}");
        }
    }

    #[test]
    fn a_malformed_credential_is_refused_with_its_reason() {
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
    fn a_credential_that_is_too_long_is_refused() {
        let whole = "a".repeat(SENT_BYTES_MAX);
        assert_eq!(api_key(whole.as_bytes()).as_deref(), Ok(whole.as_str()));
        let more = format!("{whole}a");
        assert_eq!(api_key(more.as_bytes()), Err(Malformed::TooLong));
        assert_eq!(bearer(format!("Bearer {more}").as_bytes()), Err(Malformed::TooLong));
    }

    #[test]
    fn a_fingerprint_is_of_one_text_and_one_key() {
        let one = Fingerprints::new([1; SHA256_OUTPUT_LEN]);
        let other = Fingerprints::new([2; SHA256_OUTPUT_LEN]);
        let of = |made_by: &Fingerprints, text| made_by.of(text).0;
        assert_eq!(of(&one, "abc"), of(&one, "abc"));
        for text in ["abd", "ab", "abc0", "cba"] {
            assert_ne!(of(&one, "abc"), of(&one, text), "{text}");
        }
        assert_ne!(of(&one, "abc"), of(&other, "abc"));
    }

    #[test]
    fn a_credential_is_never_shown() {
        let sent = SentCredential::of(&[b"Bearer hush"], &[]).unwrap();
        assert!(!format!("{sent:?}").contains("hush"));
    }
}
