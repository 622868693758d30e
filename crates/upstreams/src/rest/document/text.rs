//! The text of a document, as JSON. YAML is written as JSON while it is read: a tree of a large
//! document would take many times the memory of its text.

use super::value::DEPTH_MAX;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// How many values a YAML document may have: more than the largest one within its size has.
const NODES_MAX: usize = 32_000_000;
/// How much larger the same document may be as JSON, where aliases stand for what is said once, and
/// how large one may be that is small.
const GROWTH_MAX: usize = 2;
const SMALL_BYTES: usize = 16 * 1024 * 1024;
/// What some programs write before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The document as JSON text.
pub(super) fn json(mut text: String) -> Result<String, String> {
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    if text.trim_start().starts_with('{') { Ok(text) } else { yaml(&text) }
}

fn yaml(text: &str) -> Result<String, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 2 * NODES_MAX,
            max_total_scalar_bytes: usize::MAX,
        },
        // As YAML 1.2 has it: `no` and `on` are texts.
        strict_booleans: true,
        emit_comments: false,
        with_snippet: false,
    };
    let bytes_max = text.len().saturating_mul(GROWTH_MAX).max(SMALL_BYTES);
    let mut written = Vec::new();
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| {
        Writing { written: &mut written, bytes_max }.deserialize(reader)
    });
    read.map_err(|error| format!("it is not YAML or JSON: {error}"))?;
    String::from_utf8(written).map_err(|error| error.to_string())
}

/// Writes what is read.
struct Writing<'w> {
    written: &'w mut Vec<u8>,
    bytes_max: usize,
}

impl Writing<'_> {
    fn write<E: Error>(&mut self, text: &str) -> Result<(), E> {
        self.written.extend_from_slice(text.as_bytes());
        self.check()
    }

    fn string<E: Error>(&mut self, text: &str) -> Result<(), E> {
        serde_json::to_writer(&mut *self.written, text).map_err(E::custom)?;
        self.check()
    }

    fn check<E: Error>(&self) -> Result<(), E> {
        let Self { written, bytes_max } = self;
        match written.len() > *bytes_max {
            true => Err(E::custom(format!("as JSON it has more than {bytes_max} bytes"))),
            false => Ok(()),
        }
    }

    /// The same, for a value inside this one.
    fn inner(&mut self) -> Writing<'_> {
        Writing { written: &mut *self.written, bytes_max: self.bytes_max }
    }
}

impl<'de> DeserializeSeed<'de> for Writing<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writing<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON knows")
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.write("null")
    }

    fn visit_bool<E: Error>(mut self, flag: bool) -> Result<(), E> {
        self.write(if flag { "true" } else { "false" })
    }

    fn visit_i64<E: Error>(mut self, number: i64) -> Result<(), E> {
        self.write(&number.to_string())
    }

    fn visit_u64<E: Error>(mut self, number: u64) -> Result<(), E> {
        self.write(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        serde_json::to_writer(&mut *self.written, &number).map_err(E::custom)?;
        self.check()
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<(), E> {
        self.string(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.write::<A::Error>("[")?;
        let begin = self.written.len();
        loop {
            let before = self.written.len();
            if before > begin {
                self.write::<A::Error>(",")?;
            }
            if items.next_element_seed(self.inner())?.is_none() {
                self.written.truncate(before);
                return self.write("]");
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.write::<A::Error>("{")?;
        let begin = self.written.len();
        while let Some(name) = entries.next_key::<String>()? {
            if self.written.len() > begin {
                self.write::<A::Error>(",")?;
            }
            self.string::<A::Error>(&name)?;
            self.write::<A::Error>(":")?;
            entries.next_value_seed(self.inner())?;
        }
        self.write("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(text: &str) -> Result<Value, String> {
        let written = json(text.to_owned())?;
        serde_json::from_str(&written).map_err(|error| format!("{error}: {written}"))
    }

    #[test]
    fn yaml_is_converted_to_json() {
        let yaml = "a: [1, -2, 2.5, no, true, ~, 'é\"', {}]\n200: {}\nb: &b {c: []}\nd: *b\n";
        let value = json!({"a": [1, -2, 2.5, "no", true, null, "é\"", {}], "200": {},
            "b": {"c": []}, "d": {"c": []}});
        assert_eq!(read(yaml), Ok(value));
        assert_eq!(json("\u{feff} {\"a\": 1}".to_owned()).unwrap(), " {\"a\": 1}");
        assert_eq!(read("[1, []]"), Ok(json!([1, []])));
    }

    #[test]
    fn yaml_alias_bombs_are_refused() {
        let long = "x".repeat(1024 * 1024);
        let text = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 20].join(", "));
        let told = json(text).unwrap_err();
        assert!(told.contains("as JSON it has more than 16777216 bytes"), "{told}");
        assert!(json("a: [".to_owned()).unwrap_err().contains("it is not YAML or JSON"));
    }
}
