//! Regular expressions of the filters `match` and `search` and of the condition `matches`. A
//! pattern may come from data, so compiling it and matching with it are charged by what they cost
//! at worst.

use crate::expression::budget::Budget;
use regex::{Error, Regex, RegexBuilder, bytes};
use std::collections::HashMap;

/// How many bytes a pattern may have.
const PATTERN_BYTES_MAX: usize = 1024;
/// How many bytes a compiled pattern may have.
const COMPILED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many nodes a compilation is charged as, and how many for each byte of the pattern: a class
/// of a few bytes can stand for most of Unicode.
const COMPILE_NODES: usize = 50_000;
const COMPILE_NODES_PER_BYTE: usize = 1_000;
/// How many compiled patterns one evaluation keeps.
const KEPT_MAX: usize = 32;

/// Why a text cannot be used as a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is no regular expression, and why.
    Wrong(String),
    /// It is longer, or compiles to more, than a pattern may.
    TooLarge,
    /// The budget does not suffice to compile it.
    TooCostly(String),
}

/// Compiles a regular expression within the limits of a pattern.
pub(crate) fn compile(expression: &str) -> Result<Regex, Unusable> {
    check_length(expression)?;
    let built = RegexBuilder::new(expression).size_limit(COMPILED_BYTES_MAX).build();
    built.map_err(|error| match error {
        Error::CompiledTooBig(_) => Unusable::TooLarge,
        error => Unusable::Wrong(error.to_string()),
    })
}

fn check_length(expression: &str) -> Result<(), Unusable> {
    if expression.len() > PATTERN_BYTES_MAX { Err(Unusable::TooLarge) } else { Ok(()) }
}

/// A compiled pattern, with what it costs to match with it.
pub(crate) struct Pattern {
    regex: Regex,
    /// How many nodes each byte of a text is charged as.
    weight: usize,
}

impl Pattern {
    /// Compiles a regular expression, charged to the budget.
    pub(crate) fn new(expression: &str, budget: &Budget) -> Result<Self, Unusable> {
        check_length(expression)?;
        let nodes = COMPILE_NODES + COMPILE_NODES_PER_BYTE * expression.len();
        budget.charge(nodes).map_err(Unusable::TooCostly)?;
        let regex = compile(expression)?;
        Ok(Self { regex, weight: weight(expression) })
    }

    /// Whether it occurs in the text. The error says that the budget does not suffice.
    pub(crate) fn is_match(&self, text: &str, budget: &Budget) -> Result<bool, String> {
        budget.charge(self.weight.saturating_mul(text.len()))?;
        Ok(self.regex.is_match(text))
    }
}

/// The patterns that one evaluation compiled, by their text; none for a text that is no pattern.
#[derive(Default)]
pub(crate) struct Patterns {
    compiled: HashMap<String, Option<Pattern>>,
}

impl Patterns {
    /// Whether the text matches this regular expression, which is false where it is none.
    pub(crate) fn matches(
        &mut self,
        expression: &str,
        text: &str,
        budget: &Budget,
    ) -> Result<bool, String> {
        if !self.compiled.contains_key(expression) {
            if self.compiled.len() >= KEPT_MAX {
                self.compiled.clear();
            }
            let pattern = match Pattern::new(expression, budget) {
                Ok(pattern) => Some(pattern),
                Err(Unusable::Wrong(_)) => None,
                Err(Unusable::TooLarge) => {
                    return Err("its regular expression is too large".to_owned());
                }
                Err(Unusable::TooCostly(why)) => return Err(why),
            };
            self.compiled.insert(expression.to_owned(), pattern);
        }
        let Some(Some(pattern)) = self.compiled.get(expression) else { return Ok(false) };
        pattern.is_match(text, budget)
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
