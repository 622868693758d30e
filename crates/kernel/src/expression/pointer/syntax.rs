//! Syntax tree of a JSONPath query, and its size limits.

use serde_json::Value;

/// How many bytes a pointer may have.
pub(super) const TEXT_BYTES_MAX: usize = 8 * 1024;
/// How deep the filters, parentheses and functions of a pointer may nest. Parsing and evaluation
/// recurse once per level, so this limit protects the stack.
pub(super) const NESTING_MAX: usize = 32;

/// One name or index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A member of an object.
    Name(String),
    /// An element of an array; negative from the end.
    Index(i64),
}

/// The parts after `$` or `@`. Each selects from the nodes that the previous one selected.
#[derive(Debug)]
pub struct Query {
    /// The parts, from left to right.
    pub parts: Vec<Part>,
}

/// One segment of RFC 9535.
#[derive(Debug)]
pub struct Part {
    /// Whether it selects from all descendants too, as `..` does.
    pub descends: bool,
    /// Selectors whose results are concatenated.
    pub selectors: Vec<Selector>,
}

#[derive(Debug)]
pub enum Selector {
    /// One child.
    One(Segment),
    /// All children.
    All,
    /// A range of elements.
    Slice(Slice),
    /// The children for which the test holds.
    Filter(Box<Test>),
}

/// `start:end:step`.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    /// The first index.
    pub start: Option<i64>,
    /// The index before which it ends.
    pub end: Option<i64>,
    /// The distance between two indexes; 1 unless the text says otherwise.
    pub step: i64,
}

#[derive(Debug)]
pub enum Test {
    /// At least one of these holds.
    Any(Vec<Test>),
    /// All of these hold.
    Every(Vec<Test>),
    /// This does not hold.
    Not(Box<Test>),
    /// The query selects something.
    Exists(Query),
    /// Two values compare.
    Compare(Comparison),
    /// A text matches a regular expression.
    Matches(Matching),
}

/// `left sign right`.
#[derive(Debug)]
pub struct Comparison {
    /// The left side.
    pub left: Operand,
    /// How the sides are compared.
    pub sign: Sign,
    /// The right side.
    pub right: Operand,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<=`
    LessOrEqual,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `>`
    Greater,
}

/// `match(text, pattern)` or `search(text, pattern)`.
#[derive(Debug)]
pub struct Matching {
    /// Whether the whole text must match, as `match` requires.
    pub whole: bool,
    pub text: Operand,
    /// The regular expression.
    pub pattern: Operand,
}

/// Something that is one value or nothing.
#[derive(Debug)]
pub enum Operand {
    /// The value itself.
    Literal(Value),
    /// The node at the end of this path from `@`.
    At(Vec<Segment>),
    /// `length(..)`
    Length(Box<Operand>),
    /// `count(..)`
    Count(Query),
    /// `value(..)`
    ValueOf(Query),
}

impl Segment {
    /// The child of this value that the segment selects.
    pub(super) fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match (self, value) {
            (Segment::Name(name), Value::Object(fields)) => fields.get(name),
            (Segment::Index(index), Value::Array(items)) => nth(items, *index),
            _ => None,
        }
    }
}

/// The element at this index; a negative one counts from the end.
pub(super) fn nth<T>(items: &[T], index: i64) -> Option<&T> {
    let index = if index < 0 { items.len() as i64 + index } else { index };
    usize::try_from(index).ok().and_then(|index| items.get(index))
}

impl Query {
    /// The names and indexes, if there is nothing else in it.
    pub(super) fn singular(&self) -> Option<Vec<Segment>> {
        self.parts.iter().map(|part| part.single().cloned()).collect()
    }
}

impl Part {
    /// A part that selects one child.
    pub(super) fn of_name(name: &str) -> Self {
        let selector = Selector::One(Segment::Name(name.to_owned()));
        Self { descends: false, selectors: vec![selector] }
    }

    /// The one name or index, if there is nothing else in it.
    pub(super) fn single(&self) -> Option<&Segment> {
        match self.selectors.as_slice() {
            [Selector::One(segment)] if !self.descends => Some(segment),
            _ => None,
        }
    }

    /// The step that `[?@.planStepId == 'x']` names.
    pub(super) fn step(&self) -> Option<&str> {
        let [Selector::Filter(test)] = self.selectors.as_slice() else { return None };
        let Test::Compare(Comparison { left, sign: Sign::Equal, right }) = test.as_ref() else {
            return None;
        };
        let (path, step) = match (left, right) {
            (Operand::At(path), Operand::Literal(Value::String(step)))
            | (Operand::Literal(Value::String(step)), Operand::At(path)) => (path, step),
            _ => return None,
        };
        let by_step = matches!(path.as_slice(), [Segment::Name(name)] if name == "planStepId");
        (by_step && !self.descends).then_some(step.as_str())
    }
}

impl Slice {
    /// The indexes that it selects of an array of this length, in its order.
    pub(super) fn indexes(self, len: usize) -> impl Iterator<Item = usize> {
        let len = len as i64;
        let step = self.step;
        let counted = |index: i64| if index < 0 { len + index } else { index };
        let (first, end) = if step > 0 {
            let first = self.start.map_or(0, counted).clamp(0, len);
            (first, self.end.map_or(len, counted).clamp(0, len))
        } else {
            let first = self.start.map_or(len - 1, counted).clamp(-1, len - 1);
            (first, self.end.map_or(-1, counted).clamp(-1, len - 1))
        };
        let inside = move |index: &i64| match step {
            0 => false,
            1.. => *index < end,
            _ => *index > end,
        };
        let next = move |index: &i64| index.checked_add(step).filter(inside);
        std::iter::successors(Some(first).filter(inside), next).map(|index| index as usize)
    }
}
