//! Queries, orders and groups that can be asked of a type, as text: whoever sees less of the type
//! is refused some of them.

use super::world::{DATES, MOMENTS, decimal, id, name, text, whole};
use crate::sim::rng::Rng;
use query::types::{Kind, RecordType, TypeSet};

/// How deep conditions are joined.
const DEPTH: u64 = 3;
const JSON_PATHS: &[&str] = &["extra", "extra.a", "extra.a.b", "extra.b"];
/// Texts that need no quotes.
const BARE: &[&str] = &["a", "A", "b c", "Ölf", "true", "42", "19.50", "nam1", "a_b", "main"];
const PATTERNS: &[&str] =
    &["*", "a*", "*F", "?", "*l?", "nam?", "?Ö*", "*\"*\"*", "\"100%\"*", "*_*", "*\"%\"*", "a?b"];

const WORDS: &[&str] = &["a 42", "ÖLF", "nam1 x", "%", "i\u{307}x", "north"];

/// A field that can be named, and what it holds.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    path: String,
    kind: Kind,
}

/// The fields of a type, also those inside others.
pub(super) fn spots(record_type: &RecordType) -> Vec<Spot> {
    let mut spots = Vec::new();
    for field in record_type.all_fields() {
        add(&mut spots, &field.name, &field.kind);
    }
    spots
}

fn add(spots: &mut Vec<Spot>, path: &str, kind: &Kind) {
    match kind.element() {
        Kind::Object(fields) => {
            for field in fields {
                add(spots, &format!("{path}.{}", field.name), &field.kind);
            }
        }
        Kind::Json if path == "extra" => {
            let spot = |path: &&str| Spot { path: (*path).to_owned(), kind: Kind::Json };
            spots.extend(JSON_PATHS.iter().map(spot));
        }
        Kind::Reference(_) => {
            let named =
                |member: &str| Spot { path: format!("{path}.{member}"), kind: Kind::String };
            spots.extend([named("entityRefName"), named("entityDisplayName")]);
            spots.push(Spot { path: path.to_owned(), kind: kind.clone() });
        }
        _ => spots.push(Spot { path: path.to_owned(), kind: kind.clone() }),
    }
}

/// A whole query; now and then an empty one.
pub(super) fn query(rng: &mut Rng, types: &TypeSet, record_type: &RecordType) -> String {
    let mut parts = Vec::new();
    if rng.chance(10) {
        let words = rng.pick(WORDS).copied().unwrap_or("a");
        parts.push(format!("text({})", quoted(words)));
    }
    if rng.chance(75) {
        parts.push(format!("({})", condition(rng, record_type, DEPTH)));
    }
    if rng.chance(25) {
        parts.extend(expand(rng, types, record_type));
    }
    if rng.chance(20) {
        parts.push(projection(rng, record_type));
    }
    parts.join(" && ")
}

/// A filter alone, such as may choose what is counted or deleted.
pub(super) fn filter(rng: &mut Rng, record_type: &RecordType) -> String {
    if rng.chance(20) { String::new() } else { condition(rng, record_type, DEPTH) }
}

fn condition(rng: &mut Rng, record_type: &RecordType, depth: u64) -> String {
    joined(rng, &spots(record_type), depth, &mut |rng: &mut Rng| element(rng, record_type))
}

/// Conditions on these fields, joined. `special` gives a condition of another kind, if there is one.
fn joined(
    rng: &mut Rng,
    spots: &[Spot],
    depth: u64,
    special: &mut dyn FnMut(&mut Rng) -> Option<String>,
) -> String {
    if depth == 0 {
        return leaf(rng, spots);
    }
    match rng.below(8) {
        0 | 1 => {
            let left = joined(rng, spots, depth - 1, special);
            let right = joined(rng, spots, depth - 1, special);
            format!("({left} && {right})")
        }
        2 | 3 => {
            let left = joined(rng, spots, depth - 1, special);
            let right = joined(rng, spots, depth - 1, special);
            format!("({left} || {right})")
        }
        4 => format!("!!({})", joined(rng, spots, depth - 1, special)),
        5 => special(rng).unwrap_or_else(|| leaf(rng, spots)),
        _ => leaf(rng, spots),
    }
}

/// A condition on one element of a list of objects.
fn element(rng: &mut Rng, record_type: &RecordType) -> Option<String> {
    let lists: Vec<(&str, Vec<Spot>)> = record_type
        .fields
        .iter()
        .filter_map(|field| match (&field.kind, field.kind.element()) {
            (Kind::Array(_), Kind::Object(fields)) => {
                let mut spots = Vec::new();
                fields.iter().for_each(|inner| add(&mut spots, &inner.name, &inner.kind));
                Some((field.name.as_str(), spots))
            }
            _ => None,
        })
        .collect();
    let (name, spots) = rng.pick(&lists)?;
    Some(format!("{name}:{{{}}}", joined(rng, spots, 2, &mut |_: &mut Rng| None)))
}

