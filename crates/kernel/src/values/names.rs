//! Names that other systems accept, made so that they can be turned back. Tools have names such as
//! `math::add`, plans such as `trade/settle`; MCP and the model providers take fewer characters.
//! A name in MCP, and the escaped name for models, never depend on what else there is, so they are
//! stable for ever. The short name for models is for reading: two tools may have the same one.
//! Also: which names of ours are plain enough for a path.

use crate::values::ids::ContentHash;
use std::fmt::Write;

/// Whether a text can name an agent or a pipeline. It stands in paths, where dots alone would lead
/// elsewhere.
pub(crate) fn is_plain_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    text.chars().all(fits) && text.chars().any(|c| c.is_ascii_alphanumeric())
}

/// Which characters a system accepts beside letters, digits, `_` and `-`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// MCP: the dot as well.
    Mcp,
    /// What every model provider takes: nothing more.
    Model,
}

/// How long a name may be in MCP.
pub const MCP_NAME_CHARS_MAX: usize = 128;

/// How long a name may be for every model provider.
pub const MODEL_NAME_CHARS_MAX: usize = 64;
/// How many digits of its hash stand for the rest of a longer name.
const MODEL_HASH_DIGITS: usize = 16;

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-')
            || (byte == b'.' && self == Alphabet::Mcp)
    }
}

/// Whether a tool of this name may belong to another server whose tools begin like this. Without a
/// prefix they have names of MCP, in which there is no `::`, so that a misspelt tool of ours is not
/// taken for one that is still to come.
pub fn may_come(name: &str, prefix: &str) -> bool {
    if prefix.is_empty() { !name.contains("::") } else { name.starts_with(prefix) }
}

/// The name in this alphabet: `::` is `__`, `/` is `--`, any other foreign byte is `_-` and its
/// two hex digits. A `_` or `-` that would be taken for the beginning of one of these is written
/// so, too.
pub fn outward(name: &str, alphabet: Alphabet) -> String {
    if is_itself(name, alphabet) {
        return name.to_owned();
    }
    let mut parts: Vec<Part> = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"::") {
            parts.push(Part::Text("__"));
            rest = after;
            continue;
        }
        parts.push(match byte {
            b'/' => Part::Text("--"),
            byte if alphabet.has(*byte) => Part::Byte(*byte),
            byte => Part::Escaped(*byte),
        });
        rest = after;
    }
    // From the end: whether a byte must be escaped depends on what is written after it.
    let mut next = 0;
    for part in parts.iter_mut().rev() {
        if let Part::Byte(byte) = *part
            && ((byte == b'_' && matches!(next, b'_' | b'-')) || (byte == b'-' && next == b'-'))
        {
            *part = Part::Escaped(byte);
        }
        next = part.first();
    }
    let mut written = String::with_capacity(name.len() + 8);
    for part in parts {
        match part {
            Part::Text(text) => written.push_str(text),
            Part::Byte(byte) => written.push(char::from(byte)),
            // Writing to a string cannot fail.
            Part::Escaped(byte) => {
                let _ = write!(written, "_-{byte:02x}");
            }
        }
    }
    written
}

/// Whether a name is written as it is, as most are.
fn is_itself(name: &str, alphabet: Alphabet) -> bool {
    let bytes = name.as_bytes();
    let mark = |pair: &[u8]| matches!(pair, b"__" | b"--" | b"_-");
    bytes.iter().all(|byte| alphabet.has(*byte)) && !bytes.windows(2).any(mark)
}

/// The short name for models: `.` is `__` as `::` is, and a `__` stays. Two names may be written
/// alike, so code that shows several tools writes those by [`escaped_for_models`].
pub fn for_models(name: &str) -> String {
    if is_itself(name, Alphabet::Model) {
        return within_models(name.to_owned(), name);
    }
    let marked = name.replace("::", "__").replace('.', "__");
    let parts: Vec<String> =
        marked.split("__").map(|part| outward(part, Alphabet::Model)).collect();
    within_models(parts.join("__"), name)
}

/// The name for models that no other tool has.
pub fn escaped_for_models(name: &str) -> String {
    within_models(outward(name, Alphabet::Model), name)
}

/// The short name of a tool that a model, or a file for one, names in either way.
pub fn shortened(written: &str) -> String {
    inward(written, Alphabet::Model).map_or_else(|| written.to_owned(), |name| for_models(&name))
}

/// One that is too long for some provider ends in digits of its name's hash; code that shows it
/// keeps what it stands for, since it cannot be turned back.
fn within_models(mut written: String, name: &str) -> String {
    if written.len() > MODEL_NAME_CHARS_MAX {
        let hash = ContentHash::of(name.as_bytes());
        // All of it is ASCII, so that any place is between two characters.
        written.truncate(MODEL_NAME_CHARS_MAX - MODEL_HASH_DIGITS - 1);
        written.push('_');
        written.extend(hash.as_str().chars().take(MODEL_HASH_DIGITS));
    }
    written
}

