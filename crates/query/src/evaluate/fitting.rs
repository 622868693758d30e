//! Whether one value of a record fits what is wanted.

use super::pattern;
use crate::checked::{Relation, Wanted, WantedText, folded};
use crate::dates::{day_of, read_date, read_moment, start_of};
use crate::numbers::Number;
use crate::tree::Case;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Whether the value, or that there is none, fits. What cannot be compared does not.
pub(super) fn fits(value: Option<&Value>, relation: Relation, wanted: &Wanted) -> bool {
    let is_equality = relation == Relation::Equal;
    let Some(value) = value else {
        return is_equality && *wanted == Wanted::Null;
    };
    match wanted {
        Wanted::Nothing => false,
        Wanted::Null => is_equality && value.is_null(),
        Wanted::Bool(wanted) => is_equality && truth(value) == Some(*wanted),
        Wanted::Pattern(pieces, case) => {
            is_equality
                && text_of(value)
                    .is_some_and(|text| pattern::is_like(pieces, &in_case(text, *case)))
        }
        Wanted::Reference(id) => {
            is_equality && text_of(value).is_some_and(|text| text.eq_ignore_ascii_case(id))
        }
        Wanted::Text(text) => match value {
            Value::Bool(value) => is_equality && text.boolean == Some(*value),
            _ => compare_text(value, text).is_some_and(|ordering| relation.admits(ordering)),
        },
        Wanted::Number(number) => match value {
            Value::Number(value) => relation.admits(Number::of(value).cmp(number)),
            _ => false,
        },
        Wanted::Day(day) => {
            let text = value.as_str().unwrap_or_default();
            let found = read_date(text).or_else(|| read_moment(text).map(day_of));
            found.is_some_and(|found| relation.admits(found.cmp(day)))
        }
        Wanted::Moment(moment) => {
            let text = value.as_str().unwrap_or_default();
            let found = read_moment(text).or_else(|| read_date(text).map(start_of));
            found.is_some_and(|found| relation.admits(found.cmp(moment)))
        }
    }
}

/// What a value is as `true` or `false`: so is a number other than 0, and the word.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => Some(Number::of(number) != Number::Whole(0)),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn compare_text(value: &Value, wanted: &WantedText) -> Option<Ordering> {
    if let Value::Number(number) = value {
        return wanted.number.map(|wanted| Number::of(number).cmp(&wanted));
    }
    text_of(value).map(|text| (*in_case(text, wanted.case)).cmp(&wanted.text))
}

/// A text, or the id of the record that is referred to.
fn text_of(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| reference_id(value))
}

/// The id in a reference, which is a text or an object.
pub(super) fn reference_id(value: &Value) -> Option<&str> {
    match value {
        Value::String(id) => Some(id),
        _ => value.get("entityId").and_then(Value::as_str),
    }
}

fn in_case(text: &str, case: Case) -> Cow<'_, str> {
    match case {
        Case::Folded => Cow::Owned(folded(text)),
        Case::Exact => Cow::Borrowed(text),
    }
}
