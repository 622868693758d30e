//! One loader for YAML and JSON: a tree in which every node and key knows its line and column.
//!
//! It is built from the parser's events and not by serde, because a mistake must be shown where it
//! stands, keys included, and because YAML's tags, anchors and aliases have no place in a plan.

use super::mistake::{Mistake, Position};
use crate::limits::Limits;
use crate::values::members::is_deeper;
use serde_json::{Number, Value};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, StructureStyle};
use std::collections::BTreeSet;

/// How deep lists and maps may stand in each other.
pub const DEPTH_MAX: usize = 64;

/// A value and where it stands in its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The line, from 1; 0 if it never was in a text.
    pub line: u32,
    /// The column in characters, from 1; 0 if it never was in a text.
    pub column: u32,
    /// The value.
    pub kind: NodeKind,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// Null, or nothing where a value could be.
    Null,
    /// True or false; `yes` and `no` are texts.
    Bool(bool),
    /// A whole number if it fits 64 bits, else a float.
    Number(Number),
    Text(String),
    List(Vec<Node>),
    /// A map, in the order of the text; no key comes twice.
    Map(Vec<(Key, Node)>),
}

/// A key of a map and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub text: String,
    /// The line, from 1; 0 if it never was in a text.
    pub line: u32,
    /// The column in characters, from 1; 0 if it never was in a text.
    pub column: u32,
}

impl Key {
    pub fn begin(&self) -> Position {
        Position { line: self.line, column: self.column }
    }
}

/// What a text is meant to be, for the words of its mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    pub noun: &'static str,
    /// What to do where there is none.
    pub if_empty: &'static str,
    /// What to do where it is too large.
    pub if_large: &'static str,
    /// What to do where it is too deep.
    pub if_deep: &'static str,
}

impl Subject {
    pub const PLAN: Self = Self {
        noun: "plan",
        if_empty: "a plan has `steps`; `waypost init` writes one",
        if_large: "split it into sub-plans, or raise the limit in waypost.toml",
        if_deep: "move inner steps into a plan of their own",
    };

    /// The mistake of being too large.
    pub fn too_large(&self, bytes: usize, limits: &Limits) -> Mistake {
        let noun = self.noun;
        let most = limits.plan_bytes_max;
        Mistake::error(format!("the {noun} has {bytes} bytes, more than `plan_bytes_max` = {most}"))
            .hint(self.if_large)
    }

    /// The mistake of nesting too deep.
    pub fn too_deep(&self) -> Mistake {
        Mistake::error(format!("lists and maps stand more than {DEPTH_MAX} deep in each other"))
            .hint(self.if_deep)
    }

    /// What keeps a value from being read that came without a text: its depth or its size.
    pub(crate) fn refuses(&self, value: &Value, limits: &Limits) -> Option<Mistake> {
        if is_deeper(value, DEPTH_MAX) {
            return Some(self.too_deep());
        }
        let bytes = value.to_string().len();
        (bytes > limits.plan_bytes_max).then(|| self.too_large(bytes, limits))
    }

    fn missing(&self) -> Mistake {
        Mistake::error(format!("the text holds no {}", self.noun)).hint(self.if_empty)
    }
}

