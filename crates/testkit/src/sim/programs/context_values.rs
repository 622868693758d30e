//! Values of a context in the reference implementation: small ones inline, large ones as blobs,
//! joins as references to their parts.

use kernel::values::ids::ContentHash;
use serde_json::Value;
use std::collections::BTreeMap;

/// A value as a context holds it.
#[derive(Debug, Clone)]
pub enum ContextValue {
    /// A small one.
    Value(Value),
    /// A large one: pointers to all of it give its name.
    Blob(Value),
    /// What branches left.
    Object(BTreeMap<String, ContextValue>),
    /// What iterations left.
    Array(Vec<ContextValue>),
}

impl ContextValue {
    /// A value whose text may have so many bytes before it goes to a blob.
    pub fn kept(value: Value, inline_bytes_max: usize) -> Self {
        if value.to_string().len() > inline_bytes_max {
            ContextValue::Blob(value)
        } else {
            ContextValue::Value(value)
        }
    }

    /// A joined value: one blob if it is large, unless there are blobs in it already.
    pub fn joined(self, inline_bytes_max: usize) -> Self {
        if self.holds_blob() {
            return self;
        }
        match ContextValue::kept(self.shown(), inline_bytes_max) {
            ContextValue::Value(_) => self,
            large => large,
        }
    }

    fn holds_blob(&self) -> bool {
        match self {
            ContextValue::Value(_) => false,
            ContextValue::Blob(_) => true,
            ContextValue::Object(fields) => fields.values().any(ContextValue::holds_blob),
            ContextValue::Array(items) => items.iter().any(ContextValue::holds_blob),
        }
    }

    /// What a pointer to all of it gives.
    pub fn shown(&self) -> Value {
        match self {
            ContextValue::Value(value) => value.clone(),
            ContextValue::Blob(value) => {
                let hash = ContentHash::of(value.to_string().as_bytes());
                Value::String(format!("blob://{hash}"))
            }
            ContextValue::Object(fields) => {
                fields.iter().map(|(name, field)| (name.clone(), field.shown())).collect()
            }
            ContextValue::Array(items) => items.iter().map(ContextValue::shown).collect(),
        }
    }

    /// What a pointer to a place in it gives.
    pub fn at(&self, path: &[String]) -> Option<Value> {
        let Some((first, rest)) = path.split_first() else { return Some(self.shown()) };
        match self {
            ContextValue::Value(value) | ContextValue::Blob(value) => inside(value, path),
            ContextValue::Object(fields) => fields.get(first)?.at(rest),
            ContextValue::Array(_) => None,
        }
    }

    /// The same, with a whole blob opened: what a loop goes over.
    pub fn opened_at(&self, path: &[String]) -> Option<Value> {
        match self {
            ContextValue::Blob(value) => inside(value, path),
            ContextValue::Value(_) | ContextValue::Object(_) | ContextValue::Array(_) => {
                self.at(path)
            }
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
        let held = ContextValue::kept(json!({"n": 7, "words": "a few"}), 8);
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
            ContextValue::Array(
                values.iter().map(|value| ContextValue::kept((*value).clone(), 9)).collect(),
            )
        };
        assert!(matches!(held([&small, &large]).joined(9), ContextValue::Array(_)));
        assert!(matches!(held([&small, &small]).joined(9), ContextValue::Array(_)));
        assert!(matches!(held([&small, &small]).joined(3), ContextValue::Blob(_)));
    }
}
