//! A query whose names are fields and whose values are known: what is evaluated. It is made by
//! `check` only.

use crate::names::NameSet;
use crate::numbers::Number;
use crate::tree::{Case, Index, Piece};
use jiff::Timestamp;
use jiff::civil::Date;
use std::cmp::Ordering;

#[derive(Debug, Clone, PartialEq)]
pub struct CheckedQuery {
    /// Without one, every record is taken.
    pub filter: Option<Test>,
    pub expansions: Vec<Expansion>,
    pub selection: Selection,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    Never,
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
    Compare(FieldPath, Relation, Wanted),
    /// Equal to one of them.
    OneOf(FieldPath, Vec<Wanted>),
    /// Present and not null.
    Exists(FieldPath),
    /// An element of the array passes; the paths inside begin at the element.
    Element(FieldPath, Box<Test>),
    Words(Words),
}

/// One of these words, in lower case, is in a text of the record that is not hidden.
#[derive(Debug, Clone, PartialEq)]
pub struct Words {
    pub words: Vec<String>,
    pub hidden: NameSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Equal,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
}

impl Relation {
    /// Whether it holds where the field compares so with the value.
    pub fn admits(self, ordering: Ordering) -> bool {
        match self {
            Relation::Equal => ordering.is_eq(),
            Relation::Less => ordering.is_lt(),
            Relation::Greater => ordering.is_gt(),
            Relation::LessOrEqual => ordering.is_le(),
            Relation::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// What a field is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// No value fits.
    Nothing,
    Null,
    Bool(bool),
    Number(Number),
    Day(Date),
    Moment(Timestamp),
    Text(WantedText),
    Pattern(Vec<Piece>, Case),
    /// The id of the record that is referred to.
    Reference(String),
}

/// A text, folded unless case counts.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedText {
    pub text: String,
    pub case: Case,
    /// What it is for a field that is no text, if it was written without quotes.
    pub number: Option<Number>,
    pub boolean: Option<bool>,
}

/// A field, from a record or from an element of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldPath {
    pub root: Root,
    pub steps: Vec<Step>,
    /// Whether it holds dates or date-times.
    pub is_time: bool,
}

impl FieldPath {
    /// Its names, without elements.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.name.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    Record,
    /// The realm that the record is in, which is no part of it.
    Realm,
    /// The field does not exist for this caller.
    Hidden,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub name: String,
    pub index: Index,
}

/// Which records are embedded in the place of a reference, and what of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    pub path: FieldPath,
    /// The full name of their type.
    pub to: String,
    pub filter: Option<Test>,
    pub selection: Selection,
}

/// What of a record is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// Everything, if it is none.
    pub include: Option<NameSet>,
    pub exclude: NameSet,
    pub hidden: NameSet,
}

/// A text without regard to upper and lower case, character by character: what a character becomes
/// does not depend on its neighbours, so that parts of a text fold as the whole does.
pub fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}
