//! Pointers: JSONPath over `{context, history, promptInput}`. Whether a pointer yields one value or
//! an array is fixed by its syntax when it is read, never by data.

use crate::datum::{BlobRef, Datum, Held, Origin};
use crate::entry::Entry;
use crate::ids::StepId;
use serde_json::Value;
use serde_json_path::JsonPath;
use std::sync::Arc;

/// A pointer, classified.
#[derive(Debug)]
pub struct Pointer {
    /// As the plan spells it.
    pub text: String,
    /// What it selects from.
    pub target: Target,
    /// What it selects there.
    pub rest: Rest,
}

/// What a pointer selects from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// One key of the context.
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

/// What is selected inside the target.
#[derive(Debug)]
pub enum Rest {
    /// One node, by names and indexes.
    One(Vec<Segment>),
    /// Any number of nodes below that one: always an array.
    Many(Vec<Segment>, Box<JsonPath>),
}

/// One name or index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A member of an object.
    Name(String),
    /// An element of an array; negative from the end.
    Index(i64),
}

/// What must be fetched before a pointer can be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Want {
    /// A blob, because the pointer goes into it.
    Blob(crate::ids::ContentHash),
    /// The entries that the frame sees, newest first; of one step if it names one.
    History(Option<StepId>),
}

/// What a pointer can see: a frame's view of its session.
pub trait View {
    /// One key of the context.
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
}

/// An entry by its age.
#[derive(Debug)]
pub enum Recent {
    /// Here it is.
    Entry(Arc<Entry>),
    /// There is none.
    Absent,
    /// Too old to be at hand: the store knows.
    Stored,
}

/// A selected value and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// The value.
    pub value: Value,
    /// Where it came from.
    pub from: Origin,
}

/// A pointer that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pointer `{text}` cannot be read: {why}")]
pub struct BadPointer {
    /// The pointer.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl Pointer {
    /// Reads a pointer. `all` turns a step reference into all entries of that step.
    pub fn parse(text: &str, all: bool) -> Result<Self, BadPointer> {
        let bad = |why: &str| BadPointer { text: text.to_owned(), why: why.to_owned() };
        let rewritten = Reader::new(text).bracket_context_key();
        let mut reader = Reader::new(&rewritten);
        if !reader.eat("$") {
            return Err(bad("it does not begin with `$`"));
        }
        let segments = reader.segments();
        let left = reader.rest();
        let Some((Segment::Name(root), inner)) = segments.split_first() else {
            return Err(bad("it must begin with $.context, $.history or $.promptInput"));
        };
        let pointer = |target, rest| Pointer { text: text.to_owned(), target, rest };
        match root.as_str() {
            "context" => match inner.split_first() {
                Some((Segment::Name(key), deeper)) => Ok(pointer(
                    Target::ContextKey(key.clone()),
                    Rest::read(deeper, left).map_err(|why| bad(&why))?,
                )),
                _ => {
                    Ok(pointer(Target::Context, Rest::read(inner, left).map_err(|why| bad(&why))?))
                }
            },
            "promptInput" => {
                Ok(pointer(Target::Input, Rest::read(inner, left).map_err(|why| bad(&why))?))
            }
            "history" => read_history(inner, left, all)
                .map(|(target, rest)| pointer(target, rest))
                .map_err(|why| bad(&why)),
            other => {
                Err(bad(&format!("there is no `$.{other}`; use context, history or promptInput")))
            }
        }
    }

    /// The value, `None` when it is absent, or what must be fetched first.
    pub fn resolve(&self, view: &dyn View) -> Result<Option<Selected>, Want> {
        let datum = match self.place(view)? {
            Some(datum) => datum,
            None => return Ok(self.rest.of_nothing()),
        };
        self.rest.select(&datum, view)
    }

    /// The same, with a whole blob opened: for whoever needs what is inside.
    pub fn resolve_opened(&self, view: &dyn View) -> Result<Option<Selected>, Want> {
        match (&self.rest, self.place(view)?) {
            (Rest::One(segments), Some(datum)) => select_one(&datum, segments, Blob::Opened, view),
            (rest, Some(datum)) => rest.select(&datum, view),
            (rest, None) => Ok(rest.of_nothing()),
        }
    }

