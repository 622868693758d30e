//! The result of a call as it comes in. Every result of the stateless version says which server
//! gave it, which no one reads of a call: it is passed over where it stands, and nothing is made of
//! it.

use kernel::values::members::take;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::fmt;
use wire::mcp::META_SERVER;

const META: &str = "_meta";

/// The result of a call.
pub(super) struct OfCall(Value);

impl From<OfCall> for Value {
    fn from(OfCall(result): OfCall) -> Self {
        result
    }
}

impl<'de> Deserialize<'de> for OfCall {
    fn deserialize<D: Deserializer<'de>>(written: D) -> Result<Self, D::Error> {
        Part::Result.deserialize(written).map(Self)
    }
}

/// What is read, and which of its members are read in another way.
#[derive(Clone, Copy)]
enum Part {
    /// All of it, and its `_meta` as such.
    Result,
    /// What it says beside its content.
    Meta,
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, written: D) -> Result<Value, D::Error> {
        written.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            match (self, name.as_str()) {
                (Self::Result, META) => {
                    let meta = members.next_value_seed(Self::Meta)?;
                    // One in which nothing else was is left out. Of two the last one counts.
                    match meta.as_object().is_some_and(Map::is_empty) {
                        true => drop(take(&mut read, META)),
                        false => drop(read.insert(name, meta)),
                    }
                }
                (Self::Meta, META_SERVER) => drop(members.next_value::<IgnoredAny>()?),
                (Self::Result | Self::Meta, _) => {
                    let value = members.next_value()?;
                    read.insert(name, value);
                }
            }
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let OfCall(result) = serde_json::from_str(text).unwrap();
        result.to_string()
    }

    #[test]
    fn all_else_is_read_as_it_stands_there() {
        for same in [
            "null",
            "true",
            "-7",
            "18446744073709551615",
            "1.5",
            "\"a\\n\"",
            "[{},[1]]",
            "{}",
            r#"{"_meta":null}"#,
            r#"{"_meta":["a"]}"#,
            r#"{"_meta":"a"}"#,
            r#"{"_meta":-1.5}"#,
            r#"{"b":{"_meta":{"io.modelcontextprotocol/serverInfo":{}}},"a":[true,null]}"#,
            r#"{"_meta":{"b":1,"_meta":{"io.modelcontextprotocol/serverInfo":1},"a":2}}"#,
        ] {
            assert_eq!(read(same), same);
        }
    }

    #[test]
    fn who_gave_it_is_passed_over() {
        for (text, expected) in [
            (r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"a":[1]}},"b":1}"#, r#"{"b":1}"#),
            (r#"{"_meta":{"io.modelcontextprotocol/serverInfo":1,"c":2}}"#, r#"{"_meta":{"c":2}}"#),
            (r#"{"_meta":{},"b":1}"#, r#"{"b":1}"#),
            (r#"{"_meta":{"a":1},"b":1,"_meta":{}}"#, r#"{"b":1}"#),
        ] {
            assert_eq!(read(text), expected);
        }
    }
}
