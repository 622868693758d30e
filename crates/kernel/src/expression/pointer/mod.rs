//! Pointers: JSONPath over `{context, history, promptInput}`. Whether a pointer yields one value or
//! an array is fixed by its syntax when it is read, never by data.

use crate::expression::budget::Budget;
use crate::values::datum::{BlobRef, Datum, DatumValue, Origin};
use crate::values::fault::Fault;
use crate::values::history::Entry;
use crate::values::ids::StepId;
use serde_json::Value;
use std::sync::Arc;

mod syntax;
mod parse;
mod query;
mod filter;

pub use syntax::Segment;
use syntax::{Part, Query, nth};

/// How many characters of a pointer a message shows.
const SHOWN_CHARS_MAX: usize = 200;

/// A pointer, classified.
#[derive(Debug)]
pub struct Pointer {
    /// As the plan spells it.
    pub text: String,
    pub target: Target,
    pub rest: Rest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    ContextKey(String),
    /// The whole context.
    Context,
    /// The run's input.
    Input,
    /// The n-th newest entry that the frame sees.
    Recent(usize),
    /// The latest successful entry of a step.
    Step(StepId),
    /// A query over the history, answered by the store; of one step's entries if it names one.
    History(Option<StepId>),
}

#[derive(Debug)]
pub enum Rest {
    /// One node, by names and indexes.
    One(Vec<Segment>),
    /// Any number of nodes below that one: always an array.
    Many(Vec<Segment>, Query),
    /// The text is invalid, with the reason.
    Unreadable(String),
}

/// Data that must be fetched before a pointer can be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fetch {
    /// A blob, because the pointer goes into it.
    Blob(crate::values::ids::ContentHash),
    /// The entries that the frame sees, newest first; of one step if it names one.
    History(Option<StepId>),
}

/// Why an expression has no value yet, or never.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// Something must be fetched first.
    Want(Fetch),
    /// It cannot be resolved.
    Fault(Fault),
}

impl From<Fetch> for Stop {
    fn from(want: Fetch) -> Self {
        Stop::Want(want)
    }
}

/// A frame's view of its session, which pointers read.
pub trait View {
    fn context(&self, key: &str) -> Option<Arc<Datum>>;
    /// All keys of the context.
    fn whole_context(&self) -> Datum;
    /// The run's input.
    fn input(&self) -> Arc<Datum>;
    /// The n-th newest entry, if it is at hand.
    fn recent(&self, index: usize) -> Recent;
    /// The latest successful entry of a step.
    fn latest(&self, step: &StepId) -> Option<Arc<Entry>>;
    /// A blob's value, once fetched.
    fn blob(&self, blob: &BlobRef) -> Option<Arc<Value>>;
    /// The entries that a history query looks at, once fetched.
    fn history(&self, step: Option<&StepId>) -> Option<Arc<Value>>;
    /// How much may still be looked at and copied.
    fn budget(&self) -> &Budget;
}

/// An entry by its age.
#[derive(Debug)]
pub enum Recent {
    Entry(Arc<Entry>),
    /// There is none.
    Absent,
    /// Too old to be at hand: the store knows.
    Stored,
}

/// A selected value and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    pub value: Value,
    pub from: Origin,
}

/// A pointer that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pointer `{text}` cannot be read: {why}")]
pub struct BadPointer {
    pub text: String,
    pub why: String,
}

impl Pointer {
    /// Reads a pointer. `all` turns a step reference into all entries of that step.
    pub fn parse(text: &str, all: bool) -> Result<Self, BadPointer> {
        match read(text, all) {
            Ok((target, rest)) => Ok(Self { text: text.to_owned(), target, rest }),
            Err(why) => Err(BadPointer { text: shown(text), why }),
        }
    }

    /// A pointer of a stored plan that was accepted once and cannot be read now: to resolve it is a
    /// fault, so that its run ends in a way that a person can see.
    pub fn unreadable(bad: BadPointer) -> Self {
        Self { text: bad.text, target: Target::Input, rest: Rest::Unreadable(bad.why) }
    }

