//! Makes an invalid message from valid ones.

use super::tree::Tree;
use crate::sim::rng::Rng;
use serde_json::Value;

/// How many changes one message gets at most.
const CHANGES_MAX: u64 = 4;
/// The longest text, and the deepest nesting, that is put into a message.
const LONG_MAX: u64 = 20_000;
const DEEP_MAX: u64 = 5_000;

/// What stands in for a value: JSON at its edges, words of the protocols, and no JSON.
const LEAVES: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "-1",
    "1.5",
    "1e400",
    "-1e-400",
    "9007199254740993",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890123456789012345678901234567890",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800x\"",
    "\"\u{202e}\u{feff}\u{0}\"",
    "\"\u{e4}\\n\\r\\t\\\\\"",
    "[]",
    "{}",
    "[[],{}]",
    "{\"\":null}",
    "\"2.0\"",
    "\"1.0\"",
    "2.0",
    "\"2026-07-28\"",
    "\"2025-11-25\"",
    "\"2025-03-26\"",
    "\"1900-01-01\"",
    "\"initialize\"",
    "\"ping\"",
    "\"server/discover\"",
    "\"tools/call\"",
    "\"tools/list\"",
    "\"prompts/get\"",
    "\"resources/read\"",
    "\"resources/subscribe\"",
    "\"subscriptions/listen\"",
    "\"tasks/get\"",
    "\"tasks/result\"",
    "\"notifications/cancelled\"",
    "\"rpc.discover\"",
    "\"math__add\"",
    "\"math::add\"",
    "\"math__conditional_add\"",
    "\"interaction__greeting\"",
    "\"_-zz_-\"",
    "\"waypost://sessions/..%2f..\"",
    "\"waypost://plans/{id}\"",
    "\"file:///etc/passwd\"",
    "\"=?base64?AAAA?=\"",
    "{\"elicitation\":{\"form\":{}},\"sampling\":{},\"roots\":{}}",
    "{\"type\":\"object\",\"$ref\":\"#\"}",
    "NaN",
    "-",
    "01",
    "+1",
    "'a'",
    "undefined",
    "\"",
    "}",
    ",",
    "",
];

/// What stands in for a key.
const KEYS: &[&str] = &[
    "\"jsonrpc\"",
    "\"id\"",
    "\"\\u0069d\"",
    "\"method\"",
    "\"params\"",
    "\"result\"",
    "\"error\"",
    "\"_meta\"",
    "\"name\"",
    "\"arguments\"",
    "\"uri\"",
    "\"cursor\"",
    "\"taskId\"",
    "\"requestState\"",
    "\"inputResponses\"",
    "\"requestId\"",
    "\"progressToken\"",
    "\"protocolVersion\"",
    "\"capabilities\"",
    "\"io.modelcontextprotocol/protocolVersion\"",
    "\"io.modelcontextprotocol/clientCapabilities\"",
    "\"io.modelcontextprotocol/logLevel\"",
    "\"notifications\"",
    "\"resourceSubscriptions\"",
    "\"__proto__\"",
    "\"\"",
    "\"\\ud800\"",
    "7",
    "\"a",
];

/// Bytes that end something, or cannot stand where they are.
const BYTES: &[u8] = b"\0\"\\{}[]:,\n\r\t 0-eE.\x7f\x80\xbf\xc0\xe2\xed\xf5\xff";

/// A message made wrong, with pieces of another one. Once in a while it stays as it is.
pub fn mangle(rng: &mut Rng, message: &[u8], other: &[u8]) -> Vec<u8> {
    let parsed = serde_json::from_slice::<Value>(message).ok().map(|value| Tree::of(&value));
    let mut bytes = match parsed {
        Some(mut tree) if rng.chance(75) => {
            let mut donor = serde_json::from_slice::<Value>(other)
                .map_or(Tree::Leaf("null".to_owned()), |value| Tree::of(&value));
            for _ in 0..=rng.below(CHANGES_MAX) {
                change(rng, &mut tree, &mut donor);
            }
            tree.to_string().into_bytes()
        }
        _ => message.to_vec(),
    };
    if rng.chance(25) {
        for _ in 0..=rng.below(CHANGES_MAX) {
            scratch(rng, &mut bytes, other);
        }
    }
    bytes
}

/// Changes one node of a tree.
fn change(rng: &mut Rng, tree: &mut Tree, donor: &mut Tree) {
    let number = rng.below(tree.count() as u64) as usize;
    let Some(node) = tree.nth(number) else { return };
    match rng.below(9) {
        0..=2 => *node = Tree::Leaf(leaf(rng)),
        3 => remove(rng, node),
        4 => repeat(rng, node),
        5 => rename(rng, node),
        6 => add(rng, node),
        7 => wrap(rng, node),
        _ => {
            let number = rng.below(donor.count() as u64) as usize;
            if let Some(taken) = donor.nth(number) {
                *node = taken.clone();
            }
        }
    }
}

