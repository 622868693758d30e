//! Percent-decoding for URLs, references and headers.

/// A text whose percent signs are read; what is no text then stays as it is.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(escaped) if *byte == b'%' => {
                bytes.push(escaped);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_percent_escapes_are_decoded() {
        for (text, read) in [("a%20b", "a b"), ("%C3%A9", "é"), ("100%", "100%"), ("%zz", "%zz")] {
            assert_eq!(decoded(text), read);
        }
        assert_eq!(decoded("%ff"), "%ff");
        assert_eq!(decoded("%+5"), "%+5");
    }
}