fn leaf(rng: &mut Rng, spots: &[Spot]) -> String {
    let Some(Spot { path, kind }) = rng.pick(spots) else {
        return "id:~".to_owned();
    };
    match rng.below(10) {
        0 => format!("{path}:~"),
        1 => format!("{path}:null"),
        2 => format!("{path}:!null"),
        3 | 4 => {
            let sign = if rng.chance(50) { ":^" } else { ":!^" };
            let values: Vec<String> = (0..rng.below(4)).map(|_| literal(rng, kind).0).collect();
            format!("{path}{sign}[{}]", values.join(","))
        }
        5 if matches!(kind.element(), Kind::String | Kind::Json) => {
            let pattern = rng.pick(PATTERNS).copied().unwrap_or("*");
            let sign = if rng.chance(70) { ":" } else { ":!" };
            let case = if rng.chance(25) { "~cs" } else { "" };
            format!("{path}{sign}{pattern}{case}")
        }
        _ => {
            let (literal, is_ordered) = literal(rng, kind);
            let signs: &[&str] = &[":", ":!", ":<", ":>", ":<=", ":>="];
            let signs = if is_ordered { signs } else { &signs[..2] };
            let sign = rng.pick(signs).copied().unwrap_or(":");
            let case = if literal.starts_with('"') && rng.chance(25) { "~cs" } else { "" };
            format!("{path}{sign}{literal}{case}")
        }
    }
}

/// A value, mostly one that such a field may have, and whether it may stand behind `:<`.
fn literal(rng: &mut Rng, kind: &Kind) -> (String, bool) {
    let is_reference = matches!(kind.element(), Kind::Reference(_));
    let any = Kind::Json;
    let kind = if rng.chance(12) && !is_reference { &any } else { kind };
    match kind.element() {
        Kind::String if rng.chance(30) => {
            (rng.pick(BARE).copied().unwrap_or_default().to_owned(), true)
        }
        Kind::String => (quoted(text(rng)), true),
        Kind::Integer => (format!("#{}", whole(rng)), true),
        Kind::Number if rng.chance(20) => (format!("{:.2}", decimal(rng)), true),
        Kind::Number if rng.chance(20) => (format!("##{}", rng.below(3)), true),
        Kind::Number => (format!("##{:?}", decimal(rng)), true),
        Kind::Boolean => (if rng.chance(50) { "true" } else { "false" }.to_owned(), false),
        Kind::Date | Kind::DateTime => {
            let all = if rng.chance(50) { DATES } else { MOMENTS };
            (rng.pick(all).copied().unwrap_or_default().to_owned(), true)
        }
        Kind::Reference(_) if rng.chance(60) => (format!("@@{}", id(rng)), false),
        Kind::Reference(_) => (id(rng), true),
        Kind::Object(_) | Kind::Array(_) | Kind::Json => match rng.below(5) {
            0 => (quoted(text(rng)), true),
            1 => (format!("#{}", rng.below(3)), true),
            2 => ("true".to_owned(), false),
            3 => (rng.pick(DATES).copied().unwrap_or_default().to_owned(), true),
            _ => (quoted(name(rng)), true),
        },
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn expand(rng: &mut Rng, types: &TypeSet, record_type: &RecordType) -> Option<String> {
    let references = record_type.references();
    let (path, to) = rng.pick(&references)?;
    let to = types.find(to).ok()?;
    let mut inside = vec![path.clone()];
    if rng.chance(40) {
        inside.push(joined(rng, &spots(to), 1, &mut |_: &mut Rng| None));
    }
    if rng.chance(30) {
        inside.push(projection(rng, to));
    }
    Some(format!("expand({})", inside.join(", ")))
}

fn projection(rng: &mut Rng, record_type: &RecordType) -> String {
    let spots = spots(record_type);
    let signs = if rng.chance(30) { ["-", "-"] } else { ["+", "-"] };
    let count = 1 + rng.below(3);
    let mut fields = Vec::new();
    for place in 0..count {
        let path = field(rng, &spots);
        fields.push(format!("{}{path}", signs[usize::from(place > 0 && rng.chance(30))]));
    }
    format!("fields:[{}]", fields.join(","))
}

/// One of these fields.
pub(super) fn field(rng: &mut Rng, spots: &[Spot]) -> String {
    rng.pick(spots).map_or_else(|| "id".to_owned(), |spot| spot.path.clone())
}

/// By none, one or two fields.
pub(super) fn sort(rng: &mut Rng, spots: &[Spot]) -> String {
    let mut fields = Vec::new();
    for _ in 0..rng.below(3) {
        let sign = if rng.chance(50) { "-" } else { "" };
        fields.push(format!("{sign}{}", field(rng, spots)));
    }
    fields.join(",")
}
