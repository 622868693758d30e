//! Secret texts, which are never shown, and their constant-time comparison.

use std::fmt;
use std::hint::black_box;

/// A text that is never shown: a key, a token.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Keeps this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the wire only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Whether two secrets are the same. All of them is compared, however early they differ: how long
/// it takes says nothing of either but how long it is.
pub fn is_same_secret(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    // `black_box` takes the exact difference, so the compiler can leave no byte out. It may still
    // compare many of them in one step.
    let difference = pairs.fold(0_u8, |seen, (left, right)| seen | (left ^ right));
    one.len() == other.len() && black_box(difference) == 0
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_that_differ_anywhere_are_not_equal() {
        assert!(is_same_secret(b"", b"") && is_same_secret(b"abc", b"abc"));
        for other in ["abd", "bbc", "ab", "abcd", ""] {
            assert!(!is_same_secret(b"abc", other.as_bytes()), "{other}");
        }
        let long = vec![7; 1_000];
        for place in 0..long.len() {
            let mut other = long.clone();
            other[place] ^= 0x80;
            assert!(!is_same_secret(&long, &other), "{place}");
        }
    }
}