fn leaf(rng: &mut Rng) -> String {
    match rng.below(20) {
        0 => format!("\"{}\"", "x".repeat(rng.below(LONG_MAX) as usize)),
        1 => "9".repeat(rng.below(2_000) as usize),
        2 => {
            let depth = rng.below(DEEP_MAX) as usize;
            format!("{}{}", "[".repeat(depth), "]".repeat(depth))
        }
        3 => {
            // Around the depths at which parsers give up.
            let depth = 60 + rng.below(80) as usize;
            format!("{}null{}", "{\"a\":".repeat(depth), "}".repeat(depth))
        }
        4 => {
            let letter = char::from_u32(rng.below(0x11_0000) as u32).unwrap_or('\u{fffd}');
            Value::from(letter.to_string()).to_string()
        }
        _ => rng.pick(LEAVES).map_or(String::new(), |leaf| (*leaf).to_owned()),
    }
}

fn key(rng: &mut Rng) -> String {
    rng.pick(KEYS).map_or(String::new(), |key| (*key).to_owned())
}

fn remove(rng: &mut Rng, node: &mut Tree) {
    match node {
        Tree::List(items) if !items.is_empty() => {
            items.remove(rng.below(items.len() as u64) as usize);
        }
        Tree::Object(members) if !members.is_empty() => {
            members.remove(rng.below(members.len() as u64) as usize);
        }
        _ => *node = Tree::Leaf("null".to_owned()),
    }
}

/// An item many times, or a key twice.
fn repeat(rng: &mut Rng, node: &mut Tree) {
    match node {
        Tree::List(items) => {
            let item = rng.pick(items.as_slice()).cloned().unwrap_or(Tree::Leaf("null".to_owned()));
            let count = rng.below(300) as usize;
            items.extend(std::iter::repeat_n(item, count));
        }
        Tree::Object(members) => {
            let Some((key, member)) = rng.pick(members.as_slice()).cloned() else { return };
            let again = if rng.chance(50) { member } else { Tree::Leaf(leaf(rng)) };
            let at = rng.below(members.len() as u64 + 1) as usize;
            members.insert(at, (key, again));
        }
        Tree::Leaf(text) => *node = Tree::Leaf(format!("{text}{text}")),
    }
}

fn rename(rng: &mut Rng, node: &mut Tree) {
    let Tree::Object(members) = node else { return };
    let at = rng.below(members.len() as u64) as usize;
    if let Some((known, _)) = members.get_mut(at) {
        *known = key(rng);
    }
}

fn add(rng: &mut Rng, node: &mut Tree) {
    let member = Tree::Leaf(leaf(rng));
    match node {
        Tree::Leaf(_) => *node = Tree::Object(vec![(key(rng), member)]),
        Tree::List(items) => items.push(member),
        Tree::Object(members) => {
            for _ in 0..=rng.below(3) {
                members.push((key(rng), Tree::Leaf(leaf(rng))));
            }
        }
    }
}

fn wrap(rng: &mut Rng, node: &mut Tree) {
    for _ in 0..=rng.below(3) {
        let inside = std::mem::replace(node, Tree::List(Vec::new()));
        *node = if rng.chance(50) {
            Tree::List(vec![inside])
        } else {
            Tree::Object(vec![(key(rng), inside)])
        };
    }
}

/// Changes some bytes.
pub fn scratch(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let length = bytes.len() as u64;
    let at = rng.below(length + 1) as usize;
    let end = at + rng.below(length + 1 - at as u64) as usize;
    let byte = rng.pick(BYTES).copied().unwrap_or(0);
    match rng.below(8) {
        0 => {
            if let Some(known) = bytes.get_mut(at) {
                *known ^= 1u8 << rng.below(8);
            }
        }
        1 => {
            if let Some(known) = bytes.get_mut(at) {
                *known = byte;
            }
        }
        2 => bytes.insert(at, byte),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => bytes.truncate(at),
        6 => {
            let from = rng.below(other.len() as u64 + 1) as usize;
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => {
            let before: &[u8] =
                if rng.chance(50) { b"\xef\xbb\xbf" } else { b"\x1f\x8b\x08\x00{}" };
            bytes.splice(0..0, before.iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_messages_and_they_are_wrong_in_many_ways() {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":[1,2]}}"#;
        let made = |seed: u64| {
            let mut rng = Rng::new(seed);
            (0..500).map(|_| mangle(&mut rng, message, b"[7]")).collect::<Vec<_>>()
        };
        let first = made(7);
        assert_eq!(first, made(7));
        assert_ne!(first, made(8));
        let parsed = |bytes: &&Vec<u8>| serde_json::from_slice::<Value>(bytes).is_ok();
        let json = first.iter().filter(parsed).count();
        // Mostly JSON, or nothing behind the parser would ever be reached.
        assert!((120..450).contains(&json), "{json} of 500");
        assert!(first.iter().any(|bytes| std::str::from_utf8(bytes).is_err()));
    }

    #[test]
    fn an_empty_message_can_be_mangled() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            mangle(&mut rng, b"", b"");
            let mut bytes = Vec::new();
            scratch(&mut rng, &mut bytes, b"");
        }
    }
}
