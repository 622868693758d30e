//! Cursors: where a page ended, as a text that nobody need understand. It holds the sort keys of
//! the last row and its id, so that the next page begins behind them even if the row is gone. A
//! cursor that was made up only leads to another place of what its caller may see.

use super::error::RecordError;
use crate::checked::folded;
use crate::dates::read_moment;
use crate::evaluate::order::{Key, Position, SortField};
use crate::numbers::Number;
use kernel::values::ids::ContentHash;
use serde_json::{Value, json};
use std::fmt::Write;

/// The cursor of a position in what was asked: realm, type, query and order, as they were written.
pub fn write(asked: &[&str], position: &Position) -> String {
    let keys: Vec<Value> = position.0.iter().map(key_json).collect();
    let text = json!([mark(asked), keys]).to_string();
    let mut cursor = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        let _ = write!(cursor, "{byte:02x}");
    }
    cursor
}

/// The position of a cursor that was made for the same question.
pub fn read(asked: &[&str], sort: &[SortField], cursor: &str) -> Result<Position, RecordError> {
    position_in(asked, sort, cursor).ok_or(RecordError::BadCursor)
}

fn position_in(asked: &[&str], sort: &[SortField], cursor: &str) -> Option<Position> {
    let digits = cursor.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok().filter(|text| !text.starts_with('+'))?;
        u8::from_str_radix(text, 16).ok()
    };
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
    let parts: Value = serde_json::from_slice(&bytes).ok()?;
    if parts.get(0)?.as_str()? != mark(asked) {
        return None;
    }
    let keys = parts.get(1)?.as_array()?;
    let keys: Vec<Key> = keys.iter().map(key_of).collect::<Option<_>>()?;
    let has_id = matches!(keys.last(), Some(Key::Text(..)));
    (has_id && keys.len() == sort.len() + 1).then_some(Position(keys))
}

fn mark(asked: &[&str]) -> String {
    ContentHash::of(json!(asked).to_string().as_bytes()).to_string()
}

/// Numbers as texts: JSON would round them.
fn key_json(key: &Key) -> Value {
    match key {
        Key::Absent => Value::Null,
        Key::Bool(value) => Value::Bool(*value),
        Key::Number(Number::Whole(whole)) => json!({"whole": whole.to_string()}),
        Key::Number(Number::Decimal(decimal)) => json!({"bits": decimal.to_bits()}),
        Key::Time(time) => json!({"time": time.to_string()}),
        Key::Text(_, text) => Value::from(text.as_str()),
        Key::Other(text) => json!({"other": text}),
    }
}

fn key_of(json: &Value) -> Option<Key> {
    Some(match json {
        Value::Null => Key::Absent,
        Value::Bool(value) => Key::Bool(*value),
        Value::String(text) => Key::Text(folded(text), text.clone()),
        _ => {
            let member = |name: &str| json.get(name);
            if let Some(whole) = member("whole") {
                Key::Number(Number::Whole(whole.as_str()?.parse().ok()?))
            } else if let Some(bits) = member("bits") {
                let decimal = f64::from_bits(bits.as_u64()?);
                Key::Number(Number::Decimal(Some(decimal).filter(|decimal| decimal.is_finite())?))
            } else if let Some(time) = member("time") {
                Key::Time(read_moment(time.as_str()?)?)
            } else {
                Key::Other(member("other")?.as_str()?.to_owned())
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> Position {
        Position(vec![
            Key::Absent,
            Key::Bool(true),
            Key::Number(Number::Whole(i128::from(u64::MAX))),
            Key::Number(Number::Decimal(0.1 + 0.2)),
            Key::Time(read_moment("2024-01-31T09:00:00.5Z").unwrap()),
            Key::Text("öz".to_owned(), "Öz".to_owned()),
            Key::Other("{\"a\":1}".to_owned()),
            Key::Text("1".to_owned(), "1".to_owned()),
        ])
    }

    fn sort(fields: usize) -> Vec<SortField> {
        let path = crate::checked::FieldPath {
            root: crate::checked::Root::Record,
            steps: Vec::new(),
            is_time: false,
        };
        vec![SortField { path, descends: false }; fields]
    }

    #[test]
    fn a_cursor_leads_back_to_its_position() {
        let asked = ["realm", "shop.Order", "status:open", "-total"];
        let cursor = write(&asked, &position());
        assert_eq!(read(&asked, &sort(7), &cursor), Ok(position()));
    }

    #[test]
    fn a_cursor_of_another_question_is_refused() {
        let cursor = write(&["realm", "a"], &position());
        for (asked, fields) in [(["realm", "b"], 7), (["other", "a"], 7), (["realm", "a"], 6)] {
            assert_eq!(read(&asked, &sort(fields), &cursor), Err(RecordError::BadCursor));
        }
        for text in ["", "x", "zz", "+1", "5b5d", &cursor[2..], "é"] {
            assert_eq!(read(&["realm", "a"], &sort(7), text), Err(RecordError::BadCursor));
        }
    }
}
