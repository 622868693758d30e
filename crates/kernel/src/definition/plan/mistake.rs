//! Mistakes in definitions: message, position and hint.

use crate::values::named_enum::named;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something in a plan that is wrong or looks wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    /// Whether the plan can be used in spite of it.
    pub severity: Severity,
    /// The plan's file, if it came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1; 0 for a plan that is not a text.
    pub line: u32,
    /// The column in characters, from 1; 0 for a plan that is not a text.
    pub column: u32,
    /// JSON Pointer into the plan, such as `/steps/2/arguments/a`; empty for the whole.
    pub pointer: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A place in a text; 0 and 0 where there is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

named! {
    /// How bad a mistake is.
    Severity {
        /// The plan is refused.
        Error = "error",
        /// The plan is taken; something in it has no effect.
        Warning = "warning",
    }
}

impl Mistake {
    /// An error that has no place yet.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message.into())
    }

    /// A warning that has no place yet.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message.into())
    }

    /// The same mistake with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same mistake at a place; the file is left as it is.
    #[must_use]
    pub fn at(self, position: Position, pointer: impl Into<String>) -> Self {
        let Position { line, column } = position;
        Self { line, column, pointer: pointer.into(), ..self }
    }

    /// Whether the plan is refused because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    fn new(severity: Severity, message: String) -> Self {
        let pointer = String::new();
        Self { severity, file: None, line: 0, column: 0, pointer, message, hint: None }
    }
}

/// What was read, with warnings, or all that is wrong with it.
pub type CheckResult<T> = Result<(T, Vec<Mistake>), Vec<Mistake>>;

/// What was read, unless one of these mistakes is an error; they are put in the order of the text.
pub(crate) fn checked<T>(read: Option<T>, mut mistakes: Vec<Mistake>) -> CheckResult<T> {
    mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
    match read {
        Some(read) if !mistakes.iter().any(Mistake::is_error) => Ok((read, mistakes)),
        _ => Err(mistakes),
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
        }
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        if self.file.is_some() || self.line > 0 {
            f.write_str(" ")?;
        }
        write!(f, "{}: ", self.severity)?;
        // Without a line the pointer is the only way to find the place.
        if self.line == 0 && !self.pointer.is_empty() {
            write!(f, "at `{}`: ", self.pointer)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The candidate that someone who wrote `word` most likely meant, if one is near.
pub fn did_you_mean<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let word = folded(word);
    let far = word.len() / 3;
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &folded(candidate)), candidate))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The same as a hint: ``did you mean `x`?``.
pub fn meant<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    did_you_mean(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// The step that was meant, else all there are.
pub fn meant_step<'c>(word: &str, names: impl Iterator<Item = &'c str> + Clone) -> String {
    let all = || {
        let quoted: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
        format!("the steps are {}", quoted.join(", "))
    };
    meant(word, names.clone()).unwrap_or_else(all)
}

/// `next_step_id` and `nextStepId` are the same word to a reader. Longer words than this are not
/// names, and comparing them would cost more than the hint is worth.
const WORD_CHARS_MAX: usize = 100;

fn folded(word: &str) -> Vec<char> {
    let letters = word.chars().filter(|char| *char != '_' && *char != '-');
    letters.take(WORD_CHARS_MAX).flat_map(char::to_lowercase).collect()
}

/// How many letters must be put in, left out, replaced or swapped with their neighbour.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = Vec::with_capacity(right.len() + 1);
        row.push(i + 1);
        for (j, r) in right.iter().enumerate() {
            let replaced = last[j] + usize::from(l != r);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn did_you_mean_suggests_near_words_only() {
        let keys = ["nextStepId", "toolId", "arguments", "saveAs"];
        assert_eq!(did_you_mean("next_step_id", keys), Some("nextStepId"));
        assert_eq!(did_you_mean("nextStep", keys), Some("nextStepId"));
        assert_eq!(did_you_mean("argumnets", keys), Some("arguments"));
        assert_eq!(did_you_mean("tool", keys), None);
        assert_eq!(did_you_mean("x", keys), None);
        assert_eq!(did_you_mean("", keys), None);
    }

    #[test]
    fn a_mistake_is_printed_on_one_line() {
        let mistake = Mistake::error("unknown key `x`").hint("leave it out");
        let mut mistake = mistake.at(Position { line: 12, column: 5 }, "/x");
        mistake.file = Some("plans/x.yaml".to_owned());
        let text = "plans/x.yaml:12:5: error: unknown key `x`; hint: leave it out";
        assert_eq!(mistake.to_string(), text);
        let inline = Mistake::warning("no effect").at(Position::default(), "/steps/0");
        assert_eq!(inline.to_string(), "warning: at `/steps/0`: no effect");
        assert_eq!(Mistake::error("bad").to_string(), "error: bad");
    }
}