    /// The value, `None` when it is absent, or what must be fetched first.
    pub fn resolve(&self, view: &dyn View) -> Result<Option<Selected>, Stop> {
        self.selected(Blob::Named, view)
    }

    /// The same, with a whole blob opened: for readers that need what is inside.
    pub fn resolve_opened(&self, view: &dyn View) -> Result<Option<Selected>, Stop> {
        self.selected(Blob::Opened, view)
    }

    fn selected(&self, whole: Blob, view: &dyn View) -> Result<Option<Selected>, Stop> {
        let (segments, query) = match &self.rest {
            Rest::One(segments) => (segments, None),
            Rest::Many(segments, query) => (segments, Some(query)),
            Rest::Unreadable(why) => return Err(self.unread(why)),
        };
        let whole = if query.is_some() { Blob::Opened } else { whole };
        let found = match self.place(view)? {
            Some(datum) => {
                view.budget().charge(width(&datum)).map_err(|why| self.refused(&why))?;
                find(&datum, segments, whole, view)?
            }
            None => None,
        };
        let Some((node, from)) = found.as_ref().and_then(Found::node) else {
            // A query over nothing selects nothing.
            let value = query.map(|_| Value::Array(Vec::new()));
            return Ok(value.map(|value| Selected { value, from: Origin::Plan }));
        };
        let value = match query {
            Some(query) => query::select(query, node, view.budget()).map(Value::Array),
            None => view.budget().charge_copy(node).map(|()| node.clone()),
        };
        let value = value.map_err(|why| self.refused(&why))?;
        Ok(Some(Selected { value, from: from.clone() }))
    }

    fn refused(&self, why: &str) -> Stop {
        let message = format!("pointer `{}` cannot be resolved: {why}", shown(&self.text));
        let hint = "select less, or raise `pointer_nodes_max` in [limits]";
        Stop::Fault(Fault::new("PointerError", message).hint(hint))
    }

    fn unread(&self, why: &str) -> Stop {
        let message = format!("pointer `{}` cannot be read: {why}", shown(&self.text));
        let hint = "correct the plan and start a new run";
        Stop::Fault(Fault::new("PointerError", message).hint(hint))
    }

    /// The target value, if it exists.
    fn place(&self, view: &dyn View) -> Result<Option<Arc<Datum>>, Fetch> {
        Ok(match &self.target {
            Target::ContextKey(key) => view.context(key),
            Target::Context => Some(Arc::new(view.whole_context())),
            Target::Input => Some(view.input()),
            Target::Recent(index) => match view.recent(*index) {
                Recent::Entry(entry) => Some(Arc::new(entry.datum())),
                Recent::Absent => None,
                Recent::Stored => {
                    let history = view.history(None).ok_or(Fetch::History(None))?;
                    let entry = history.get(*index).cloned();
                    entry.map(|entry| Arc::new(Datum::inline(entry, Origin::Join)))
                }
            },
            Target::Step(step) => view.latest(step).map(|entry| Arc::new(entry.datum())),
            Target::History(step) => {
                let history =
                    view.history(step.as_ref()).ok_or_else(|| Fetch::History(step.clone()))?;
                Some(Arc::new(Datum::joined(DatumValue::Value(history))))
            }
        })
    }
}

fn read(text: &str, all: bool) -> Result<(Target, Rest), String> {
    let (segments, parts) = split(parse::parse(text)?.parts);
    let [Segment::Name(root), inner @ ..] = segments.as_slice() else {
        return Err("it must begin with $.context, $.history or $.promptInput".to_owned());
    };
    match (root.as_str(), inner) {
        ("context", [Segment::Name(key), deeper @ ..]) => {
            Ok((Target::ContextKey(key.clone()), Rest::of(deeper, parts)))
        }
        ("context", _) => Ok((Target::Context, Rest::of(inner, parts))),
        ("promptInput", _) => Ok((Target::Input, Rest::of(inner, parts))),
        ("history", []) => Ok(read_history(parts, all)),
        ("history", [Segment::Index(index @ 0..), deeper @ ..]) => {
            Ok((Target::Recent(*index as usize), Rest::of(deeper, parts)))
        }
        ("history", _) => Ok((Target::History(None), Rest::of(inner, parts))),
        (other, _) => Err(format!("there is no `$.{other}`; use context, history or promptInput")),
    }
}

