//! Queries, orders and cursors: most of them well formed, some of them hostile, or with bytes
//! changed. The same random numbers give the same texts everywhere.

use super::grammar::spoiled;
use super::hostile::Kind;
use super::mangle::scratch;
use crate::sim::rng::Rng;
use query::dates::read_moment;
use query::evaluate::order::{Key, Position};
use query::numbers::Number;
use query::records::cursor;
use std::fmt::Write;

/// What cursors are made for here.
pub const ASKED: &[&str] = &["realm", "Order", "text:a", "-n"];

/// How deep conditions nest.
const DEPTH: u64 = 4;
const FIELDS: &[&str] = &[
    "text", "n", "list", "list.name", "list[0].load", "list[*].name", "spot.deep", "at",
    "at.entityRefName", "extra", "extra.a.b", "extra[3].a", "id", "_id", "realm", "tags", "when",
    "day", "open", "dataDomain.ownerId", "none", "text.x", "expand", "null", "\u{e9}", "-a",
];
const SIGNS: &[&str] = &[":", ":!", ":<", ":>", ":<=", ":>=", ":", ":", " : ", "=", ":~", ":=["];
const VALUES: &[&str] = &[
    "a",
    "b c",
    "\"a\"",
    "\"a \"\"b\"\"\"",
    "\"\"",
    "x&y",
    "null",
    "true",
    "FALSE",
    "#1",
    "#-0",
    "#9223372036854775807",
    "##0.5",
    "##5",
    "##-1",
    "19.90",
    "-1",
    "1e400",
    "2024-01-31",
    "2024-02-30",
    "2024-01-31T09:00:00Z",
    "2024-01-31T09:00:00.5+01:00",
    "9999-12-31",
    "${owner}",
    "${ids}",
    "${none}",
    "@@65b000000000000000000001",
    "65b000000000000000000001",
    "*a*",
    "a?c",
    "*\"*\"*",
    "a~cs",
    "\"A\"~ci",
    "*a*~cs",
    "\u{1f980}",
    "AND",
    "100%",
    "a'b",
];
const TAILS: &[&str] = &[
    " && expand(at)",
    " && expand(list.next, id:~, fields:[-text])",
    " && fields:[+text,-list.name]",
    " && text(\"a b\")",
    " && hasEdge(owns, a)",
    " && fields:[]",
    " expand(at)",
    ")",
];
const PATHS: &[&str] =
    &["text", "-n", "+when", "list.name", "-extra.a", "list[0]", "none", "-", "a b"];

fn one(rng: &mut Rng, words: &[&'static str]) -> &'static str {
    rng.pick(words).copied().unwrap_or_default()
}

/// A query.
pub fn query(rng: &mut Rng) -> String {
    let mut text = String::new();
    condition(rng, DEPTH, &mut text);
    if rng.chance(25) {
        text.push_str(one(rng, TAILS));
    }
    spoiled(rng, Kind::Query, text)
}

fn condition(rng: &mut Rng, depth: u64, text: &mut String) {
    let Some(below) = depth.checked_sub(1) else {
        return leaf(rng, text);
    };
    match rng.below(8) {
        0..=2 => {
            let join = one(rng, &[" && ", " || ", "&&", "||", "\n&& "]);
            condition(rng, below, text);
            text.push_str(join);
            condition(rng, below, text);
        }
        3 => within(rng, below, "(", ")", text),
        4 => within(rng, below, "!!(", ")", text),
        5 => {
            let open = one(rng, &["list:{", "extra:{", "tags:{", "!!"]);
            within(rng, below, open, "}", text);
        }
        _ => leaf(rng, text),
    }
}

fn within(rng: &mut Rng, below: u64, open: &str, close: &str, text: &mut String) {
    text.push_str(open);
    condition(rng, below, text);
    // What begins without a brace ends without one.
    text.push_str(if open == "!!" { "" } else { close });
}

fn leaf(rng: &mut Rng, text: &mut String) {
    text.push_str(one(rng, FIELDS));
    if rng.chance(15) {
        text.push_str(one(rng, &[":^[", ":!^["]));
        for _ in 0..rng.below(4) {
            text.push_str(one(rng, VALUES));
            text.push(',');
        }
        text.push_str(one(rng, VALUES));
        text.push(']');
        return;
    }
    text.push_str(one(rng, SIGNS));
    text.push_str(one(rng, VALUES));
}

/// What records are sorted by.
pub fn sort(rng: &mut Rng) -> String {
    let fields: Vec<&str> = (0..rng.below(5)).map(|_| one(rng, PATHS)).collect();
    let mut bytes = fields.join(",").into_bytes();
    if rng.chance(30) {
        let other = one(rng, VALUES).as_bytes();
        scratch(rng, &mut bytes, other);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A cursor for `ASKED`, changed in its digits or in what they stand for.
pub fn cursor(rng: &mut Rng) -> String {
    let keys = (0..rng.below(4)).map(|_| key(rng)).collect::<Vec<Key>>();
    let written = cursor::write(ASKED, &Position(keys));
    if rng.chance(20) {
        return written;
    }
    if rng.chance(20) {
        let mut bytes = written.into_bytes();
        scratch(rng, &mut bytes, b"0f+\xc3");
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let byte = |place: usize| u8::from_str_radix(&written[place..place + 2], 16);
    let mut bytes: Vec<u8> =
        (0..written.len()).step_by(2).filter_map(|place| byte(place).ok()).collect();
    scratch(rng, &mut bytes, b"[{\"bits\":18442240474082181120},{\"whole\":\"1e9\"},null]");
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn key(rng: &mut Rng) -> Key {
    match rng.below(6) {
        0 => Key::Absent,
        1 => Key::Bool(rng.chance(50)),
        2 => Key::Number(Number::Whole(i128::from(rng.draw()))),
        3 => Key::Number(Number::Decimal(-0.5)),
        4 => read_moment("2024-01-31T09:00:00.5Z").map_or(Key::Absent, Key::Time),
        _ => Key::Text("\u{f6}z".to_owned(), "\u{d6}z".to_owned()),
    }
}
