//! A text of a settings file with its position.

use crate::layer::Location;
use kernel::definition::plan::mistake::Mistake;
use serde::{Serialize, Serializer};
use serde_json::json;
use std::fmt;

/// A text, or a key, and where it stands.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    pub text: String,
    pub place: Location,
}

impl Text {
    /// A text that stands at this place.
    pub fn at(place: &Location, text: &str) -> Self {
        Self { text: text.to_owned(), place: place.clone() }
    }

    pub fn mistake(&self, mistake: Mistake) -> Mistake {
        self.place.mistake(mistake)
    }

    /// The mistake in the table of this name; one that has a place of its own stays there.
    pub fn mistake_below(&self, mut mistake: Mistake) -> Mistake {
        if mistake.file.is_some() {
            return mistake;
        }
        mistake.message = format!("`{}`: {}", self.text, mistake.message);
        self.mistake(mistake)
    }
}

/// Without the text: it may be a secret.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)
    }
}

/// With the text: so settings are written.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

/// Texts by name, in the order of their file.
pub type Named = Vec<(String, Text)>;

/// A text of TOML is written as JSON writes it, but for one letter.
pub fn quoted(text: &str) -> String {
    json!(text).to_string().replace('\u{7f}', "\\u007F")
}

/// A key as TOML writes it.
pub fn bare_or_quoted(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { quoted(key) }
}
