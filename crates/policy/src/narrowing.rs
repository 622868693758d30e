//! What a `forbid` with `@rows` or `@hide` leaves of records: the texts of the two annotations, and
//! what a row filter names.

use kernel::contracts::policy::Obligation;
use kernel::definition::plan::mistake::Mistake;
use query::fault::QueryFault;
use query::parser::{parse, parse_path};
use query::tree::{Condition, Index, Literal, Operand, Path, Query};
use std::sync::Arc;

pub(crate) const ROWS: &str = "rows";
pub(crate) const HIDE: &str = "hide";

/// Fields without which a caller could not name a record.
const SHOWN: [&str; 3] = ["id", "_id", "realm"];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Narrowing {
    /// The query of `@rows`.
    pub(crate) rows: Option<Arc<str>>,
    /// The fields of `@hide`.
    pub(crate) hidden: Vec<HiddenField>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HiddenField {
    pub(crate) path: Arc<str>,
    /// Where it begins in the text of the annotation, in characters.
    position: usize,
}

/// What is wrong with the text of an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnnotationFault {
    pub(crate) annotation: &'static str,
    /// In the text of the annotation, in characters.
    pub(crate) position: usize,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Narrowing {
    /// The same for a decision.
    pub(crate) fn obligations(&self) -> Vec<Obligation> {
        let rows = self.rows.iter().cloned().map(Obligation::Rows);
        let hidden: Arc<[Arc<str>]> = self.hidden.iter().map(|field| field.path.clone()).collect();
        let hidden = (!hidden.is_empty()).then_some(Obligation::Hide(hidden));
        rows.chain(hidden).collect()
    }
}

impl HiddenField {
    pub(crate) fn fault(&self, fault: QueryFault) -> AnnotationFault {
        let path = &self.path;
        AnnotationFault {
            annotation: HIDE,
            position: self.position,
            message: format!("`@hide` cannot hide `{path}`: {}", fault.message),
            hint: hint_of(fault, "name a field of the type, such as `cost` or `address.zip`"),
        }
    }
}

impl AnnotationFault {
    /// A query of `@rows` that cannot be used.
    pub(crate) fn of_rows(fault: QueryFault) -> Self {
        Self {
            annotation: ROWS,
            position: fault.position,
            message: format!("`@rows` cannot be used: {}", fault.message),
            hint: hint_of(fault, "write a query as `query_find` takes it"),
        }
    }

    fn new(annotation: &'static str, message: String, hint: &str) -> Self {
        Self { annotation, position: 0, message, hint: hint.to_owned() }
    }

    /// The same as a mistake without a place.
    pub(crate) fn mistake(&self, severity: fn(String) -> Mistake) -> Mistake {
        severity(self.message.clone()).hint(self.hint.clone())
    }
}

fn hint_of(fault: QueryFault, usual: &str) -> String {
    let expected = (!fault.expected.is_empty())
        .then(|| format!("expected here: {}", fault.expected.join(", ")));
    fault.hint.or(expected).unwrap_or_else(|| usual.to_owned())
}

/// Reads the text of `@rows`: a condition alone.
pub(crate) fn read_rows(text: &str) -> Result<Arc<str>, AnnotationFault> {
    let query = parse(text).map_err(AnnotationFault::of_rows)?;
    let hint = "write conditions alone, such as `@rows(\"region:${region}\")`";
    let wrong = |message: &str| Err(AnnotationFault::new(ROWS, message.to_owned(), hint));
    if !query.expands.is_empty() {
        return wrong("`@rows` has `expand(..)`, which chooses no rows");
    }
    if query.fields.is_some() {
        return wrong("`@rows` has `fields:[..]`, which chooses no rows");
    }
    if query.filter.is_none() {
        return wrong("`@rows` has no condition, so that it would leave every row");
    }
    Ok(text.into())
}

/// Reads the text of `@hide`: fields with commas between them.
pub(crate) fn read_hidden(text: &str) -> Result<Vec<HiddenField>, AnnotationFault> {
    let mut position = 0;
    let mut fields = Vec::new();
    for part in text.split(',') {
        let blank = part.chars().take_while(|c| c.is_whitespace()).count();
        fields.push(read_field(part.trim(), position + blank)?);
        position += part.chars().count() + 1;
    }
    Ok(fields)
}

fn read_field(name: &str, position: usize) -> Result<HiddenField, AnnotationFault> {
    let wrong = |message: String| AnnotationFault {
        position,
        ..AnnotationFault::new(HIDE, message, "write `@hide(\"cost, address.zip\")`")
    };
    if name.is_empty() {
        return Err(wrong("`@hide` names no field here".to_owned()));
    }
    let path = parse_path(name)
        .map_err(|fault| wrong(format!("`@hide` cannot hide `{name}`: {}", fault.message)))?;
    if path.segments.iter().any(|segment| matches!(segment.index, Index::At(_))) {
        return Err(wrong(format!("`@hide` cannot hide `{name}`: it hides all elements or none")));
    }
    let first = path.segments.first().map_or("", |segment| segment.name.as_str());
    if SHOWN.contains(&first) {
        return Err(wrong(format!("`@hide` cannot hide `{first}`: records are named by it")));
    }
    Ok(HiddenField { path: dotted(&path).into(), position })
}

fn dotted(path: &Path) -> String {
    let names: Vec<&str> = path.segments.iter().map(|segment| segment.name.as_str()).collect();
    names.join(".")
}

/// The variables of a query, each with its place in the text, in characters.
pub(crate) fn variables(query: &Query) -> Vec<(&str, usize)> {
    let mut operands = Vec::new();
    if let Some(filter) = &query.filter {
        add_operands(filter, &mut operands);
    }
    let mut found = Vec::new();
    for operand in operands {
        if let Literal::Variable(name) = &operand.literal {
            found.push((name.as_str(), operand.place.position));
        }
    }
    found
}

fn add_operands<'c>(condition: &'c Condition, found: &mut Vec<&'c Operand>) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().for_each(|part| add_operands(part, found));
        }
        Condition::Not(inner) | Condition::Element(_, inner) => add_operands(inner, found),
        Condition::Compare(comparison) => found.push(&comparison.operand),
        Condition::OneOf(membership) => found.extend(&membership.operands),
        Condition::Text(words) => found.push(words),
        Condition::Edge(edge) => found.extend([&edge.predicate, &edge.other]),
        Condition::Exists(_) => {}
    }
}

/// Whether a row filter names one of these fields, or what is in one. One that cannot be read could
/// name any.
pub fn names_field(rows: &str, fields: &[Arc<str>]) -> bool {
    let Ok(query) = parse(rows) else { return true };
    let mut paths = Vec::new();
    if let Some(filter) = &query.filter {
        add_paths(filter, "", &mut paths);
    }
    let is_in = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    paths.iter().any(|path| fields.iter().any(|field| is_in(path, field) || is_in(field, path)))
}

/// Adds the fields that a condition names, below the field of this path.
fn add_paths(condition: &Condition, within: &str, found: &mut Vec<String>) {
    let below = |path: &Path| match within {
        "" => dotted(path),
        _ => format!("{within}.{}", dotted(path)),
    };
    match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().for_each(|part| add_paths(part, within, found));
        }
        Condition::Not(inner) => add_paths(inner, within, found),
        Condition::Element(path, inner) => add_paths(inner, &below(path), found),
        Condition::Compare(comparison) => found.push(below(&comparison.path)),
        Condition::OneOf(membership) => found.push(below(&membership.path)),
        Condition::Exists(path) => found.push(below(path)),
        Condition::Text(_) | Condition::Edge(_) => {}
    }
}
