//! Texts out of small grammars: pointers, templates, schemas and files that are mostly well formed,
//! with numbers and repetitions that cost much. Now and then a case of the hostile corpus, or bytes
//! that were changed. The same random numbers give the same texts everywhere.

use super::hostile::{self, Case, Kind};
use super::mangle::scratch;
use crate::sim::rng::Rng;
use project::folder::{DEMO_AGENTS, DEMO_PIPELINES, DEMO_PLANS};
use serde_json::json;

/// How much of a case of the corpus is taken.
const TAKEN_BYTES_MAX: usize = 20_000;
/// How deep expressions and schemas nest.
const DEPTH: u64 = 5;
/// How often something short is repeated, at most.
const REPEATS_MAX: u64 = 60;
const SHORT_BYTES_MAX: usize = 500;

const ROOTS: &[&str] =
    &["$.promptInput", "$.promptInput.a", "$.context", "$.context.sum", "$.history", "$", "@"];
const NAMES: &[&str] = &["a", "b", "list", "text", "n", "\u{e9}", "context", "x"];
const NUMBERS: &[&str] =
    &["0", "1", "-1", "2", "7", "100", "4000000000", "-9223372036854775808", "1e400", "0.1"];
/// Those that every grammar takes.
const PLAIN: &[&str] = &["0", "1", "2", "7", "100", "0.5", "4000000000"];
const FIELDS: &[&str] = &["a", "b", "list", "text", "n"];
const COMPARISONS: &[&str] = &["==", "!=", "<", "<=", ">", ">="];
const FUNCTIONS: &[&str] = &["length", "count", "value", "match", "search", "none"];
const OPERATORS: &[&str] =
    &["==", "!=", "<", "<=", " and ", " or ", " in ", " not in ", " if 1 else "];
const FILTERS: &[&str] = &[
    "default('x')", "default(promptInput)", "first", "join", "join('x')", "join(promptInput.text)",
    "join(attribute='a')", "last", "length", "lower", "trim", "trim(promptInput.text)", "upper",
];
/// What no template may have.
const STRANGE: &[&str] =
    &[" ~ 'x'", " * 4000000000", "|tojson", "|indent(4000000000)", "[1:]", "(1)", " is odd"];
const SCHEMAS: &[&str] =
    &["additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"];
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
const MAPS: &[&str] = &["properties", "patternProperties", "dependentSchemas"];
const COUNTS: &[&str] = &["minLength", "maxItems", "multipleOf", "minContains", "maximum"];
const PATTERNS: &[&str] =
    &["(a+)+$", "^(?=a)a", "((a{99}){99}){9}", "[", "\\\\p{L}{1,99}", "^(a|a)*$", "(a)\\\\1"];
const TYPES: &[&str] = &["\"object\"", "\"string\"", "[\"array\",\"null\"]", "\"x\"", "7"];
const REFERENCES: &[&str] =
    &["#", "#/$defs/d0", "#/$defs/d1", "#/$defs/d2", "#/$defs/d9", "x.json"];

