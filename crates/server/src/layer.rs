//! A layer of settings: a text in the format of `waypost.toml`, and where it comes from. A variable
//! is a layer too, written as the one line that it stands for: so one reader finds the mistakes in
//! all of them, and every setting can say whose it is.

use kernel::plan::mistake::Mistake;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a setting, or a layer of them, comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of settings, by the name that people know it by.
    File(String),
    /// A line of a file.
    Line {
        /// The file.
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
pub struct Place {
    /// The file, or what else it is: a variable.
    pub file: Arc<str>,
    /// The line, from 1; 0 where there is none.
    pub line: u32,
    /// The column in characters, from 1; 0 where there is none.
    pub column: u32,
}

impl Place {
    /// All of a file, or of what else it is.
    pub fn whole(file: &str) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }

    /// The mistake at this place.
    pub(crate) fn mistake(&self, mistake: Mistake) -> Mistake {
        let mut mistake = match self.line {
            0 => mistake,
            line => mistake.at((line, self.column), ""),
        };
        mistake.file = Some(self.file.to_string());
        mistake
    }
}

impl fmt::Display for Place {
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
    /// What a file says; `name` is how people are told of it.
    pub fn file(name: &str, text: &str) -> Self {
        Self { source: Source::File(name.to_owned()), text: text.to_owned() }
    }

    /// Where the setting comes from that stands at this place of the text.
    pub fn origin(&self, span: &Range<usize>) -> Source {
        match &self.source {
            Source::File(file) => Source::Line { file: file.clone(), line: self.place(span).0 },
            Source::Line { .. } | Source::Variable(_) => self.source.clone(),
        }
    }

    /// The mistake with its file and, where one is known, its place.
    pub(crate) fn found(&self, span: Option<&Range<usize>>, mistake: Mistake) -> Mistake {
        self.spot(span).mistake(mistake)
    }

    /// Where this part of the text stands.
    pub(crate) fn spot(&self, span: Option<&Range<usize>>) -> Place {
        let (file, place) = match &self.source {
            Source::File(file) => (file.as_str().into(), span.map(|span| self.place(span))),
            // The text is ours: what a person can look up is the line that it stands for.
            Source::Line { file, line } => (file.as_str().into(), Some((*line, 1))),
            Source::Variable(_) => (self.source.to_string().into(), None),
        };
        let (line, column) = place.unwrap_or_default();
        Place { file, line, column }
    }

    /// The line and the column, both from 1.
    fn place(&self, span: &Range<usize>) -> (u32, u32) {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (u32::try_from(line).unwrap_or(0), u32::try_from(column).unwrap_or(0))
    }
}

/// Puts a table over another, key by key: a table goes into the table below it, anything else, a
/// list too, takes the place of what is there.
pub(crate) fn merge<'t>(below: &mut DeTable<'t>, above: DeTable<'t>) {
    for (key, value) in above {
        let span = value.span();
        let value = match value.into_inner() {
            DeValue::Table(table) => match below.get_mut(&key).map(Spanned::get_mut) {
                Some(DeValue::Table(old)) => {
                    merge(old, table);
                    continue;
                }
                _ => DeValue::Table(table),
            },
            plain => plain,
        };
        below.insert(key, Spanned::new(span, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_as_people_can_look_it_up() {
        let file = Layer::file("a/waypost.toml", "[server]\nport = 1\n");
        assert_eq!(file.origin(&(9..13)).to_string(), "a/waypost.toml:2");
        let told = file.found(Some(&(9..13)), Mistake::error("no"));
        assert_eq!(told.to_string(), "a/waypost.toml:2:1: error: no");

        let text = "server.port = 1".to_owned();
        let source = Source::Line { file: ".env".to_owned(), line: 7 };
        let line = Layer { source, text: text.clone() };
        assert_eq!(line.origin(&(0..6)).to_string(), ".env:7");
        let told = line.found(Some(&(14..15)), Mistake::error("no"));
        assert_eq!(told.to_string(), ".env:7:1: error: no");

        let variable = Layer { source: Source::Variable("WAYPOST_PORT".to_owned()), text };
        assert_eq!(variable.origin(&(0..6)).to_string(), "environment WAYPOST_PORT");
        let told = variable.found(Some(&(14..15)), Mistake::error("no"));
        assert_eq!(told.to_string(), "environment WAYPOST_PORT: error: no");
    }
}
