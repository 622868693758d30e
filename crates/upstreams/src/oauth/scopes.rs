//! Ordered set of OAuth scopes.

use serde::{Deserialize, Serialize};

/// More are not asked for, whatever a server lists.
const SCOPES_MAX: usize = 64;
const SCOPE_CHARS_MAX: usize = 256;

/// A set of scopes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Scopes(Vec<String>);

impl Scopes {
    /// The scopes of a text that has blanks between them.
    pub(crate) fn read(text: &str) -> Self {
        Self::of(text.split_ascii_whitespace())
    }

    /// The scopes of a list; what is none is left out.
    pub(crate) fn of<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let mut scopes = Self::default();
        words.into_iter().for_each(|word| scopes.add(word));
        scopes
    }

    /// Both together.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).map(String::as_str))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is one of them.
    pub(crate) fn contains(&self, word: &str) -> bool {
        self.0.iter().any(|scope| scope == word)
    }

    /// Whether all of the others are among them.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|word| self.contains(word))
    }

    /// As they are sent.
    pub(crate) fn text(&self) -> String {
        self.0.join(" ")
    }

    fn add(&mut self, word: &str) {
        let plain = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        let is_one = !word.is_empty() && word.len() <= SCOPE_CHARS_MAX && word.bytes().all(plain);
        if is_one && self.0.len() < SCOPES_MAX && !self.contains(word) {
            self.0.push(word.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_an_ordered_set() {
        let some = Scopes::read(" b  a b \u{e4} \"x\" ");
        assert_eq!(some.text(), "b a");
        let both = some.and(&Scopes::of(["c", "a"]));
        assert_eq!(both.text(), "b a c");
        assert!(both.covers(&some) && !some.covers(&both) && some.covers(&Scopes::default()));
    }

    #[test]
    fn scopes_are_bounded() {
        let words: Vec<String> = (0..1_000).map(|number| format!("s{number}")).collect();
        let scopes = Scopes::of(words.iter().map(String::as_str));
        assert_eq!(scopes.0.len(), SCOPES_MAX);
        assert!(Scopes::read(&"x".repeat(300)).is_empty());
    }
}