fn one(rng: &mut Rng, words: &[&'static str]) -> &'static str {
    rng.pick(words).copied().unwrap_or_default()
}

/// A case of the corpus as it stands, or a text with some bytes changed, once in a while.
pub(super) fn spoiled(rng: &mut Rng, kind: Kind, made: String) -> String {
    let mut bytes = match rng.below(100) {
        0..=4 => taken(rng, kind),
        5..=14 => made.into_bytes(),
        _ => return made,
    };
    if rng.chance(70) {
        let other = taken(rng, kind);
        scratch(rng, &mut bytes, &other);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn taken(rng: &mut Rng, kind: Kind) -> Vec<u8> {
    let cases: Vec<&Case> = hostile::of(kind).collect();
    let mut bytes = rng.pick(&cases).map(|case| case.bytes()).unwrap_or_default();
    bytes.truncate(TAKEN_BYTES_MAX);
    bytes
}

/// Adds something, and in so many cases of a hundred many times.
fn push_some(rng: &mut Rng, percent: u64, made: &str, text: &mut String) {
    let is_short = made.len() <= SHORT_BYTES_MAX;
    let times = if is_short && rng.chance(percent) { rng.below(REPEATS_MAX) } else { 1 };
    text.push_str(&made.repeat(times as usize));
}

/// A pointer.
pub fn path(rng: &mut Rng) -> String {
    let mut text = one(rng, ROOTS).to_owned();
    segments(rng, DEPTH, &mut text);
    spoiled(rng, Kind::JsonPath, text)
}

fn segments(rng: &mut Rng, depth: u64, text: &mut String) {
    for _ in 0..rng.below(depth + 2) {
        let mut made = String::new();
        match rng.below(9) {
            0 | 1 => made = format!(".{}", one(rng, NAMES)),
            2 => made.push_str("..*"),
            3 => made = format!("..{}", one(rng, NAMES)),
            4 => made.push_str("[*]"),
            5 => made = format!("[{}]", one(rng, NUMBERS)),
            6 => made = format!("[{}:{}:{}]", one(rng, NUMBERS), one(rng, NUMBERS), rng.below(3)),
            7 => made = format!("['{}',*,{}]", one(rng, NAMES), one(rng, NUMBERS)),
            _ => {
                made.push_str("[?");
                filter(rng, depth, &mut made);
                made.push(']');
            }
        }
        push_some(rng, 3, &made, text);
    }
}

fn filter(rng: &mut Rng, depth: u64, text: &mut String) {
    let Some(below) = depth.checked_sub(1) else {
        text.push('@');
        return;
    };
    match rng.below(8) {
        0 => {
            text.push_str("!(");
            filter(rng, below, text);
            text.push(')');
        }
        1 | 2 => {
            filter(rng, below, text);
            text.push_str(if rng.chance(50) { "&&" } else { "||" });
            filter(rng, below, text);
        }
        3 | 4 => {
            operand(rng, below, text);
            text.push_str(one(rng, COMPARISONS));
            operand(rng, below, text);
        }
        5 => {
            text.push_str(&format!("{}(", one(rng, FUNCTIONS)));
            operand(rng, below, text);
            text.push_str(if rng.chance(50) { ",'(a+)+$')" } else { ")" });
        }
        _ => operand(rng, below, text),
    }
}

fn operand(rng: &mut Rng, depth: u64, text: &mut String) {
    match rng.below(4) {
        0 => text.push_str(one(rng, NUMBERS)),
        1 => text.push_str("'a'"),
        _ => {
            text.push_str(if rng.chance(80) { "@" } else { "$" });
            segments(rng, depth.saturating_sub(1), text);
        }
    }
}

pub fn template(rng: &mut Rng) -> String {
    let mut text = String::new();
    blocks(rng, DEPTH, &mut text);
    spoiled(rng, Kind::Template, text)
}

fn blocks(rng: &mut Rng, depth: u64, text: &mut String) {
    for _ in 0..=rng.below(depth + 1) {
        let value = expression(rng, depth);
        let mut inner = String::new();
        if depth > 0 && rng.chance(40) {
            blocks(rng, depth - 1, &mut inner);
        }
        let made = match rng.below(60) {
            0 => format!("{{{{ {value}{} }}}}", one(rng, STRANGE)),
            1 => format!("{{% set x = {value} %}}"),
            2..=8 => "words ".to_owned(),
            9..=28 => format!("{{{{ {value} }}}}"),
            29..=44 => format!("{{% for a in {value} %}}{inner}{{{{ a }}}}{{% endfor %}}"),
            _ => format!("{{% if {value} %}}{inner}{{% else %}}{inner}{{% endif %}}"),
        };
        push_some(rng, 5, &made, text);
    }
}

fn expression(rng: &mut Rng, depth: u64) -> String {
    let Some(below) = depth.checked_sub(1) else {
        return match rng.below(4) {
            0 => one(rng, PLAIN).to_owned(),
            1 => "'x\\ny'".to_owned(),
            2 => "[1, 'x', [2]]".to_owned(),
            _ => format!("promptInput.{}", one(rng, FIELDS)),
        };
    };
    let left = expression(rng, below);
    match rng.below(9) {
        0 | 1 => format!("({left} {} {})", one(rng, OPERATORS), expression(rng, below)),
        2..=4 => format!("{left}|{}", one(rng, FILTERS)),
        5 => format!("({left} is defined)"),
        6 => format!("(not -{left})"),
        7 => format!("({left})[{}]", one(rng, PLAIN)),
        _ => left,
    }
}

/// A schema, as JSON.
pub fn schema(rng: &mut Rng) -> String {
    let parts: Vec<String> =
        (0..3).map(|at| format!("\"d{at}\":{}", part(rng, DEPTH - 1))).collect();
    let mut whole = part(rng, DEPTH);
    let end = whole.pop();
    let comma = if whole.len() > 1 { "," } else { "" };
    if end == Some('}') {
        whole.push_str(&format!("{comma}\"$defs\":{{{}}}}}", parts.join(",")));
    }
    spoiled(rng, Kind::Schema, whole)
}

fn part(rng: &mut Rng, depth: u64) -> String {
    let Some(below) = depth.checked_sub(1) else {
        return format!("{{\"type\":{}}}", one(rng, TYPES));
    };
    let member = |rng: &mut Rng| match rng.below(9) {
        0 | 1 => format!("\"{}\":{}", one(rng, SCHEMAS), part(rng, below)),
        2 | 3 => {
            let inner = part(rng, below);
            let mut more = String::new();
            push_some(rng, 10, &format!(",{inner}"), &mut more);
            format!("\"{}\":[{inner}{more}]", one(rng, LISTS))
        }
        4 => format!("\"{}\":{{\"a\":{}}}", one(rng, MAPS), part(rng, below)),
        5 => format!("\"$ref\":\"{}\"", one(rng, REFERENCES)),
        6 => format!("\"pattern\":\"{}\"", one(rng, PATTERNS)),
        7 => format!("\"{}\":{}", one(rng, COUNTS), one(rng, PLAIN)),
        _ => format!("\"type\":{}", one(rng, TYPES)),
    };
    let members: Vec<String> = (0..=rng.below(3)).map(|_| member(rng)).collect();
    format!("{{{}}}", members.join(","))
}

/// A file: a plan, an agent or a pipeline.
pub fn file(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = match rng.below(10) {
        0..=2 => with_texts(rng).into_bytes(),
        3 => taken(rng, Kind::Yaml),
        _ => example(rng).as_bytes().to_vec(),
    };
    let other = example(rng);
    for _ in 0..rng.below(4) {
        scratch(rng, &mut bytes, other.as_bytes());
    }
    bytes
}

fn example(rng: &mut Rng) -> &'static str {
    let all: Vec<&str> =
        [DEMO_PLANS, DEMO_AGENTS, DEMO_PIPELINES].concat().iter().map(|(_, text)| *text).collect();
    rng.pick(&all).copied().unwrap_or_default()
}

fn with_texts(rng: &mut Rng) -> String {
    let path = path(rng);
    let text = template(rng);
    let schema = schema(rng);
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap_or_default();
    json!({
        "planId": "fuzz/plan",
        "description": "out of a grammar",
        "parameters": schema,
        "startStepId": "add",
        "steps": [
            {"id": "add", "type": "tool_call", "toolId": "math::add", "saveAs": "sum",
             "arguments": {"a": {"jsonPath": path}, "b": 1}, "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": text},
        ],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::expression::pointer::Pointer;
    use kernel::expression::template::Template;
    use serde_json::Value;

    #[test]
    fn the_same_numbers_give_the_same_texts() {
        let made = |seed: u64| {
            let rng = &mut Rng::new(seed);
            (path(rng), template(rng), schema(rng), file(rng))
        };
        assert_eq!(made(3), made(3));
        assert_ne!(made(3), made(4));
    }

    /// What is refused at once shows nothing about what is read.
    #[test]
    fn most_texts_are_well_formed() {
        let rng = &mut Rng::new(1);
        let mut well = [0, 0, 0];
        for _ in 0..200 {
            well[0] += usize::from(Pointer::parse(&path(rng), false).is_ok());
            well[1] += usize::from(Template::parse(&template(rng)).is_ok());
            well[2] += usize::from(serde_json::from_str::<Value>(&schema(rng)).is_ok());
        }
        assert!(well.iter().all(|well| *well >= 20), "{well:?} of 200");
    }
}