impl Node {
    /// Reads a plan's YAML or JSON text. The mistakes have no file yet.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, Vec<Mistake>> {
        Self::parse_as(&Subject::PLAN, text, limits)
    }

    /// Reads the text of something else.
    pub fn parse_as(subject: &Subject, text: &str, limits: &Limits) -> Result<Self, Vec<Mistake>> {
        if text.len() > limits.plan_bytes_max {
            return Err(vec![subject.too_large(text.len(), limits)]);
        }
        let options = serde_saphyr::granit_parser::options! {
            emit_comments: false,
            emit_unresolved_aliases: true,
        };
        let mut builder = Builder {
            subject,
            events: Parser::new_from_str_with_options(text, options),
            path: Vec::new(),
            mistakes: Vec::new(),
        };
        match builder.document() {
            Some(node) if builder.mistakes.is_empty() => Ok(node),
            _ => Err(builder.mistakes),
        }
    }

    /// The tree of a value that has no text; all lines and columns are 0.
    pub fn from_value(value: &Value) -> Self {
        let kind = match value {
            Value::Null => NodeKind::Null,
            Value::Bool(flag) => NodeKind::Bool(*flag),
            Value::Number(number) => NodeKind::Number(number.clone()),
            Value::String(text) => NodeKind::Text(text.clone()),
            Value::Array(items) => NodeKind::List(items.iter().map(Node::from_value).collect()),
            Value::Object(fields) => NodeKind::Map(
                fields
                    .iter()
                    .map(|(name, field)| {
                        (Key { text: name.clone(), line: 0, column: 0 }, Node::from_value(field))
                    })
                    .collect(),
            ),
        };
        Self { line: 0, column: 0, kind }
    }

    /// The value alone.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(flag) => Value::Bool(*flag),
            NodeKind::Number(number) => Value::Number(number.clone()),
            NodeKind::Text(text) => Value::String(text.clone()),
            NodeKind::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            NodeKind::Map(entries) => Value::Object(
                entries.iter().map(|(key, node)| (key.text.clone(), node.to_value())).collect(),
            ),
        }
    }

    /// A field of a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let NodeKind::Map(entries) = &self.kind else { return None };
        entries.iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        let NodeKind::Text(text) = &self.kind else { return None };
        Some(text)
    }

    /// The whole number from 0 on, if it is one.
    pub fn whole(&self) -> Option<u64> {
        let NodeKind::Number(number) = &self.kind else { return None };
        number.as_u64()
    }

    /// The items of a list; anything else is its own only item.
    pub fn items_or_self(&self) -> &[Node] {
        let NodeKind::List(items) = &self.kind else { return std::slice::from_ref(self) };
        items
    }

    /// The node that a JSON Pointer names.
    pub fn at(&self, pointer: &str) -> Option<&Node> {
        pointer.split('/').skip(1).try_fold(self, |node, token| node.child(token))
    }

    /// Line and column of the node that a JSON Pointer names, or of the nearest one around it.
    pub fn position(&self, pointer: &str) -> Position {
        let mut node = self;
        for token in pointer.split('/').skip(1) {
            match node.child(token) {
                Some(child) => node = child,
                None => break,
            }
        }
        node.begin()
    }

    pub fn begin(&self) -> Position {
        Position { line: self.line, column: self.column }
    }

    /// Line and column of the key that a JSON Pointer ends with, or else as [`Node::position`].
    pub fn key_position(&self, pointer: &str) -> Position {
        let Some((parent, token)) = pointer.rsplit_once('/') else {
            return self.position(pointer);
        };
        let name = unescaped(token);
        match self.at(parent).map(|node| &node.kind) {
            Some(NodeKind::Map(entries)) => entries
                .iter()
                .find(|(key, _)| key.text == name)
                .map_or_else(|| self.position(pointer), |(key, _)| key.begin()),
            Some(_) | None => self.position(pointer),
        }
    }

    /// What kind of value it is, in words.
    pub fn what(&self) -> &'static str {
        match &self.kind {
            NodeKind::Null => "nothing",
            NodeKind::Bool(_) => "true or false",
            NodeKind::Number(_) => "a number",
            NodeKind::Text(_) => "a text",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a map",
        }
    }

    fn child(&self, token: &str) -> Option<&Node> {
        match &self.kind {
            NodeKind::List(items) => items.get(token.parse::<usize>().ok()?),
            NodeKind::Map(_) => self.get(&unescaped(token)),
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) => None,
        }
    }
}

/// The JSON Pointer to a child.
pub fn child_pointer(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Builds the tree. Its functions give nothing when it is pointless to continue; the reason is then
/// among the mistakes.
struct Builder<'t> {
    subject: &'t Subject,
    events: Parser<'t, StrInput<'t>>,
    /// Keys and indexes from the root to the node at hand.
    path: Vec<String>,
    mistakes: Vec<Mistake>,
}

