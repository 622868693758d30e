//! Values out of JSON text, as far as they fit into an allowance of memory: small text can become a
//! large value.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// How deep lists and maps may stand in each other.
pub(super) const DEPTH_MAX: usize = 64;
/// Overhead of a list item.
const ITEM_BYTES: usize = 72;
/// Overhead of a map entry: name, value, and index slot.
const ENTRY_BYTES: usize = 116;
/// How many entries a map has room for as soon as it has one.
const ROOM_MIN: usize = 4;

/// The value of a text; `left` is what it may take, in bytes, and what is left then. Its keys are
/// sorted: the names of operations and of shared schemas depend on which comes first, and a
/// document that is only written in another order has the same tools.
pub(super) fn read(text: &str, left: &Cell<usize>) -> Result<Value, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = Counted { left, depth: 0 }.deserialize(&mut reader);
    let mut value = read.map_err(|error| {
        let mut told = error.to_string();
        // The place is one in this text, which is only a part of the document.
        if let Some(at) = told.rfind(" at line ") {
            told.truncate(at);
        }
        told
    })?;
    value.sort_all_objects();
    Ok(value)
}

/// For how many more entries a map makes room when it gets this one: it doubles what it has.
fn room(entry: usize) -> usize {
    match entry {
        1 => ROOM_MIN,
        full if full >= ROOM_MIN && full.is_power_of_two() => full,
        _ => 0,
    }
}

#[derive(Clone, Copy)]
struct Counted<'l> {
    left: &'l Cell<usize>,
    depth: usize,
}

impl Counted<'_> {
    fn spend<E: Error>(self, bytes: usize) -> Result<(), E> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.unwrap_or(0));
        match left {
            Some(_) => Ok(()),
            None => Err(E::custom("with it the document takes too much memory")),
        }
    }

    fn below<E: Error>(self) -> Result<Self, E> {
        if self.depth >= DEPTH_MAX {
            return Err(E::custom(format!("its lists and maps stand more than {DEPTH_MAX} deep")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.spend::<E>(text.len())?;
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.below::<A::Error>()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            self.spend::<A::Error>(ITEM_BYTES)?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let below = self.below::<A::Error>()?;
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            self.spend::<A::Error>(room(map.len() + 1) * ENTRY_BYTES + name.len())?;
            map.insert(name, entries.next_value_seed(below)?);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_parse_the_same_as_with_serde_json() {
        let value = json!({"a": [1, -2, 2.5, "é\n", null, true, {}], "b": {"c": {"d": []}}});
        let left = Cell::new(10_000);
        assert_eq!(read(&value.to_string(), &left), Ok(value));
        assert!((5_000..9_000).contains(&left.get()), "{} bytes are left", left.get());
    }

    #[test]
    fn values_over_the_memory_allowance_are_refused() {
        let long = "x".repeat(50_000);
        for small in [
            json!(vec![json!({"": 0}); 100]),
            json!(vec![json!([]); 2_000]),
            json!(long),
            json!({&long: 0}),
        ] {
            let left = Cell::new(40_000);
            let told = read(&small.to_string(), &left).unwrap_err();
            assert_eq!(told, "with it the document takes too much memory");
            assert!(left.get() < 40_000);
        }
        let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
        let told = read(&deep, &Cell::new(10_000)).unwrap_err();
        assert_eq!(told, "its lists and maps stand more than 64 deep");
    }
}
