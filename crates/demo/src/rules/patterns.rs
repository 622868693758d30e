//! Named regular expressions. They ignore case, and `{name}` in one stands for a list of words or
//! for another pattern.

use super::dates::squeezed;
use regex::{Captures, Regex, RegexBuilder};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How large a compiled expression may be.
const COMPILED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The patterns of a file, by their names, and what can be put into others.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    sources: BTreeMap<String, String>,
    compiled: BTreeMap<String, Regex>,
}

impl Patterns {
    /// Whether something has this name.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.sources.contains_key(name)
    }

    /// The names of all patterns, lists of words not included.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.compiled.keys().map(String::as_str)
    }

    /// Adds a list of words.
    pub(super) fn add_words(&mut self, name: &str, words: &[&str]) {
        let words: Vec<String> =
            words.iter().map(|word| regex::escape(word).replace(' ', r"\s+")).collect();
        self.sources.insert(name.to_owned(), format!("(?:{})", words.join("|")));
    }

    /// Adds a pattern. The error says what is wrong with it.
    pub(super) fn add(&mut self, name: &str, source: &str) -> Result<(), String> {
        let whole = self.filled_in(source)?;
        self.compiled.insert(name.to_owned(), compiled(&whole)?);
        self.sources.insert(name.to_owned(), format!("(?:{whole})"));
        Ok(())
    }

    /// A pattern without a name.
    pub(super) fn compile(&self, source: &str) -> Result<Regex, String> {
        compiled(&self.filled_in(source)?)
    }

    /// A pattern without a name that has to fit where a text begins.
    pub(super) fn compile_beginning(&self, source: &str) -> Result<Regex, String> {
        compiled(&format!("^(?:{})", self.filled_in(source)?))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Regex> {
        self.compiled.get(name)
    }

    /// The text without what the pattern of this name fits.
    pub(super) fn without(&self, text: &str, name: &str) -> Option<String> {
        Some(squeezed(&self.get(name)?.replace_all(text, " ")))
    }

    /// The source with every `{name}` filled in. What follows `\p` is no name, and neither is a
    /// count such as `{2,3}`.
    fn filled_in(&self, source: &str) -> Result<String, String> {
        let mut whole = String::with_capacity(source.len());
        let mut rest = source;
        while let Some(open) = rest.find('{') {
            let (before, after) = rest.split_at(open);
            whole.push_str(before);
            let name = after[1..].split('}').next().unwrap_or_default();
            let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
                && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
            let is_class = before.ends_with(r"\p") || before.ends_with(r"\P");
            if is_name && !is_class {
                let Some(filling) = self.sources.get(name) else {
                    return Err(format!("`{{{name}}}` names no words and no pattern above"));
                };
                whole.push_str(filling);
                rest = &after[name.len() + 2..];
            } else {
                whole.push('{');
                rest = &after[1..];
            }
        }
        whole.push_str(rest);
        Ok(whole)
    }
}

/// What the named groups of a match hold, null where one did not take part; `all` is the whole.
pub(super) fn captures(regex: &Regex, text: &str) -> Option<Map<String, Value>> {
    let found = regex.captures(text)?;
    Some(groups(regex, &found))
}

fn groups(regex: &Regex, found: &Captures<'_>) -> Map<String, Value> {
    let value = |group: Option<regex::Match<'_>>| {
        group.map_or(Value::Null, |group| Value::from(group.as_str().trim()))
    };
    let mut groups = Map::new();
    groups.insert("all".to_owned(), value(found.get(0)));
    for name in regex.capture_names().flatten() {
        groups.insert(name.to_owned(), value(found.name(name)));
    }
    groups
}

fn compiled(source: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(source);
    builder.case_insensitive(true).size_limit(COMPILED_BYTES_MAX);
    builder.build().map_err(|error| {
        // The last line says what is wrong; those before it show the whole expression.
        error
            .to_string()
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_patterns_stand_in_others() {
        let mut patterns = Patterns::default();
        patterns.add_words("verb", &["set up", "add"]);
        patterns.add("thing", r"\b(?P<thing>\w{3,}\p{Greek}?)\b").unwrap();
        patterns.add("both", r"^{verb} {thing}$").unwrap();
        let both = patterns.get("both").unwrap();
        assert_eq!(captures(both, "SET  UP lunch").unwrap()["thing"], "lunch");
        assert!(captures(both, "add it").is_none());
        assert!(patterns.add("x", "{nope}").unwrap_err().contains("`{nope}` names no words"));
        assert!(patterns.compile("(").unwrap_err().contains("unclosed group"));
        assert!(patterns.compile_beginning("b").unwrap().find("ab").is_none());
    }

    #[test]
    fn matched_text_is_removed() {
        let mut patterns = Patterns::default();
        patterns.add("polite", r"\s*\bplease\b,?").unwrap();
        assert_eq!(patterns.without("lunch, please, at noon", "polite").unwrap(), "lunch, at noon");
        assert!(patterns.without("x", "unknown").is_none());
    }
}
