//! A query as a tree. Printed (`Display`), it is a query that parses to the same tree.

use crate::fault::Place;
use jiff::Timestamp;
use jiff::civil::Date;

/// A whole query. Without a filter it takes every record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    pub filter: Option<Condition>,
    pub expands: Vec<Expand>,
    pub fields: Option<Projection>,
}

/// What is asked of a record. `All` and `Any` have at least two parts, and none of their own kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Comparison),
    OneOf(Membership),
    /// Present and not null.
    Exists(Path),
    /// One element of the array fits the whole condition.
    Element(Path, Box<Condition>),
    /// One of the words of this text is somewhere in the record.
    Text(Operand),
    Edge(Edge),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub path: Path,
    pub sign: Sign,
    pub operand: Operand,
    pub case: Case,
}

/// `:^[..]` and `:!^[..]`. A list of one variable is as long as the variable's value.
#[derive(Debug, Clone, PartialEq)]
pub struct Membership {
    pub path: Path,
    pub negated: bool,
    pub operands: Vec<Operand>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
}

impl Sign {
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            Sign::Equal => ":",
            Sign::NotEqual => ":!",
            Sign::Less => ":<",
            Sign::Greater => ":>",
            Sign::LessOrEqual => ":<=",
            Sign::GreaterOrEqual => ":>=",
        }
    }
}

/// Whether upper and lower case are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Case {
    #[default]
    Folded,
    /// `~cs`.
    Exact,
}

/// A value and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    pub literal: Literal,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A text without quotes. It is a number, too, where it reads as one.
    Bare(String),
    Quoted(String),
    Whole(i64),
    Decimal(f64),
    Date(Date),
    Moment(Timestamp),
    Variable(String),
    /// The id of a record that is referred to.
    Reference(String),
    Null,
    Bool(bool),
    Pattern(Vec<Piece>),
}

/// A piece of a pattern. No two texts and no two `Any` stand side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// `*`: any characters, or none.
    Any,
    /// `?`: exactly one.
    One,
}

/// The name of a field, and of a field inside it; at least one segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    pub segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    pub name: String,
    pub index: Index,
    pub place: Place,
}

/// Which elements of an array are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// All of them, if it is an array.
    Unsaid,
    /// `[*]`, which means the same.
    Each,
    At(u32),
}

/// `expand(..)`: the record that a reference names is embedded in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Expand {
    pub path: Path,
    /// Which of them are embedded.
    pub filter: Option<Condition>,
    pub fields: Option<Projection>,
    /// Where it begins.
    pub place: Place,
}

/// `fields:[..]`. With nothing to include, all is included that is not excluded.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    pub include: Vec<Path>,
    pub exclude: Vec<Path>,
}

/// What an edge of the ontology leads to, or comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    pub direction: Direction,
    pub predicate: Operand,
    pub other: Operand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `hasEdge` and `hasOutgoingEdge`: from the record.
    Outgoing,
    Incoming,
}