fn read_history(mut parts: Vec<Part>, all: bool) -> (Target, Rest) {
    match parts.first().and_then(Part::step).map(StepId::from) {
        Some(step) if !all => {
            let (segments, after) = split(parts.split_off(1));
            (Target::Step(step), Rest::of(&segments, after))
        }
        step => (Target::History(step), Rest::of(&[], parts)),
    }
}

/// The names and indexes at the beginning, and the other parts.
fn split(mut parts: Vec<Part>) -> (Vec<Segment>, Vec<Part>) {
    let segments: Vec<Segment> = parts.iter().map_while(Part::single).cloned().collect();
    let others = parts.split_off(segments.len());
    (segments, others)
}

/// The text as messages show it.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}

impl Rest {
    fn of(segments: &[Segment], parts: Vec<Part>) -> Self {
        let segments = segments.to_vec();
        if parts.is_empty() { Rest::One(segments) } else { Rest::Many(segments, Query { parts }) }
    }
}

/// How a selected blob is returned.
#[derive(Clone, Copy)]
pub(crate) enum Blob {
    /// Its URI: a reader that wants the value can fetch it.
    Named,
    /// Its value, because something goes into it.
    Opened,
}

/// Where a node is: in this value, at the end of this path.
struct Found<'s> {
    value: Arc<Value>,
    path: &'s [Segment],
    from: Origin,
}

impl Found<'_> {
    fn node(&self) -> Option<(&Value, &Origin)> {
        let node = self.path.iter().try_fold(&*self.value, |value, segment| segment.of(value));
        node.map(|node| (node, &self.from))
    }
}

/// How many keys are searched: the whole context is put together for each pointer.
fn width(datum: &Datum) -> usize {
    match &datum.held {
        DatumValue::Object(fields) => fields.len(),
        DatumValue::Value(_) | DatumValue::Blob(_) | DatumValue::Array(_) => 1,
    }
}

fn fetched(blob: &BlobRef, view: &dyn View) -> Result<Arc<Value>, Fetch> {
    view.blob(blob).ok_or_else(|| Fetch::Blob(blob.hash.clone()))
}

/// Follows the path through what is held as references, up to the value that is held as one.
fn find<'s>(
    mut datum: &Datum,
    mut path: &'s [Segment],
    whole: Blob,
    view: &dyn View,
) -> Result<Option<Found<'s>>, Fetch> {
    let value = loop {
        let (next, deeper) = match (&datum.held, path.split_first()) {
            (DatumValue::Value(value), _) => break value.clone(),
            (DatumValue::Blob(blob), Some(_)) => break fetched(blob, view)?,
            (DatumValue::Blob(blob), None) if matches!(whole, Blob::Opened) => {
                break fetched(blob, view)?;
            }
            (_, None) => break Arc::new(datum.to_value()),
            (DatumValue::Object(fields), Some((Segment::Name(name), deeper))) => {
                (fields.get(name), deeper)
            }
            (DatumValue::Array(items), Some((Segment::Index(index), deeper))) => {
                (nth(items, *index), deeper)
            }
            (DatumValue::Object(_) | DatumValue::Array(_), Some(_)) => return Ok(None),
        };
        let Some(next) = next else { return Ok(None) };
        datum = next;
        path = deeper;
    };
    Ok(Some(Found { value, path, from: datum.from.clone() }))
}

#[cfg(test)]
mod tests;
