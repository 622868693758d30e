//! The operator's rules for tools, by name pattern: which exist, and their limits. In a pattern `*`
//! stands for any characters, including none; nothing else is special.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::Arc;

/// The rules for all tools, and for plans as tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolRules {
    /// Which there are; all where nothing is said, none where the list is empty.
    pub allow: Option<Vec<Pattern>>,
    /// Which there are not, whatever is allowed.
    pub deny: Vec<Pattern>,
    pub tools: Vec<(Pattern, ToolLimits)>,
}

/// Limits of calls of one tool. Limits that are not set here are those of `[limits]`, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolLimits {
    /// How many calls run at the same time, over all sessions.
    pub concurrency: Option<NonZeroU32>,
    /// How many calls of one caller begin in a minute.
    pub per_minute: Option<NonZeroU32>,
    /// How long one call may take, instead of `call_timeout_ms`.
    pub timeout_ms: Option<NonZeroU64>,
    /// The size of its output, instead of `call_output_bytes_max`.
    pub output_bytes: Option<NonZeroUsize>,
    /// After how many passing failures in a row its calls are refused for `breaker_open_ms`, apart
    /// from the other tools of its server.
    pub breaker_failures: Option<NonZeroU32>,
}

impl ToolLimits {
    /// These limits, completed with those of `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            concurrency: self.concurrency.or(other.concurrency),
            per_minute: self.per_minute.or(other.per_minute),
            timeout_ms: self.timeout_ms.or(other.timeout_ms),
            output_bytes: self.output_bytes.or(other.output_bytes),
            breaker_failures: self.breaker_failures.or(other.breaker_failures),
        }
    }
}

impl ToolRules {
    /// Whether there is a tool of this name, if someone brings it.
    pub fn allows(&self, name: &str) -> bool {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.fits(name));
        !fits(&self.deny) && self.allow.as_deref().is_none_or(fits)
    }

    /// What calls of this tool may cost: each limit as the most specific of the patterns says that
    /// fit the name and say something of that limit.
    pub fn limits(&self, name: &str) -> ToolLimits {
        let mut fitting: Vec<_> =
            self.tools.iter().filter(|(pattern, _)| pattern.fits(name)).collect();
        fitting.sort_by(|(left, _), (right, _)| right.specific().cmp(&left.specific()));
        let nothing = ToolLimits::default();
        fitting.into_iter().fold(nothing, |said, (_, limits)| said.or(*limits))
    }

    /// The patterns that fit none of these names, each with where it stands: most likely mistakes.
    pub fn idle<'a>(&'a self, names: &[&str]) -> Vec<(&'static str, &'a Pattern)> {
        let allow = self.allow.iter().flatten().map(|pattern| ("allow", pattern));
        let deny = self.deny.iter().map(|pattern| ("deny", pattern));
        let limits = self.tools.iter().map(|(pattern, _)| ("limits", pattern));
        let all = allow.chain(deny).chain(limits);
        // What stands for everything is no mistake where there is nothing.
        let fits_none = |pattern: &Pattern| {
            pattern.as_str() != "*" && !names.iter().any(|name| pattern.fits(name))
        };
        all.filter(|(_, pattern)| fits_none(pattern)).collect()
    }
}