impl<'t> Builder<'t> {
    /// The only document of the text.
    fn document(&mut self) -> Option<Node> {
        let mut found = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                Event::StreamEnd => {
                    if found.is_none() {
                        self.note(&span, self.subject.missing());
                    }
                    return found;
                }
                event if found.is_none() => found = Some(self.node(event, span)?),
                _ => {
                    let mistake = Mistake::error("the text holds more than one document")
                        .hint("write one document per file and no second `---`");
                    self.note(&span, mistake);
                    return None;
                }
            }
        }
    }

    fn next(&mut self) -> Option<(Event<'t>, Span)> {
        match self.events.next() {
            Some(Ok(found)) => Some(found),
            Some(Err(error)) => {
                let marker = *error.marker();
                let mistake = Mistake::error(format!("not YAML or JSON: {}", error.kind()));
                let hint = "look at indentation, brackets and quotes before this place";
                self.note(&Span::empty(marker), mistake.hint(hint));
                None
            }
            None => {
                let mistake = Mistake::error("the text ends too early");
                self.mistakes.push(mistake.hint("close what is open"));
                None
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span) -> Option<Node> {
        let Position { line, column } = position(&span);
        let kind = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_properties(&span, anchor, tag.is_some());
                self.scalar(&span, text.into_owned(), style)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.refuse_properties(&span, anchor, tag.is_some());
                return self.list(&span, style);
            }
            Event::MappingStart(style, anchor, tag) => {
                self.refuse_properties(&span, anchor, tag.is_some());
                return self.map(&span, style);
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                let mistake = Mistake::error("aliases (`*name`) have no place here")
                    .hint("write the value out, or put a text that begins with `*` in quotes");
                self.note(&span, mistake);
                NodeKind::Null
            }
            _ => {
                self.note(&span, Mistake::error("there is no value here").hint("write one"));
                return None;
            }
        };
        Some(Node { line, column, kind })
    }

    fn list(&mut self, span: &Span, style: StructureStyle) -> Option<Node> {
        self.check_depth(span)?;
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                break;
            }
            self.path.push(items.len().to_string());
            items.push(self.node(event, span)?);
            self.path.pop();
        }
        let first = items.first().map(Node::begin);
        let Position { line, column } = start(span, style, first);
        Some(Node { line, column, kind: NodeKind::List(items) })
    }

    fn map(&mut self, span: &Span, style: StructureStyle) -> Option<Node> {
        self.check_depth(span)?;
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen = BTreeSet::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let key = self.key(event, &span)?;
            self.path.push(key.text.clone());
            if !seen.insert(key.text.clone()) {
                let mistake = Mistake::error(format!("key `{}` is given twice", key.text));
                self.note(&span, mistake.hint("keep one of the two"));
            }
            let (event, span) = self.next()?;
            let value = self.node(event, span)?;
            self.path.pop();
            entries.push((key, value));
        }
        let first = entries.first().map(|(key, _)| key.begin());
        let Position { line, column } = start(span, style, first);
        Some(Node { line, column, kind: NodeKind::Map(entries) })
    }

    fn key(&mut self, event: Event<'t>, span: &Span) -> Option<Key> {
        let Event::Scalar(text, _, anchor, tag) = event else {
            let mistake = Mistake::error("a key must be a text");
            self.note(span, mistake.hint("put a text with `{`, `[` or `*` in quotes"));
            return None;
        };
        self.refuse_properties(span, anchor, tag.is_some());
        let Position { line, column } = position(span);
        Some(Key { text: text.into_owned(), line, column })
    }

    fn scalar(&mut self, span: &Span, text: String, style: ScalarStyle) -> NodeKind {
        if style != ScalarStyle::Plain {
            return NodeKind::Text(text);
        }
        match plain(&text) {
            Some(kind) => kind,
            None => {
                let mistake =
                    Mistake::error(format!("`{text}` is not a number that JSON can hold"))
                        .hint("put it in quotes if it is a text");
                self.note(span, mistake);
                NodeKind::Null
            }
        }
    }

    fn refuse_properties(&mut self, span: &Span, anchor: usize, has_tag: bool) {
        if anchor != 0 {
            let mistake = Mistake::error("anchors (`&name`) have no place here");
            self.note(span, mistake.hint("put a text that begins with `&` in quotes"));
        }
        if has_tag {
            let mistake = Mistake::error("tags (`!name`) have no place here");
            self.note(span, mistake.hint("put a text that begins with `!` in quotes"));
        }
    }

    fn check_depth(&mut self, span: &Span) -> Option<()> {
        if self.path.len() >= DEPTH_MAX {
            self.note(span, self.subject.too_deep());
            return None;
        }
        Some(())
    }

    fn note(&mut self, span: &Span, mistake: Mistake) {
        let pointer =
            self.path.iter().fold(String::new(), |pointer, token| child_pointer(&pointer, token));
        self.mistakes.push(mistake.at(position(span), pointer));
    }
}

/// Line and column, both from 1; the parser counts columns from 0.
fn position(span: &Span) -> Position {
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Position { line: small(span.start.line()), column: small(span.start.col() + 1) }
}

/// A block list or map begins where its first item or key does: the parser's own mark lies before
/// or after the dash, as the indentation has it.
fn start(span: &Span, style: StructureStyle, first: Option<Position>) -> Position {
    match style {
        StructureStyle::Block => first.unwrap_or_else(|| position(span)),
        StructureStyle::Flow => position(span),
    }
}

/// A scalar without quotes, by YAML 1.2's core schema; nothing for a number that JSON has not.
fn plain(text: &str) -> Option<NodeKind> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(NodeKind::Null),
        "true" | "True" | "TRUE" => return Some(NodeKind::Bool(true)),
        "false" | "False" | "FALSE" => return Some(NodeKind::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return None,
        _ if matches!(unsigned, ".inf" | ".Inf" | ".INF") => return None,
        _ => {}
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|char| char.is_digit(radix))
        {
            let number = u64::from_str_radix(digits, radix).ok()?;
            return Some(NodeKind::Number(number.into()));
        }
    }
    let numeric = |char: char| char.is_ascii_digit() || matches!(char, '.' | 'e' | 'E' | '+' | '-');
    let begins = unsigned.starts_with(|char: char| char.is_ascii_digit() || char == '.');
    if !begins || !unsigned.chars().all(numeric) {
        return Some(NodeKind::Text(text.to_owned()));
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(NodeKind::Number(number.into()));
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(NodeKind::Number(number.into()));
    }
    match text.parse::<f64>() {
        Ok(number) => Number::from_f64(number).map(NodeKind::Number),
        Err(_) => Some(NodeKind::Text(text.to_owned())),
    }
}
