//! How many records a change would hurt.

use super::{Declared, Group, Stop, Work};
use query::checked::folded;
use query::dates::{read_date, read_moment};
use query::numbers::Number;
use query::records::unique::unique_keys;
use query::types::{Change, Field, Kind, RecordType};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// How many records of the group would lose something, or cease to fit.
pub(super) fn in_the_way(
    work: &Work<'_>,
    group: &Group<'_>,
    name: &str,
    change: &Change,
    declared: &Declared,
) -> Result<u64, Stop> {
    let stored = work.catalog.layers.get(group.from).and_then(|tables| tables.get(name));
    let Some(table) = stored.filter(|_| !change.is_additive()) else { return Ok(0) };
    let after = declared.find(group.to, name);
    let mut hurt = 0;
    let mut keys: BTreeMap<(String, String), u64> = BTreeMap::new();
    work.each(table, group, &mut |realm, record| {
        match (change, after) {
            (Change::NewUnique(paths), Some(after)) => {
                let found = unique_keys(after, &record).into_iter();
                for key in found.filter(|key| key.fields == *paths) {
                    *keys.entry((realm.to_owned(), key.key)).or_default() += 1;
                }
            }
            _ if is_hurt(change, after, &record) => hurt += 1,
            _ => {}
        }
        Ok(())
    })?;
    let alike: u64 = keys.values().filter(|records| **records > 1).sum();
    Ok(hurt + alike)
}

fn is_hurt(change: &Change, after: Option<&RecordType>, record: &Value) -> bool {
    match change {
        Change::TypeGone => true,
        Change::FieldGone(path) | Change::NewKind { field: path, .. } => {
            any_holder(record, path, &mut |value| value.is_some())
        }
        Change::NewRequiredField(path) | Change::Required(path) => {
            let has_default = field_at(after, path).is_some_and(|field| field.default.is_some());
            !has_default && any_holder(record, path, &mut |value| value.is_none())
        }
        Change::DeclaredField(path) | Change::Narrowed(path) => {
            let Some(field) = field_at(after, path) else { return false };
            any_holder(record, path, &mut |value| value.is_some_and(|value| !fits(field, value)))
        }
        Change::ClosedToOthers => has_others(after, record),
        // Where records lie does not depend on the name of their collection.
        Change::NewCollection { .. } => false,
        Change::NewUnique(_)
        | Change::NewType
        | Change::NewField(_)
        | Change::Optional(_)
        | Change::Widened(_)
        | Change::NewDefault(_)
        | Change::UniqueGone(_)
        | Change::NewIndex(_)
        | Change::IndexGone(_)
        | Change::OpenToOthers => false,
    }
}

fn has_others(after: Option<&RecordType>, record: &Value) -> bool {
    let (Some(after), Some(members)) = (after, record.as_object()) else { return false };
    let known: BTreeSet<&str> = after.all_fields().map(|field| field.name.as_str()).collect();
    members.iter().any(|(name, value)| !value.is_null() && !known.contains(name.as_str()))
}

/// The declared field of a path that may lead through arrays.
fn field_at<'t>(record_type: Option<&'t RecordType>, path: &str) -> Option<&'t Field> {
    let mut fields: Vec<&Field> = record_type?.all_fields().collect();
    let mut found = None;
    for name in path.split('.') {
        let field = fields.into_iter().find(|field| field.name == name)?;
        found = Some(field);
        fields = match field.kind.element() {
            Kind::Object(inner) => inner.iter().collect(),
            _ => Vec::new(),
        };
    }
    found
}

/// Whether this holds for what one of the objects has that the field belongs to. Null is as good as
/// none.
fn any_holder(record: &Value, path: &str, holds: &mut dyn FnMut(Option<&Value>) -> bool) -> bool {
    let names: Vec<&str> = path.split('.').collect();
    let Some((last, within)) = names.split_last() else { return false };
    any_object(record, within, &mut |members| {
        holds(members.get(*last).filter(|value| !value.is_null()))
    })
}

fn any_object(
    value: &Value,
    names: &[&str],
    holds: &mut dyn FnMut(&Map<String, Value>) -> bool,
) -> bool {
    match (value, names.split_first()) {
        (Value::Array(elements), _) => {
            elements.iter().any(|element| any_object(element, names, holds))
        }
        (Value::Object(members), None) => holds(members),
        (Value::Object(members), Some((name, rest))) => {
            members.get(*name).is_some_and(|inner| any_object(inner, rest, holds))
        }
        _ => false,
    }
}

/// Whether a stored value is one that the field takes as it is.
fn fits(field: &Field, value: &Value) -> bool {
    is_of(&field.kind, value) && is_chosen(field, value) && is_within(field, value)
}

fn is_of(kind: &Kind, value: &Value) -> bool {
    let text = value.as_str();
    match kind {
        Kind::String => value.is_string(),
        Kind::Integer => value.as_i64().is_some(),
        Kind::Number => value.is_number(),
        Kind::Boolean => value.is_boolean(),
        Kind::Date => text.is_some_and(|text| read_date(text).is_some()),
        Kind::DateTime => text.is_some_and(|text| read_moment(text).is_some()),
        Kind::Json => true,
        Kind::Reference(_) => value.get("entityId").is_some_and(Value::is_string),
        Kind::Array(of) => match value {
            Value::Array(elements) => elements.iter().all(|element| is_of(of, element)),
            _ => false,
        },
        Kind::Object(fields) => match value {
            Value::Object(members) => are_members(fields, members),
            _ => false,
        },
    }
}

fn are_members(fields: &[Field], members: &Map<String, Value>) -> bool {
    let is_known = |name: &String| fields.iter().any(|field| field.name == *name);
    let has = |field: &Field| match members.get(&field.name).filter(|value| !value.is_null()) {
        Some(value) => fits(field, value),
        None => !field.required || field.default.is_some(),
    };
    members.keys().all(is_known) && fields.iter().all(has)
}

fn is_chosen(field: &Field, value: &Value) -> bool {
    if field.choices.is_empty() {
        return true;
    }
    match value {
        Value::Array(elements) => elements.iter().all(|element| is_one_of(field, element)),
        _ => is_one_of(field, value),
    }
}

fn is_one_of(field: &Field, value: &Value) -> bool {
    let is_same = |choice: &Value| match (choice, value) {
        (Value::Number(choice), Value::Number(value)) => Number::of(choice) == Number::of(value),
        (Value::String(choice), Value::String(value)) => folded(choice) == folded(value),
        _ => choice == value,
    };
    field.choices.iter().any(is_same)
}

fn is_within(field: &Field, value: &Value) -> bool {
    let size = match value {
        Value::Number(number) => Some(Number::of(number).to_f64()),
        Value::String(text) => Some(text.chars().count() as f64),
        Value::Array(elements) => Some(elements.len() as f64),
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    };
    let is_in_bounds = size.is_none_or(|size| {
        field.bounds.min.is_none_or(|min| size >= min)
            && field.bounds.max.is_none_or(|max| size <= max)
    });
    let is_like = match (&field.pattern, value) {
        (Some(pattern), Value::String(text)) => pattern.is_match(text),
        _ => true,
    };
    is_in_bounds && is_like
}