/// A name with `*` for any characters: `math::*`, `github.*`, `trade/settle`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(Arc<str>);

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    #[error("a pattern of tools is a name with `*` for any characters; this one is empty")]
    Empty,
    /// It has a character that is in no name, or that other kinds of patterns know.
    #[error("`{0}` has a `{1}`: in a pattern of tools only `*` stands for other characters")]
    Character(String, char),
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        // Someone who writes these expects them to do something.
        let foreign = |c: &char| c.is_control() || c.is_whitespace() || "?[]{}!,".contains(*c);
        if text.is_empty() {
            return Err(BadPattern::Empty);
        }
        match text.chars().find(foreign) {
            Some(character) => Err(BadPattern::Character(text.to_owned(), character)),
            None => Ok(Self(text.into())),
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn fits(&self, name: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return &*self.0 == name };
        let Some(mut left) = name.strip_prefix(first) else { return false };
        // Between two stars the first place that fits leaves most for what follows.
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in middle.split('*') {
            match left.split_once(part) {
                Some((_, after)) => left = after,
                None => return false,
            }
        }
        left.ends_with(last)
    }

    /// How much it says, to be compared: more characters that are no `*`, then fewer `*`, then more
    /// before the first `*`. So a whole name says more than any pattern. The text decides between
    /// patterns that say as much, so that the order in a file never matters.
    fn specific(&self) -> (usize, Reverse<usize>, usize, Reverse<&str>) {
        let stars = self.0.matches('*').count();
        let before = self.0.find('*').unwrap_or(self.0.len());
        (self.0.len() - stars, Reverse(stars), before, Reverse(self.as_str()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).unwrap()
    }

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| pattern(text)).collect()
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (text, name, fits) in [
            ("math::add", "math::add", true),
            ("math::add", "math::add2", false),
            ("math::*", "math::add", true),
            ("math::*", "math::", true),
            ("math::*", "maths::add", false),
            ("*", "", true),
            ("*", "trade/settle", true),
            ("trade/*", "trade/eu/settle", true),
            ("github.*", "githubs.create", false),
            ("*::add", "math::add", true),
            ("*::add", "math::add2", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a**b", "ab", true),
            ("*b*", "abc", true),
            ("*ab*ab*", "abab", true),
            ("*ab*ab*", "aab", false),
            ("Math::*", "math::add", false),
        ] {
            assert_eq!(pattern(text).fits(name), fits, "{text} and {name}");
        }
    }

    #[test]
    fn wildcards_other_than_a_star_are_refused() {
        assert_eq!(Pattern::new(""), Err(BadPattern::Empty));
        for text in ["math::?", "a b", "[ab]", "{a,b}", "!a", "a\n"] {
            assert!(matches!(Pattern::new(text), Err(BadPattern::Character(..))), "{text:?}");
        }
    }

    #[test]
    fn denied_tools_are_absent_even_if_allowed() {
        let all = ToolRules::default();
        assert!(all.allows("math::add"));
        let rules = ToolRules {
            allow: Some(patterns(&["math::*", "http::request"])),
            deny: patterns(&["http::*"]),
            tools: Vec::new(),
        };
        assert!(rules.allows("math::add"));
        assert!(!rules.allows("http::request") && !rules.allows("trade/settle"));
        let nothing = ToolRules { allow: Some(Vec::new()), ..ToolRules::default() };
        assert!(!nothing.allows("math::add"));
    }

    #[test]
    fn for_each_limit_the_most_specific_pattern_wins() {
        let said = |concurrency, per_minute| ToolLimits {
            concurrency: NonZeroU32::new(concurrency),
            per_minute: NonZeroU32::new(per_minute),
            ..ToolLimits::default()
        };
        let rules = ToolRules {
            tools: vec![
                (pattern("*"), said(1, 10)),
                (pattern("http::request"), said(0, 30)),
                (pattern("http::*"), said(2, 20)),
                (pattern("*::request"), said(3, 0)),
            ],
            ..ToolRules::default()
        };
        // `*::request` has more characters than `http::*`; neither `0` says anything.
        assert_eq!(rules.limits("http::request"), said(3, 30));
        assert_eq!(rules.limits("http::get"), said(2, 20));
        assert_eq!(rules.limits("math::add"), said(1, 10));
        let turned = ToolRules { tools: rules.tools.iter().rev().cloned().collect(), ..rules };
        assert_eq!(turned.limits("http::request"), said(3, 30));
    }

    #[test]
    fn an_exact_name_is_more_specific_than_any_pattern() {
        let mut all = patterns(&["*", "a*", "ab", "ab*", "*ab", "*a*b*", "a*b"]);
        all.sort_by(|left, right| right.specific().cmp(&left.specific()));
        assert_eq!(all, patterns(&["ab", "ab*", "a*b", "*ab", "*a*b*", "a*", "*"]));
    }

    #[test]
    fn patterns_that_match_no_tool_are_reported() {
        let rules = ToolRules {
            allow: Some(patterns(&["*", "math::*"])),
            deny: patterns(&["htpp::*"]),
            tools: vec![(pattern("math::sub"), ToolLimits::default())],
        };
        let idle = rules.idle(&["math::add"]);
        assert_eq!(idle, [("deny", &pattern("htpp::*")), ("limits", &pattern("math::sub"))]);
    }
}
