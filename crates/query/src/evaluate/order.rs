//! The order of records: by fields, and at the end by id, so that pages never overlap. What is
//! missing or null comes first, then false and true, numbers, times, texts, and all else.

use super::Row;
use super::leaves::any_leaf;
use crate::checked::{FieldPath, Root, folded};
use crate::dates::{read_date, read_moment, start_of};
use crate::fault::{Place, QueryFault};
use crate::numbers::Number;
use crate::parser::parse_path;
use crate::tree::Path;
use jiff::Timestamp;
use serde_json::Value;
use std::cmp::{Ordering, Reverse};

/// A field to sort by, as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenSort {
    pub path: Path,
    pub descends: bool,
}

/// A field to sort by.
#[derive(Debug, Clone, PartialEq)]
pub struct SortField {
    pub path: FieldPath,
    pub descends: bool,
}

/// Reads `-field,other`: `-` is for descending, and `+` may stand for ascending.
pub fn read_sort(text: &str) -> Result<Vec<WrittenSort>, QueryFault> {
    let mut sorts = Vec::new();
    for field in text.split(',').map(str::trim).filter(|field| !field.is_empty()) {
        let (descends, name) = match field.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, field.strip_prefix('+').unwrap_or(field)),
        };
        let path = parse_path(name).map_err(|fault| {
            QueryFault::at(Place::START, format!("sort field `{field}`: {}", fault.message))
        })?;
        sorts.push(WrittenSort { path, descends });
    }
    Ok(sorts)
}

/// Sorts the records of one realm.
pub fn sort(fields: &[SortField], realm: &str, records: &mut [Value]) {
    records.sort_by_cached_key(|record| {
        let Position(keys) = position(fields, Row { realm, record });
        let directed = |(place, key): (usize, Key)| match fields.get(place) {
            Some(SortField { descends: true, .. }) => Directed::Down(Reverse(key)),
            Some(_) | None => Directed::Up(key),
        };
        keys.into_iter().enumerate().map(directed).collect::<Vec<Directed>>()
    });
}

/// Where a record stands in an order: its value in each field, and at the end its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position(pub Vec<Key>);

/// The position of a record.
pub fn position(fields: &[SortField], row: Row<'_>) -> Position {
    let keys = fields.iter().map(|field| key(&field.path, row, field.descends));
    let id = row.record.get("id").map_or(Key::Absent, |id| Key::of(id, false));
    Position(keys.chain([id]).collect())
}

/// Which of two positions of the same order comes first.
pub fn compare(fields: &[SortField], left: &Position, right: &Position) -> Ordering {
    let pairs = left.0.iter().zip(&right.0).enumerate();
    let directed = |(place, (left, right)): (usize, (&Key, &Key))| {
        let descends = fields.get(place).is_some_and(|field| field.descends);
        if descends { right.cmp(left) } else { left.cmp(right) }
    };
    pairs.map(directed).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Directed {
    Up(Key),
    Down(Reverse<Key>),
}

/// A value as something that has an order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Absent,
    Bool(bool),
    Number(Number),
    Time(Timestamp),
    /// Folded, and as it is.
    Text(String, String),
    Other(String),
}

impl Key {
    /// The key of a value; of a text as a moment, if the field holds times.
    pub fn of(value: &Value, is_time: bool) -> Self {
        match value {
            Value::Null => Key::Absent,
            Value::Bool(value) => Key::Bool(*value),
            Value::Number(number) => Key::Number(Number::of(number)),
            Value::String(text) => {
                let time = || read_moment(text).or_else(|| read_date(text).map(start_of));
                match is_time.then(time).flatten() {
                    Some(time) => Key::Time(time),
                    None => Key::Text(folded(text), text.clone()),
                }
            }
            Value::Array(_) | Value::Object(_) => Key::Other(value.to_string()),
        }
    }
}

/// The least of a record's values in the field, or the greatest.
pub(super) fn key(path: &FieldPath, row: Row<'_>, greatest: bool) -> Key {
    let mut found: Option<Key> = None;
    let mut look = |leaf: Option<&Value>| {
        let key = leaf.map_or(Key::Absent, |leaf| Key::of(leaf, path.is_time));
        let is_further = match &found {
            Some(found) if greatest => key > *found,
            Some(found) => key < *found,
            None => true,
        };
        if is_further {
            found = Some(key);
        }
        false
    };
    match path.root {
        Root::Record => any_leaf(row.record, &path.steps, &mut look),
        Root::Realm => look(Some(&Value::from(row.realm))),
        Root::Hidden => false,
    };
    found.unwrap_or(Key::Absent)
}
