//! The reasons of a pipeline's handler, and how a case's reason is compared with them. The compiled
//! plan uses the same expressions, so a case is counted under the handler that took it.

use crate::expression::patterns::{Unusable, compile};
use regex::Regex;

/// How reasons are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Letter by letter.
    Exact,
    /// Upper and lower case are the same.
    AnyCase,
    /// As regular expressions, which may fit a part of the reason. Upper and lower case are the
    /// same, as in patterns of the rules model.
    Pattern,
}

impl Comparison {
    /// All of them, by the name that a pipeline's file has for each.
    pub const NAMES: [(&'static str, Self); 3] =
        [("exact", Self::Exact), ("any-case", Self::AnyCase), ("pattern", Self::Pattern)];
}

/// The reasons of one handler.
#[derive(Debug, Clone)]
pub struct Reasons {
    texts: Vec<String>,
    comparison: Comparison,
    /// What all of them come to, where they are not compared letter by letter.
    pattern: Option<Regex>,
}

/// Two that are written alike compare alike.
impl PartialEq for Reasons {
    fn eq(&self, other: &Self) -> bool {
        (&self.texts, self.comparison) == (&other.texts, other.comparison)
    }
}

impl Reasons {
    /// These reasons, compared so; what is wrong with them as an expression, where it is one.
    pub(crate) fn new(texts: Vec<String>, comparison: Comparison) -> Result<Self, Unusable> {
        let each = |text: &String| match comparison {
            Comparison::Pattern => format!("(?:{text})"),
            Comparison::Exact | Comparison::AnyCase => regex::escape(text),
        };
        let all = || texts.iter().map(each).collect::<Vec<_>>().join("|");
        let pattern = match comparison {
            Comparison::Exact => None,
            Comparison::AnyCase => Some(compile(&format!("(?i)^(?:{})$", all()))?),
            Comparison::Pattern => Some(compile(&format!("(?i){}", all()))?),
        };
        Ok(Self { texts, comparison, pattern })
    }

    /// The reasons as they are written.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The reasons on one line, for people.
    pub fn text(&self) -> String {
        self.texts.join(", ")
    }

    /// The regular expression that decides; none where they are compared letter by letter.
    pub fn expression(&self) -> Option<&str> {
        self.pattern.as_ref().map(Regex::as_str)
    }

    /// Whether a case with this reason is the handler's.
    pub fn take(&self, reason: &str) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.is_match(reason),
            None => self.texts.iter().any(|text| text == reason),
        }
    }

    /// The same of a reason that was counted, and cut to so many characters before.
    pub fn take_counted(&self, counted: &str, chars_max: usize) -> bool {
        let is_cut_so = |text: &String| text.chars().take(chars_max).eq(counted.chars());
        match &self.pattern {
            Some(pattern) => pattern.is_match(counted),
            None => self.texts.iter().any(is_cut_so),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(texts: &[&str], comparison: Comparison) -> Reasons {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Reasons::new(texts, comparison).unwrap()
    }

    #[test]
    fn reasons_are_compared_as_the_file_says() {
        let exact = reasons(&["Late", "Too late"], Comparison::Exact);
        assert!(exact.take("Late") && exact.take("Too late"));
        assert!(!exact.take("late") && !exact.take("Late "));
        assert_eq!((exact.expression(), exact.text().as_str()), (None, "Late, Too late"));
        let any = reasons(&["Straße (a.b)", "late"], Comparison::AnyCase);
        assert!(any.take("STRAßE (A.B)") && any.take("LATE"));
        assert!(!any.take("Straße (aXb)") && !any.take("too late") && !any.take("late\n"));
        let pattern = reasons(&["^Missing (ISIN|CUSIP)", "a|b$"], Comparison::Pattern);
        assert!(pattern.take("Missing CUSIP of T-1") && pattern.take("club"));
        assert!(pattern.take("missing isin") && pattern.take("CLUB") && !pattern.take("xyz"));
        let strict = reasons(&["(?-i)^Late"], Comparison::Pattern);
        assert!(strict.take("Late again") && !strict.take("late again"));
        assert!(matches!(
            Reasons::new(vec!["(".to_owned()], Comparison::Pattern),
            Err(Unusable::Wrong(_))
        ));
    }

    #[test]
    fn counted_reasons_are_found_by_prefix() {
        let exact = reasons(&["ääää"], Comparison::Exact);
        assert!(exact.take_counted("äää", 3) && !exact.take_counted("ää", 3));
        assert!(reasons(&["LATE"], Comparison::AnyCase).take_counted("late", 3));
    }
}
