//! JSON in one spelling (RFC 8785), so that a digest over it means the same everywhere; and JSON in
//! the spelling that hashes of definitions are made of.

use crate::values::ids::ContentHash;
use serde_json::{Number, Value};
use std::fmt::Write;

/// Most texts are arguments of calls, and not longer.
const TEXT_BYTES: usize = 128;

/// The canonical text of a value: sorted keys, no spaces, numbers as ECMAScript prints them.
pub fn text(value: &Value) -> String {
    let mut out = String::with_capacity(TEXT_BYTES);
    write(value, &mut out);
    out
}

/// sha256 over the canonical text.
pub fn digest(value: &Value) -> ContentHash {
    ContentHash::of(text(value).as_bytes())
}

/// The value with the keys of every object in the order of their bytes. Objects keep the order in
/// which their members came: what is hashed, used as a key or compared as a text is made of this.
pub fn sorted(value: &Value) -> Value {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut members: Vec<(&String, &Value)> = fields.iter().collect();
            // The RFC sorts by UTF-16 code units, which differs from UTF-8 beyond the first plane.
            members.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
            out.push('{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
    }
}

/// A text as JSON has it. Most texts have nothing in them that must be escaped.
fn write_text(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        out.push_str(&Value::from(text).to_string());
        return;
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

fn write_number(number: &Number, out: &mut String) {
    match number.as_f64() {
        // Whole numbers keep all their digits: two large ids must not share one digest.
        Some(float) if number.is_f64() => out.push_str(&ecmascript(float)),
        _ => {
            // A text takes all that is written to it.
            let _ = write!(out, "{number}");
        }
    }
}

/// A float as ECMAScript prints it: shortest digits, exponent only when far from the point.
fn ecmascript(float: f64) -> String {
    if float == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let negative = mantissa.starts_with('-');
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let point = exponent + 1;
    let count = digits.len() as i32;
    let body = if (1..=21).contains(&point) && count <= point {
        format!("{digits}{}", "0".repeat((point - count) as usize))
    } else if (1..=21).contains(&point) {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", "0".repeat(-point as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{sign}{}", exponent.abs())
    };
    if negative { format!("-{body}") } else { body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_read_as_ecmascript_prints_them() {
        for (float, expected) in [
            (1.0, "1"),
            (-1.5, "-1.5"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (0.000001, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-9, "1.25e-9"),
            (333333333.3333333, "333333333.3333333"),
        ] {
            assert_eq!(ecmascript(float), expected);
        }
    }

    #[test]
    fn keys_are_sorted_at_every_depth() {
        assert_eq!(
            text(&json!({"b": [1, {"z": null, "a": "x"}], "a": true})),
            r#"{"a":true,"b":[1,{"a":"x","z":null}]}"#
        );
    }

    #[test]
    fn strings_are_escaped_as_json() {
        let every_byte = (0..=0xff_u8).map(|byte| char::from(byte).to_string());
        let others = ["", "plain text", "\u{10000}\u{ff61}", "a\"b", "\\", "line\n", "\u{2028}"];
        for one in every_byte.chain(others.map(str::to_owned)) {
            let value = Value::from(one.as_str());
            assert_eq!(text(&value), value.to_string());
            let object = json!({ one: -5 });
            assert_eq!(text(&object), object.to_string());
        }
        assert_eq!(text(&json!(u64::MAX)), u64::MAX.to_string());
    }

    #[test]
    fn sorting_keeps_numbers_as_written() {
        let value = json!({"b": [1.0, {"\u{ff61}": 1, "\u{10000}": 2, "z": 0.5}], "a": 1});
        assert_eq!(
            sorted(&value).to_string(),
            "{\"a\":1,\"b\":[1.0,{\"z\":0.5,\"\u{ff61}\":1,\"\u{10000}\":2}]}"
        );
    }
}
