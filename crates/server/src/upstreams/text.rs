//! A text of a settings' file with its place, and how values are read as what they should be.

use super::written::{Shape, Table, Word, Written};
use crate::layer::Place;
use kernel::limits::Limits;
use kernel::plan::mistake::Mistake;
use std::fmt;

/// A text and where it stands.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) place: Place,
}

impl Text {
    /// The mistake at this text.
    pub(crate) fn mistake(&self, mistake: Mistake) -> Mistake {
        self.place.mistake(mistake)
    }
}

/// Without the text: it may be a secret.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)
    }
}

/// Texts by name, in the order of their file.
pub(crate) type Named = Vec<(String, Text)>;

/// Reads values, and notes what is not what it should be.
pub(crate) struct Reading<'m> {
    mistakes: &'m mut Vec<Mistake>,
}

impl<'m> Reading<'m> {
    /// Notes what is wrong here.
    pub(crate) fn new(mistakes: &'m mut Vec<Mistake>) -> Self {
        Self { mistakes }
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &str, value: &Written) -> Option<Text> {
        match &value.value {
            Shape::Text(text) => Some(Text { text: text.clone(), place: value.place.clone() }),
            Shape::Whole(_)
            | Shape::Fraction(_)
            | Shape::Flag(_)
            | Shape::List(_)
            | Shape::Table(_)
            | Shape::Other(_) => self.refuse(key, value, "a text"),
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, key: &str, value: &Written) -> Option<Vec<Text>> {
        let Shape::List(items) = &value.value else {
            return self.refuse(key, value, "a list of texts");
        };
        items.iter().map(|item| self.text(key, item)).collect()
    }

    /// A table of texts.
    pub(crate) fn named(&mut self, key: &str, value: &Written) -> Option<Named> {
        let table = self.table(key, value)?;
        let pair = |(word, value): &(Word, Written)| {
            let text = self.text(&format!("{key}.{}", word.text), value)?;
            Some((word.text.clone(), text))
        };
        table.0.iter().map(pair).collect()
    }

    /// A table.
    pub(crate) fn table<'w>(&mut self, key: &str, value: &'w Written) -> Option<&'w Table> {
        match &value.value {
            Shape::Table(table) => Some(table),
            Shape::Text(_)
            | Shape::Whole(_)
            | Shape::Fraction(_)
            | Shape::Flag(_)
            | Shape::List(_)
            | Shape::Other(_) => self.refuse(key, value, "a table"),
        }
    }

    /// True or false.
    pub(crate) fn flag(&mut self, key: &str, value: &Written) -> Option<bool> {
        match value.value {
            Shape::Flag(flag) => Some(flag),
            Shape::Text(_)
            | Shape::Whole(_)
            | Shape::Fraction(_)
            | Shape::List(_)
            | Shape::Table(_)
            | Shape::Other(_) => self.refuse(key, value, "true or false"),
        }
    }

    /// A whole number from 1 on.
    pub(crate) fn whole(&mut self, key: &str, value: &Written) -> Option<u64> {
        match value.value {
            Shape::Whole(number) if number > 0 => Some(number),
            Shape::Whole(_)
            | Shape::Fraction(_)
            | Shape::Text(_)
            | Shape::Flag(_)
            | Shape::List(_)
            | Shape::Table(_)
            | Shape::Other(_) => self.refuse(key, value, "a whole number from 1 on"),
        }
    }

    /// A whole number that this limit could have.
    pub(crate) fn within(&mut self, key: &str, value: &Written, limit: &str) -> Option<u64> {
        let number = self.whole(key, value)?;
        let (min, max) = Limits::range(limit).into_inner();
        if (min..=max).contains(&number) {
            return Some(number);
        }
        let what = format!("`{key}` = {number} is out of range: it can be {min} to {max}");
        self.mistakes.push(value.place.mistake(Mistake::error(what)));
        None
    }

    /// A number from 0 on, as it is written.
    pub(crate) fn number(&mut self, key: &str, value: &Written) -> Option<Text> {
        let text = match &value.value {
            Shape::Whole(number) => number.to_string(),
            Shape::Fraction(number) => number.clone(),
            Shape::Text(_)
            | Shape::Flag(_)
            | Shape::List(_)
            | Shape::Table(_)
            | Shape::Other(_) => return self.refuse(key, value, "a number from 0 on"),
        };
        Some(Text { text, place: value.place.clone() })
    }

    fn refuse<T>(&mut self, key: &str, value: &Written, wanted: &str) -> Option<T> {
        let what = format!("`{key}` must be {wanted}, and is {}", value.what());
        self.mistakes.push(value.place.mistake(Mistake::error(what)));
        None
    }
}
