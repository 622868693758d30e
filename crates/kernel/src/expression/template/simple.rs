//! Texts whose every `{{ }}` is a name with fields, as most are. They are filled without a program:
//! compiling one for each render would cost more than the rest of a short run. What they come to is
//! what minijinja makes of them; anything that would take thought is left to it.

use super::meter::RENDERED_BYTES_MAX;
use serde_json::{Map, Value};
use std::fmt::Write;

/// A text in pieces.
pub(super) struct Simple(Vec<Piece>);

enum Piece {
    Text(String),
    /// A name and its fields.
    Field(Vec<String>),
}

impl Simple {
    /// The pieces of a text, if it has no other syntax.
    pub(super) fn read(source: &str) -> Option<Self> {
        // minijinja leaves a line end at the end of a text out.
        if source.contains("{%") || source.contains("{#") || source.ends_with(['\n', '\r']) {
            return None;
        }
        let mut pieces = Vec::new();
        let mut rest = source;
        while let Some((text, after)) = rest.split_once("{{") {
            let (inner, after) = after.split_once("}}")?;
            let fields: Option<Vec<String>> = inner.trim().split('.').map(name).collect();
            pieces.push(Piece::Text(text.to_owned()));
            pieces.push(Piece::Field(fields?));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Some(Self(pieces))
    }

    /// The filled text, where every field is there and is a text or a whole number.
    pub(super) fn render(&self, root: &Map<String, Value>) -> Option<String> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Field(fields) => match found(root, fields)? {
                    Value::String(text) => filled.push_str(text),
                    Value::Number(number) if number.is_i64() || number.is_u64() => {
                        write!(filled, "{number}").ok()?;
                    }
                    _ => return None,
                },
            }
            if filled.len() > RENDERED_BYTES_MAX {
                return None;
            }
        }
        Some(filled)
    }
}

fn found<'r>(root: &'r Map<String, Value>, fields: &[String]) -> Option<&'r Value> {
    let (first, fields) = fields.split_first()?;
    fields.iter().try_fold(root.get(first)?, |value, field| value.as_object()?.get(field))
}

/// A word that can only be a name: constants and operators of minijinja are lower case words, too,
/// but none of them is the root of a text.
fn name(word: &str) -> Option<String> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let begins = word.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
    (begins && word.chars().all(is_name)).then(|| word.to_owned())
}
