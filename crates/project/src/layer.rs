//! One layer of settings: a text in the format of `waypost.toml`, the source that it comes from,
//! and the location of each setting in it, for mistakes and `config show`. A variable of the
//! environment is written as the one line that it stands for, so that one reader serves all layers.
//! How layers override each other is in `config`.

use kernel::definition::plan::mistake::{Mistake, Position};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The longest name of an upstream, a model, a sink or an issuer, and the longest prefix.
pub const NAME_CHARS_MAX: usize = 64;

/// Where a setting, or a layer of them, comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of settings, by the name that people know it by.
    File(String),
    /// A line of a file.
    Line {
        file: String,
        /// The line, from 1.
        line: u32,
    },
    /// A variable of the environment.
    Variable(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(file) => f.write_str(file),
            Source::Line { file, line } => write!(f, "{file}:{line}"),
            Source::Variable(name) => write!(f, "environment {name}"),
        }
    }
}

/// A place that a person can look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file, or `environment` and the name of a variable.
    pub file: Arc<str>,
    /// The line, from 1; 0 where there is none.
    pub line: u32,
    /// The column in characters, from 1; 0 where there is none.
    pub column: u32,
}

impl Location {
    /// A whole file or variable.
    pub fn whole(file: &str) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }

    /// This mistake, made here.
    pub fn mistake(&self, mistake: Mistake) -> Mistake {
        let mut mistake = match self.line {
            0 => mistake,
            line => mistake.at(Position { line, column: self.column }, ""),
        };
        mistake.file = Some(self.file.to_string());
        mistake
    }

    /// Refuses a name that stands here, unless it is made of letters, digits and these signs. The
    /// signs are written as the message shows them, each in backquotes.
    pub fn check_name(&self, name: &str, what: &str, signs: &str) -> Result<(), Mistake> {
        let fits = |c: char| c.is_ascii_alphanumeric() || signs.contains(&format!("`{c}`"));
        if (1..=NAME_CHARS_MAX).contains(&name.chars().count()) && name.chars().all(fits) {
            return Ok(());
        }
        let mistake = Mistake::error(format!("`{name}` cannot be the name of {what}"));
        let hint = format!("a name is 1 to {NAME_CHARS_MAX} letters, digits, {signs}");
        Err(self.mistake(mistake.hint(hint)))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match self.line {
            0 => Ok(()),
            line => write!(f, ":{line}"),
        }
    }
}

/// Settings from one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Where they come from.
    pub source: Source,
    /// What they say, as `waypost.toml` would say it.
    pub text: String,
}

impl Layer {
    /// What a file says; `name` is what people see of it.
    pub fn file(name: &str, text: &str) -> Self {
        Self { source: Source::File(name.to_owned()), text: text.to_owned() }
    }

    /// Where the setting comes from that stands at this place of the text.
    pub fn origin(&self, span: &Range<usize>) -> Source {
        match &self.source {
            Source::File(file) => {
                Source::Line { file: file.clone(), line: self.locator().of(Some(span)).line }
            }
            Source::Line { .. } | Source::Variable(_) => self.source.clone(),
        }
    }

    /// Finds places in the text.
    pub fn locator(&self) -> Locator<'_> {
        let file = match &self.source {
            Source::File(file) | Source::Line { file, .. } => file.as_str().into(),
            Source::Variable(_) => self.source.to_string().into(),
        };
        let breaks = self.text.match_indices('\n').map(|(at, _)| at + 1);
        Locator { layer: self, file, lines: std::iter::once(0).chain(breaks).collect() }
    }
}

/// Finds places in the text of a layer, each without reading all that stands before it.
pub struct Locator<'l> {
    layer: &'l Layer,
    file: Arc<str>,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl Locator<'_> {
    /// Where this part of the text stands; without one, where all of it does.
    pub fn of(&self, span: Option<&Range<usize>>) -> Location {
        let (line, column) = match &self.layer.source {
            Source::File(_) => span.map(|span| self.place(span.start)).unwrap_or_default(),
            // We wrote this text: a person can look up only the line that it stands for.
            Source::Line { line, .. } => (*line, 1),
            Source::Variable(_) => (0, 0),
        };
        Location { file: self.file.clone(), line, column }
    }

    /// The line and the column, both from 1.
    fn place(&self, at: usize) -> (u32, u32) {
        let line = self.lines.partition_point(|begin| *begin <= at);
        let begin = self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let column = self.layer.text.get(begin..at).unwrap_or_default().chars().count() + 1;
        (u32::try_from(line).unwrap_or(0), u32::try_from(column).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_printed_as_file_and_line() {
        let file = Layer::file("a/waypost.toml", "[server]\nport = 1\n");
        assert_eq!(file.origin(&(9..13)).to_string(), "a/waypost.toml:2");
        let told = file.locator().of(Some(&(9..13))).mistake(Mistake::error("no"));
        assert_eq!(told.to_string(), "a/waypost.toml:2:1: error: no");

        let text = "server.port = 1".to_owned();
        let source = Source::Line { file: ".env".to_owned(), line: 7 };
        let line = Layer { source, text: text.clone() };
        assert_eq!(line.origin(&(0..6)).to_string(), ".env:7");
        let told = line.locator().of(Some(&(14..15))).mistake(Mistake::error("no"));
        assert_eq!(told.to_string(), ".env:7:1: error: no");

        let variable = Layer { source: Source::Variable("WAYPOST_PORT".to_owned()), text };
        assert_eq!(variable.origin(&(0..6)).to_string(), "environment WAYPOST_PORT");
        let told = variable.locator().of(Some(&(14..15))).mistake(Mistake::error("no"));
        assert_eq!(told.to_string(), "environment WAYPOST_PORT: error: no");
    }
}
