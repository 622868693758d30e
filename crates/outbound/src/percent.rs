//! Percent-encoding of URLs.

use std::fmt::Write;

pub use kernel::values::percent::decoded;

/// A text in which only letters, digits and `-._~` stand for themselves.
pub fn encoded(text: &str) -> String {
    escaped(text, b"")
}

/// A text in which these stand for themselves, too.
pub fn escaped(text: &str, more: &[u8]) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || more.contains(&byte) {
            written.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(written, "%{byte:02X}");
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_characters_are_percent_encoded() {
        assert_eq!(encoded("a b/é"), "a%20b%2F%C3%A9");
    }
}