    /// What the pointer selects from, if it is there.
    fn place(&self, view: &dyn View) -> Result<Option<Arc<Datum>>, Want> {
        let inline = |value: Value| Arc::new(Datum::inline(value, Origin::Join));
        Ok(match &self.target {
            Target::ContextKey(key) => view.context(key),
            Target::Context => Some(Arc::new(view.whole_context())),
            Target::Input => Some(view.input()),
            Target::Recent(index) => match view.recent(*index) {
                Recent::Entry(entry) => Some(Arc::new(entry.datum())),
                Recent::Absent => None,
                Recent::Stored => {
                    let history = view.history(None).ok_or(Want::History(None))?;
                    history.get(*index).cloned().map(inline)
                }
            },
            Target::Step(step) => view.latest(step).map(|entry| Arc::new(entry.datum())),
            Target::History(step) => {
                let history =
                    view.history(step.as_ref()).ok_or_else(|| Want::History(step.clone()))?;
                Some(inline((*history).clone()))
            }
        })
    }
}

fn read_history(inner: &[Segment], left: &str, all: bool) -> Result<(Target, Rest), String> {
    if inner.is_empty() {
        if let Some((step, after)) = read_step_filter(left) {
            if all {
                return Ok((Target::History(Some(step.into())), Rest::read(&[], left)?));
            }
            let mut reader = Reader::new(after);
            let segments = reader.segments();
            return Ok((Target::Step(step.into()), Rest::read(&segments, reader.rest())?));
        }
        return Ok((Target::History(None), Rest::read(&[], left)?));
    }
    match &inner[0] {
        Segment::Index(index) if *index >= 0 => {
            Ok((Target::Recent(*index as usize), Rest::read(&inner[1..], left)?))
        }
        _ => Ok((Target::History(None), Rest::read(inner, left)?)),
    }
}

/// Reads `[?@.planStepId == 'x']` in all its spellings: the step, and what follows the bracket.
fn read_step_filter(text: &str) -> Option<(String, &str)> {
    let mut reader = Reader::new(text);
    if !reader.eat("[") {
        return None;
    }
    reader.spaces();
    if !reader.eat("?") {
        return None;
    }
    reader.spaces();
    let mut parentheses = 0;
    while reader.eat("(") {
        parentheses += 1;
        reader.spaces();
    }
    let step = if let Some(step) = reader.quoted() {
        reader.equal_sign()?;
        reader.step_field()?;
        step
    } else {
        reader.step_field()?;
        reader.equal_sign()?;
        reader.quoted()?
    };
    reader.spaces();
    for _ in 0..parentheses {
        if !reader.eat(")") {
            return None;
        }
        reader.spaces();
    }
    reader.eat("]").then(|| (step, &text[reader.at..]))
}

impl Rest {
    fn read(segments: &[Segment], left: &str) -> Result<Self, String> {
        if left.is_empty() {
            return Ok(Rest::One(segments.to_vec()));
        }
        if outside_quotes(left).any(|char| char == '$') {
            return Err("a filter may look only at `@`, not at `$`".to_owned());
        }
        let path = JsonPath::parse(&format!("${left}")).map_err(|error| error.to_string())?;
        Ok(Rest::Many(segments.to_vec(), Box::new(path)))
    }

    /// What this selects where there is nothing: no value, or an empty array.
    fn of_nothing(&self) -> Option<Selected> {
        match self {
            Rest::One(_) => None,
            Rest::Many(..) => {
                Some(Selected { value: Value::Array(Vec::new()), from: Origin::Plan })
            }
        }
    }

    fn select(&self, datum: &Datum, view: &dyn View) -> Result<Option<Selected>, Want> {
        match self {
            Rest::One(segments) => select_one(datum, segments, Blob::Named, view),
            Rest::Many(segments, path) => {
                let Some(found) = select_one(datum, segments, Blob::Opened, view)? else {
                    return Ok(self.of_nothing());
                };
                let nodes = path.query(&found.value).all().into_iter().cloned().collect();
                Ok(Some(Selected { value: Value::Array(nodes), from: found.from }))
            }
        }
    }
}

/// What a whole blob yields.
#[derive(Clone, Copy)]
pub(crate) enum Blob {
    /// Its URI: whoever wants the value can fetch it.
    Named,
    /// Its value, because something goes into it.
    Opened,
}

fn fetched(blob: &BlobRef, view: &dyn View) -> Result<Arc<Value>, Want> {
    view.blob(blob).ok_or_else(|| Want::Blob(blob.hash.clone()))
}

