//! Decodes bytes into the types that JSON is read into. Unknown fields are ignored, as in JSON; a
//! value of the wrong type is an error with its path.

use super::raw::{Entry, Raw, Reader};
use super::schema::{Field, Kind, Shape};
use crate::a2a::value::{Bytes, Struct, Timestamp, number};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;

/// The seconds of the first and the last moment that a timestamp can tell: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
const SECOND_NANOS: i64 = 1_000_000_000;
const MS_NANOS: i64 = 1_000_000;

/// Bytes that are no message of their shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadProto {
    /// The members that lead to it, with dots between them; empty for the message itself.
    pub place: String,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for BadProto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.is_empty() {
            true => f.write_str(&self.why),
            false => write!(f, "`{}`: {}", self.place, self.why),
        }
    }
}

impl BadProto {
    fn new(why: impl Into<String>) -> Self {
        Self { place: String::new(), why: why.into() }
    }

    fn below(self, name: &str) -> Self {
        let place = match self.place.is_empty() {
            true => name.to_owned(),
            false => format!("{name}.{}", self.place),
        };
        Self { place, ..self }
    }
}

type Result<T, E = BadProto> = std::result::Result<T, E>;

/// A message of this shape. One that nests deeper than so many levels is refused.
pub fn read<T: DeserializeOwned>(shape: &Shape, bytes: &[u8], depth_max: usize) -> Result<T> {
    let members = to_json(shape, bytes, depth_max)?;
    serde_json::from_value(Value::Object(members)).map_err(|why| BadProto::new(why.to_string()))
}

/// The same as ProtoJSON.
pub fn to_json(shape: &Shape, bytes: &[u8], depth_max: usize) -> Result<Struct> {
    let mut members = Struct::new();
    message(shape, bytes, Left(depth_max), &mut members)?;
    Ok(members)
}

/// How many levels there may be below.
#[derive(Clone, Copy)]
struct Left(usize);

impl Left {
    fn one_less(self) -> Result<Self> {
        let less = self.0.checked_sub(1).map(Self);
        less.ok_or_else(|| BadProto::new("the message nests too deep"))
    }
}

/// Reads a message over what is there of it: one that comes in several pieces is all of them.
fn message(shape: &Shape, bytes: &[u8], left: Left, members: &mut Struct) -> Result<()> {
    let left = left.one_less()?;
    let mut reader = Reader::new(bytes);
    while let Some(entry) = reader.entry().map_err(BadProto::new)? {
        let Some(field) = shape.fields.iter().find(|field| field.number == entry.number) else {
            continue;
        };
        if field.is_one_of {
            let others = shape.fields.iter().filter(|other| other.is_one_of);
            for other in others.filter(|other| other.number != field.number) {
                members.remove(other.name);
            }
        }
        member(field, entry.raw, left, members).map_err(|why| why.below(field.name))?;
    }
    Ok(())
}

fn member(field: &Field, raw: Raw<'_>, left: Left, members: &mut Struct) -> Result<()> {
    let known = members.entry(field.name).or_insert(Value::Null);
    if !field.is_list {
        *known = single(&field.kind, raw, left, known.take())?;
        return Ok(());
    }
    let item = single(&field.kind, raw, left, Value::Null)?;
    match known {
        Value::Array(items) => items.push(item),
        empty => *empty = Value::Array(vec![item]),
    }
    Ok(())
}

/// A value; one that has members is read over those that are known.
fn single(kind: &Kind, raw: Raw<'_>, left: Left, known: Value) -> Result<Value> {
    Ok(match kind {
        Kind::Text => Value::String(text_of(raw)?),
        Kind::Bytes => json!(Bytes(bytes_of(raw)?.to_vec())),
        Kind::Flag => Value::Bool(number_of(raw)? != 0),
        Kind::Whole => json!(number_of(raw)? as i32),
        Kind::Word(words) => {
            let number = number_of(raw)? as i32;
            let word = usize::try_from(number).ok().and_then(|number| words.get(number));
            word.map_or_else(|| json!(number), |word| json!(word))
        }
        Kind::Moment => json!(moment(bytes_of(raw)?)?),
        Kind::Value => any(bytes_of(raw)?, left)?,
        Kind::Message(_) | Kind::Struct | Kind::Texts | Kind::Named(_) => {
            let bytes = bytes_of(raw)?;
            let mut members = match known {
                Value::Object(members) => members,
                _ => Struct::new(),
            };
            match kind {
                Kind::Message(shape) => message(shape, bytes, left, &mut members)?,
                Kind::Struct => named_values(bytes, left, &mut members)?,
                kind => pair(kind, bytes, left, &mut members)?,
            }
            Value::Object(members)
        }
    })
}

