//! Values as a context holds them, in the reference: small ones as they are, large ones by name,
//! joins as references to what they were made of.

use kernel::values::ids::ContentHash;
use serde_json::Value;
use std::collections::BTreeMap;

/// A value as a context holds it.
#[derive(Debug, Clone)]
pub enum Held {
    /// A small one.
    Value(Value),
    /// A large one: pointers to all of it give its name.
    Blob(Value),
    /// What branches left.
    Object(BTreeMap<String, Held>),
    /// What iterations left.
    Array(Vec<Held>),
}

impl Held {
    /// A value whose text may have so many bytes before it goes to a blob.
    pub fn kept(value: Value, inline_bytes_max: usize) -> Self {
        if value.to_string().len() > inline_bytes_max {
            Held::Blob(value)
        } else {
            Held::Value(value)
        }
    }

    /// A joined value: one blob if it is large, unless there are blobs in it already.
    pub fn joined(self, inline_bytes_max: usize) -> Self {
        if self.holds_blob() {
            return self;
        }
        match Held::kept(self.shown(), inline_bytes_max) {
            Held::Value(_) => self,
            large => large,
        }
    }

    fn holds_blob(&self) -> bool {
        match self {
            Held::Value(_) => false,
            Held::Blob(_) => true,
            Held::Object(fields) => fields.values().any(Held::holds_blob),
            Held::Array(items) => items.iter().any(Held::holds_blob),
        }
    }

    /// What a pointer to all of it gives.
    pub fn shown(&self) -> Value {
        match self {
            Held::Value(value) => value.clone(),
            Held::Blob(value) => {
                let hash = ContentHash::of(value.to_string().as_bytes());
                Value::String(format!("blob://{hash}"))
            }
            Held::Object(fields) => {
                fields.iter().map(|(name, field)| (name.clone(), field.shown())).collect()
            }
            Held::Array(items) => items.iter().map(Held::shown).collect(),
        }
    }

    /// What a pointer to a place in it gives.
    pub fn at(&self, path: &[String]) -> Option<Value> {
        let Some((first, rest)) = path.split_first() else { return Some(self.shown()) };
        match self {
            Held::Value(value) | Held::Blob(value) => inside(value, path),
            Held::Object(fields) => fields.get(first)?.at(rest),
            Held::Array(_) => None,
        }
    }

    /// The same, with a whole blob opened: what a loop goes over.
    pub fn opened_at(&self, path: &[String]) -> Option<Value> {
        match self {
            Held::Blob(value) => inside(value, path),
            Held::Value(_) | Held::Object(_) | Held::Array(_) => self.at(path),
        }
    }
}

fn inside(value: &Value, path: &[String]) -> Option<Value> {
    path.iter().try_fold(value, |value, name| value.get(name)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_large_value_is_named_as_a_whole_and_open_inside() {
        let held = Held::kept(json!({"n": 7, "words": "a few"}), 8);
        let name = held.shown();
        assert!(name.as_str().is_some_and(|name| name.starts_with("blob://")), "{name}");
        assert_eq!(held.at(&["n".to_owned()]), Some(json!(7)));
        assert_eq!(held.at(&["m".to_owned()]), None);
        assert_eq!(held.opened_at(&[]), Some(json!({"n": 7, "words": "a few"})));
    }

    #[test]
    fn a_join_with_a_blob_in_it_stays_made_of_references() {
        let small = json!(1);
        let large = json!("many words in a row");
        let held = |values: [&Value; 2]| {
            Held::Array(values.iter().map(|value| Held::kept((*value).clone(), 9)).collect())
        };
        assert!(matches!(held([&small, &large]).joined(9), Held::Array(_)));
        assert!(matches!(held([&small, &small]).joined(9), Held::Array(_)));
        assert!(matches!(held([&small, &small]).joined(3), Held::Blob(_)));
    }
}