fn select_one(
    datum: &Datum,
    segments: &[Segment],
    whole: Blob,
    view: &dyn View,
) -> Result<Option<Selected>, Want> {
    let Some((first, deeper)) = segments.split_first() else {
        let value = match (&datum.held, whole) {
            (Held::Blob(blob), Blob::Opened) => (*fetched(blob, view)?).clone(),
            _ => datum.to_value(),
        };
        return Ok(Some(Selected { value, from: datum.from.clone() }));
    };
    match &datum.held {
        Held::Value(value) => Ok(inside(value, segments)
            .map(|value| Selected { value: value.clone(), from: datum.from.clone() })),
        Held::Blob(blob) => {
            let value = fetched(blob, view)?;
            Ok(inside(&value, segments)
                .map(|value| Selected { value: value.clone(), from: datum.from.clone() }))
        }
        Held::Object(fields) => match first {
            Segment::Name(name) => match fields.get(name) {
                Some(field) => select_one(field, deeper, whole, view),
                None => Ok(None),
            },
            Segment::Index(_) => Ok(None),
        },
        Held::Array(items) => match first {
            Segment::Index(index) => match nth(items, *index) {
                Some(item) => select_one(item, deeper, whole, view),
                None => Ok(None),
            },
            Segment::Name(_) => Ok(None),
        },
    }
}

fn inside<'v>(value: &'v Value, segments: &[Segment]) -> Option<&'v Value> {
    segments.iter().try_fold(value, |value, segment| match (segment, value) {
        (Segment::Name(name), Value::Object(fields)) => fields.get(name),
        (Segment::Index(index), Value::Array(items)) => nth(items, *index),
        _ => None,
    })
}

fn nth<T>(items: &[T], index: i64) -> Option<&T> {
    let index = if index < 0 { items.len() as i64 + index } else { index };
    usize::try_from(index).ok().and_then(|index| items.get(index))
}

fn outside_quotes(text: &str) -> impl Iterator<Item = char> {
    let mut quote = None;
    let mut escaped = false;
    text.chars().filter(move |&char| {
        let inside = quote.is_some();
        match quote {
            Some(open) if char == open && !escaped => quote = None,
            None if char == '\'' || char == '"' => quote = Some(char),
            _ => {}
        }
        escaped = inside && char == '\\' && !escaped;
        !inside && quote.is_none()
    })
}

/// Reads a pointer's text from left to right.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn while_char(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|char| !fits(char)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// `$.context.a-b::c` is legal here: the key is put into brackets, as RFC 9535 wants it.
    fn bracket_context_key(mut self) -> String {
        if !self.eat("$.context.") {
            return self.text.to_owned();
        }
        let key = self.while_char(|c| is_name_char(c) || c == '-' || c == ':');
        if key.is_empty()
            || key.chars().all(is_name_char) && !key.starts_with(|c: char| c.is_ascii_digit())
        {
            return self.text.to_owned();
        }
        format!("$.context[{}]{}", Value::from(key), self.rest())
    }

    /// As many names and indexes as follow each other.
    fn segments(&mut self) -> Vec<Segment> {
        let mut segments = Vec::new();
        while let Some(segment) = self.segment() {
            segments.push(segment);
        }
        segments
    }

    fn segment(&mut self) -> Option<Segment> {
        let start = self.at;
        let segment = if self.eat("[") { self.bracket() } else { self.dotted() };
        if segment.is_none() {
            self.at = start;
        }
        segment
    }

    fn dotted(&mut self) -> Option<Segment> {
        if !self.eat(".") || self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let name = self.while_char(is_name_char);
        (!name.is_empty()).then(|| Segment::Name(name.to_owned()))
    }

    fn bracket(&mut self) -> Option<Segment> {
        self.spaces();
        let segment = match self.quoted() {
            Some(name) => Segment::Name(name),
            None => {
                let digits = self.while_char(|c| c.is_ascii_digit() || c == '-');
                Segment::Index(digits.parse().ok()?)
            }
        };
        self.spaces();
        self.eat("]").then_some(segment)
    }

    fn quoted(&mut self) -> Option<String> {
        let quote = self.rest().chars().next().filter(|c| *c == '\'' || *c == '"')?;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((index, char)) = chars.next() {
            if char == quote {
                self.at += index + 1;
                return Some(text);
            }
            match char {
                '\\' => match chars.next()?.1 {
                    char @ ('\\' | '/' | '\'' | '"') => text.push(char),
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    _ => return None,
                },
                char => text.push(char),
            }
        }
        None
    }

    fn equal_sign(&mut self) -> Option<()> {
        self.spaces();
        let found = self.eat("==");
        self.spaces();
        found.then_some(())
    }

    fn step_field(&mut self) -> Option<()> {
        let spellings = ["@.planStepId", "@['planStepId']", "@[\"planStepId\"]"];
        spellings.iter().any(|word| self.eat(word)).then_some(())
    }
}

fn is_name_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_' || !char.is_ascii()
}

#[cfg(test)]
mod tests;
