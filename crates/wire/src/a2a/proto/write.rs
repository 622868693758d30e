//! Encodes types as bytes, through their ProtoJSON: defaults that JSON leaves out are left out
//! here, too.

use super::raw::{put_bytes, put_double, put_number};
use super::schema::{Field, Kind, Shape};
use crate::a2a::value::{Struct, Timestamp, decoded};
use serde::Serialize;
use serde_json::Value;

const SECOND_MS: i64 = 1_000;
const MS_NANOS: i64 = 1_000_000;

/// A message of this shape.
pub fn write<T: Serialize>(shape: &Shape, value: &T) -> Vec<u8> {
    // Plain data: writing it as JSON cannot fail.
    match serde_json::to_value(value).unwrap_or_default() {
        Value::Object(members) => message(shape, &members),
        _ => Vec::new(),
    }
}

fn message(shape: &Shape, members: &Struct) -> Vec<u8> {
    let mut out = Vec::new();
    for field in shape.fields {
        match (members.get(field.name), field.is_list) {
            (Some(Value::Array(items)), true) => {
                items.iter().for_each(|item| put(field, item, &mut out));
            }
            (Some(value), false) => put(field, value, &mut out),
            (Some(_), true) | (None, _) => {}
        }
    }
    out
}

fn put(field: &Field, value: &Value, out: &mut Vec<u8>) {
    let number = field.number;
    match (&field.kind, value) {
        (Kind::Value, value) => put_bytes(out, number, &any(value)),
        (Kind::Text, Value::String(text)) => put_bytes(out, number, text.as_bytes()),
        (Kind::Bytes, Value::String(text)) => {
            put_bytes(out, number, &decoded(text).unwrap_or_default());
        }
        (Kind::Flag, Value::Bool(flag)) => put_number(out, number, u64::from(*flag)),
        (Kind::Whole, Value::Number(whole)) => {
            put_number(out, number, whole.as_i64().unwrap_or_default().cast_unsigned());
        }
        (Kind::Word(words), Value::String(word)) => {
            let place = words.iter().position(|known| known == word).unwrap_or_default();
            put_number(out, number, place as u64);
        }
        (Kind::Moment, Value::String(text)) => {
            if let Ok(at) = text.parse() {
                put_bytes(out, number, &moment(at));
            }
        }
        (Kind::Struct, Value::Object(members)) => put_bytes(out, number, &named_values(members)),
        (Kind::Message(shape), Value::Object(members)) => {
            put_bytes(out, number, &message(shape, members));
        }
        (Kind::Texts, Value::Object(members)) => {
            for (key, value) in members {
                let text = value.as_str().unwrap_or_default();
                put_bytes(out, number, &pair(key, text.as_bytes()));
            }
        }
        (Kind::Named(shape), Value::Object(members)) => {
            for (key, value) in members {
                let inner = value.as_object().map(|inner| message(shape, inner));
                put_bytes(out, number, &pair(key, &inner.unwrap_or_default()));
            }
        }
        // Null is what is not there; the types hold nothing else.
        (_, _) => {}
    }
}

fn pair(key: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 1, key.as_bytes());
    put_bytes(&mut out, 2, value);
    out
}

fn named_values(members: &Struct) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in members {
        put_bytes(&mut out, 1, &pair(key, &any(value)));
    }
    out
}

fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Null => put_number(&mut out, 1, 0),
        Value::Number(number) => put_double(&mut out, 2, number.as_f64().unwrap_or_default()),
        Value::String(text) => put_bytes(&mut out, 3, text.as_bytes()),
        Value::Bool(flag) => put_number(&mut out, 4, u64::from(*flag)),
        Value::Object(members) => put_bytes(&mut out, 5, &named_values(members)),
        Value::Array(items) => {
            let mut list = Vec::new();
            items.iter().for_each(|item| put_bytes(&mut list, 1, &any(item)));
            put_bytes(&mut out, 6, &list);
        }
    }
    out
}

fn moment(at: Timestamp) -> Vec<u8> {
    let mut out = Vec::new();
    let seconds = at.0.div_euclid(SECOND_MS);
    let ms = at.0.rem_euclid(SECOND_MS);
    put_number(&mut out, 1, seconds.cast_unsigned());
    put_number(&mut out, 2, (ms * MS_NANOS).cast_unsigned());
    out
}
