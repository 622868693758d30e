//! What differs from run to run, made alike: ids become numbers by first appearance, so the same
//! id is still the same; times, digests and random words become placeholders.

use std::collections::BTreeMap;

const PREFIXES: [&str; 4] = ["ses_", "run_", "ask_", "call_"];
const ID_DIGITS: usize = 32;

/// Remembers which ids it has met, over all texts of one side.
#[derive(Debug, Default)]
pub(super) struct Mask {
    known: BTreeMap<String, usize>,
}

impl Mask {
    /// The text with everything volatile masked.
    pub(super) fn mask(&mut self, text: &str) -> String {
        let mut masked = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            // Inside a word nothing volatile begins.
            let at_word = !masked.ends_with(is_word);
            let found = if at_word { self.volatile(rest) } else { None };
            let (shown, length) = found.unwrap_or_else(|| (first.to_string(), first.len_utf8()));
            masked.push_str(&shown);
            rest = &rest[length..];
        }
        masked
    }

    /// The mask of what begins here, and how long it is.
    fn volatile(&mut self, text: &str) -> Option<(String, usize)> {
        if let Some(length) = time(text).or_else(|| http_date(text)) {
            return Some(("<time>".to_owned(), length));
        }
        let word = &text[..text.find(|c: char| !is_word(c)).unwrap_or(text.len())];
        for prefix in PREFIXES {
            let digits = word.strip_prefix(prefix);
            if digits.is_some_and(|digits| is_hex(digits, ID_DIGITS)) {
                let next = self.known.len() + 1;
                let number = *self.known.entry(word.to_owned()).or_insert(next);
                return Some((format!("<{prefix}{number}>"), word.len()));
            }
        }
        // sha256 digests, trace ids.
        let is_random = is_hex(word, 64) || is_hex(word, ID_DIGITS);
        is_random.then(|| ("<hex>".to_owned(), word.len()))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_hex(word: &str, length: usize) -> bool {
    word.len() == length && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The length of an RFC 3339 time at the beginning.
fn time(text: &str) -> Option<usize> {
    let mut length = shape(text, "0000-00-00T00:00:00")?;
    if text[length..].starts_with('.') {
        length += 1 + text[length + 1..].bytes().take_while(u8::is_ascii_digit).count();
    }
    let rest = &text[length..];
    if rest.starts_with('Z') {
        return Some(length + 1);
    }
    let offset = shape(rest, "+00:00").or_else(|| shape(rest, "-00:00"))?;
    Some(length + offset)
}

/// The length of the time in a `date` header at the beginning.
fn http_date(text: &str) -> Option<usize> {
    shape(text, "Aaa, 00 Aaa 0000 00:00:00 GMT")
}

/// The length of a shape at the beginning: 0 is a digit, A and a are letters, the rest is itself.
fn shape(text: &str, shape: &str) -> Option<usize> {
    let mut bytes = text.bytes();
    let fits = shape.bytes().all(|wanted| {
        bytes.next().is_some_and(|byte| match wanted {
            b'0' => byte.is_ascii_digit(),
            b'A' => byte.is_ascii_uppercase(),
            b'a' => byte.is_ascii_lowercase(),
            other => byte == other,
        })
    });
    fits.then_some(shape.len())
}

#[test]
fn the_same_id_stays_the_same_and_times_and_digests_go() {
    let (a, b, digest) = ("0".repeat(32), "ab".repeat(16), "f".repeat(64));
    let mut mask = Mask::default();
    let first = format!("{{\"id\":\"run_{a}\",\"session\":\"ses_{b}\",\"digest\":\"{digest}\"}}");
    assert_eq!(
        mask.mask(&first),
        "{\"id\":\"<run_1>\",\"session\":\"<ses_2>\",\"digest\":\"<hex>\"}"
    );
    assert_eq!(mask.mask(&format!("/runs/run_{a} run_{b}")), "/runs/<run_1> <run_3>");
    assert_eq!(
        mask.mask("at 2026-11-15T02:17:25.123Z, 2026-11-15T02:17:25+01:00"),
        "at <time>, <time>"
    );
    assert_eq!(mask.mask("date: Sun, 15 Nov 2026 02:17:25 GMT"), "date: <time>");
    let plain = "run_1, 2026-11-15, grün, 12 Aaa, xrun_";
    assert_eq!(mask.mask(&format!("{plain}{a}")), format!("{plain}{a}"));
}