/// One entry of a map: the key is field 1, the value field 2.
fn pair(kind: &Kind, bytes: &[u8], left: Left, known: &mut Struct) -> Result<()> {
    let mut key = String::new();
    let mut value: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some(Entry { number, raw }) = reader.entry().map_err(BadProto::new)? {
        match number {
            1 => key = text_of(raw)?,
            2 => value = bytes_of(raw)?,
            _ => {}
        }
    }
    let read = match kind {
        Kind::Named(shape) => {
            let mut members = Struct::new();
            message(shape, value, left, &mut members).map_err(|why| why.below(&key))?;
            Value::Object(members)
        }
        Kind::Value => any(value, left).map_err(|why| why.below(&key))?,
        _ => Value::String(text_of(Raw::Bytes(value))?),
    };
    known.insert(key, read);
    Ok(())
}

/// `google.protobuf.Struct`.
fn named_values(bytes: &[u8], left: Left, known: &mut Struct) -> Result<()> {
    let mut reader = Reader::new(bytes);
    while let Some(Entry { number, raw }) = reader.entry().map_err(BadProto::new)? {
        if number == 1 {
            pair(&Kind::Value, bytes_of(raw)?, left, known)?;
        }
    }
    Ok(())
}

/// `google.protobuf.Value`.
fn any(bytes: &[u8], left: Left) -> Result<Value> {
    let left = left.one_less()?;
    let mut reader = Reader::new(bytes);
    let mut value = Value::Null;
    while let Some(Entry { number: field, raw }) = reader.entry().map_err(BadProto::new)? {
        value = match (field, raw) {
            (1, Raw::Number(_)) => Value::Null,
            (2, Raw::Eight(bytes)) => {
                let told = number(f64::from_le_bytes(bytes)).map(Value::Number);
                told.ok_or_else(|| BadProto::new("a number is finite"))?
            }
            (3, text) => Value::String(text_of(text)?),
            (4, Raw::Number(flag)) => Value::Bool(flag != 0),
            (5, Raw::Bytes(bytes)) => {
                let mut members = Struct::new();
                named_values(bytes, left, &mut members)?;
                Value::Object(members)
            }
            (6, Raw::Bytes(bytes)) => Value::Array(list(bytes, left)?),
            (1..=6, _) => return Err(wrong_kind()),
            (_, _) => continue,
        };
    }
    Ok(value)
}

/// `google.protobuf.ListValue`.
fn list(bytes: &[u8], left: Left) -> Result<Vec<Value>> {
    let mut reader = Reader::new(bytes);
    let mut items = Vec::new();
    while let Some(Entry { number, raw }) = reader.entry().map_err(BadProto::new)? {
        if number == 1 {
            items.push(any(bytes_of(raw)?, left)?);
        }
    }
    Ok(items)
}

/// `google.protobuf.Timestamp`, without what is finer than a millisecond.
fn moment(bytes: &[u8]) -> Result<Timestamp> {
    let mut reader = Reader::new(bytes);
    let mut seconds = 0_i64;
    let mut nanos = 0_i64;
    while let Some(Entry { number, raw }) = reader.entry().map_err(BadProto::new)? {
        match number {
            1 => seconds = number_of(raw)?.cast_signed(),
            2 => nanos = i64::from(number_of(raw)? as i32),
            _ => {}
        }
    }
    if !SECONDS.contains(&seconds) || !(0..SECOND_NANOS).contains(&nanos) {
        return Err(BadProto::new("a timestamp is of the years 1 to 9999"));
    }
    Ok(Timestamp(seconds * 1_000 + nanos / MS_NANOS))
}

fn text_of(raw: Raw<'_>) -> Result<String> {
    let text = std::str::from_utf8(bytes_of(raw)?);
    text.map(str::to_owned).map_err(|_| BadProto::new("a text is not UTF-8"))
}

fn bytes_of(raw: Raw<'_>) -> Result<&[u8]> {
    match raw {
        Raw::Bytes(bytes) => Ok(bytes),
        Raw::Number(_) | Raw::Eight(_) | Raw::Four => Err(wrong_kind()),
    }
}

fn number_of(raw: Raw<'_>) -> Result<u64> {
    match raw {
        Raw::Number(number) => Ok(number),
        Raw::Bytes(_) | Raw::Eight(_) | Raw::Four => Err(wrong_kind()),
    }
}

fn wrong_kind() -> BadProto {
    BadProto::new("it is written as a value of another kind")
}