/// One piece of a written name.
enum Part {
    Text(&'static str),
    Byte(u8),
    Escaped(u8),
}

impl Part {
    fn first(&self) -> u8 {
        match self {
            Part::Text(text) => text.as_bytes().first().copied().unwrap_or(0),
            Part::Byte(byte) => *byte,
            Part::Escaped(_) => b'_',
        }
    }
}

/// The name that was written so; none if nothing is written so.
pub fn inward(written: &str, alphabet: Alphabet) -> Option<String> {
    // One name is written in one way only.
    decoded(written).filter(|name| outward(name, alphabet) == written)
}

fn decoded(written: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = if let Some(after) = rest.strip_prefix(b"__") {
            bytes.extend_from_slice(b"::");
            after
        } else if let Some(after) = rest.strip_prefix(b"--") {
            bytes.push(b'/');
            after
        } else if let Some(after) = rest.strip_prefix(b"_-") {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            &after[2..]
        } else {
            bytes.push(*byte);
            after
        };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_prefixes_mark_names_that_may_still_come() {
        assert!(may_come("shop.find", "shop.") && !may_come("find", "shop."));
        assert!(may_come("find", "") && !may_come("math::ad", ""));
    }

    #[test]
    fn common_names_stay_readable() {
        for (name, written) in [
            ("math::add", "math__add"),
            ("trade/settle-late", "trade--settle-late"),
            ("github.create_issue", "github.create_issue"),
            ("test_simple_text", "test_simple_text"),
            ("a b", "a_-20b"),
            ("ä", "_-c3_-a4"),
        ] {
            assert_eq!(outward(name, Alphabet::Mcp), written);
            assert_eq!(inward(written, Alphabet::Mcp).as_deref(), Some(name));
        }
    }

    #[test]
    fn escaped_model_names_resolve_to_short_names() {
        for (name, short, escaped) in [
            ("math::add", "math__add", "math__add"),
            ("github.create_event", "github__create_event", "github_-2ecreate_event"),
            ("a__b", "a__b", "a_-5f_b"),
            ("a_.b", "a___b", "a_-5f_-2eb"),
            ("trade/settle-late", "trade--settle-late", "trade--settle-late"),
            ("a--b", "a_-2d-b", "a_-2d-b"),
            ("a b.c", "a_-20b__c", "a_-20b_-2ec"),
        ] {
            assert_eq!(for_models(name), short);
            assert_eq!(escaped_for_models(name), escaped);
            assert_eq!(shortened(escaped), short);
            assert_eq!(shortened(short), short);
        }
        assert_eq!(shortened("a::b"), "a::b", "no model says so");
    }

    #[test]
    fn encoded_names_are_reversible_and_unique() {
        let letters = ["_", "-", ":", "::", "/", ".", "a", "2", "é"];
        let mut names = vec![String::new()];
        for _ in 0..5 {
            let longer = |name: &String| letters.map(|letter| format!("{name}{letter}"));
            let more: Vec<String> = names.iter().flat_map(longer).collect();
            names.extend(more);
            names.sort();
            names.dedup();
        }
        for alphabet in [Alphabet::Mcp, Alphabet::Model] {
            let mut seen = std::collections::HashMap::new();
            for name in &names {
                let written = outward(name, alphabet);
                assert!(written.bytes().all(|byte| alphabet.has(byte)), "{name}: {written}");
                assert_eq!(inward(&written, alphabet).as_ref(), Some(name), "{written}");
                assert_eq!(seen.insert(written, name), None);
            }
        }
    }

    #[test]
    fn a_name_that_is_too_long_for_models_ends_in_its_hash() {
        assert_eq!(for_models("math::add"), "math__add");
        let longest = "a".repeat(MODEL_NAME_CHARS_MAX);
        assert_eq!(for_models(&longest), longest);
        let one = format!("{longest}b");
        let other = format!("{longest}c");
        for name in [&one, &other, &"ä".repeat(40)] {
            let written = for_models(name);
            assert_eq!(written.len(), MODEL_NAME_CHARS_MAX, "{written}");
            assert!(written.bytes().all(|byte| Alphabet::Model.has(byte)), "{written}");
        }
        assert_ne!(for_models(&one), for_models(&other));
        // The short one fits where the escaped one would not.
        let dotted = ["ab"; 16].join(".");
        assert_eq!(for_models(&dotted), ["ab"; 16].join("__"));
        assert_eq!(escaped_for_models(&dotted).len(), MODEL_NAME_CHARS_MAX);
    }

    #[test]
    fn foreign_names_decode_to_none() {
        for written in ["_-", "_-2", "_-zz", "_-61", "_-ff", "a::b", "a/b"] {
            assert_eq!(inward(written, Alphabet::Mcp), None, "{written}");
        }
    }
}
