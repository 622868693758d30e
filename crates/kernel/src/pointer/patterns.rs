//! Regular expressions of `match` and `search`. A pattern may come from data, so compiling it and
//! matching with it are charged by what they cost at worst.

use super::budget::Budget;
use regex::{Error, Regex, RegexBuilder, bytes};
use std::collections::HashMap;

/// How many bytes a pattern may have.
const PATTERN_BYTES_MAX: usize = 1024;
/// How many bytes a compiled pattern may have.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;
/// How many nodes a compilation is charged as, and how many for each byte of the pattern: a class
/// of a few bytes can stand for most of Unicode.
const COMPILE_NODES: usize = 50_000;
const COMPILE_NODES_PER_BYTE: usize = 1_000;
/// How many compiled patterns one evaluation keeps.
const KEPT_MAX: usize = 32;

/// The patterns that one evaluation compiled, by their text; none for a text that is no pattern.
#[derive(Default)]
pub(super) struct Patterns {
    kept: HashMap<String, Option<Pattern>>,
}

struct Pattern {
    regex: Regex,
    /// How many nodes each byte of a text is charged as.
    weight: usize,
}

impl Patterns {
    /// Whether the text matches this regular expression, which is false where it is none.
    pub(super) fn matches(
        &mut self,
        expression: &str,
        text: &str,
        budget: &Budget,
    ) -> Result<bool, String> {
        if !self.kept.contains_key(expression) {
            if self.kept.len() >= KEPT_MAX {
                self.kept.clear();
            }
            self.kept.insert(expression.to_owned(), compile(expression, budget)?);
        }
        let Some(Some(pattern)) = self.kept.get(expression) else { return Ok(false) };
        budget.charge(pattern.weight.saturating_mul(text.len()))?;
        Ok(pattern.regex.is_match(text))
    }
}

fn compile(expression: &str, budget: &Budget) -> Result<Option<Pattern>, String> {
    let too_large = || "its regular expression is too large".to_owned();
    if expression.len() > PATTERN_BYTES_MAX {
        return Err(too_large());
    }
    budget.charge(COMPILE_NODES + COMPILE_NODES_PER_BYTE * expression.len())?;
    match RegexBuilder::new(expression).size_limit(COMPILED_BYTES_MAX).build() {
        Ok(regex) => Ok(Some(Pattern { regex, weight: weight(expression) })),
        Err(Error::CompiledTooBig(_)) => Err(too_large()),
        Err(_) => Ok(None),
    }
}

/// How many KiB the pattern compiles to if every class of characters has ASCII only. At worst each
/// byte of a text visits all of that; a class of Unicode is larger, but little of it is visited.
fn weight(expression: &str) -> usize {
    let expression = in_ascii(expression);
    let fits = |kib: &usize| {
        let mut builder = bytes::RegexBuilder::new(&expression);
        builder.unicode(false).size_limit(kib * 1024).build().is_ok()
    };
    [1, 4, 16, 64, 256].into_iter().find(fits).unwrap_or(COMPILED_BYTES_MAX / 1024)
}

/// The pattern with other characters and classes, but as many of them, in ASCII.
fn in_ascii(expression: &str) -> String {
    let mut chars = expression.chars();
    let mut ascii = String::with_capacity(expression.len());
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('p' | 'P') => {
                    if chars.next() == Some('{') {
                        while !matches!(chars.next(), Some('}') | None) {}
                    }
                    ascii.push_str("\\w");
                }
                escaped => ascii.extend([Some('\\'), escaped].into_iter().flatten()),
            },
            char if char.is_ascii() => ascii.push(char),
            _ => ascii.push('x'),
        }
    }
    ascii
}
