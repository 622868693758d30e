//! A set of fields, by their paths: what a projection keeps or leaves out, and what is hidden from
//! a caller. It looks through arrays.

use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameSet {
    inner: BTreeMap<String, NameSet>,
    /// The field itself is named, with all that is in it.
    is_whole: bool,
}

impl NameSet {
    /// Adds the field of this path.
    pub fn insert<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) {
        let mut set = self;
        for name in path {
            set = set.inner.entry(name.to_owned()).or_default();
        }
        set.is_whole = true;
    }

    pub fn is_empty(&self) -> bool {
        self.inner.is_empty() && !self.is_whole
    }

    /// What is named in the field of this name.
    pub fn within(&self, name: &str) -> Option<&NameSet> {
        self.inner.get(name)
    }

    /// Whether all of it is named.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Leaves only what is named.
    pub fn keep_in(&self, value: &mut Value) {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(|inner| self.keep_in(inner)),
            Value::Object(members) => members.retain(|name, inner| match self.within(name) {
                Some(set) if set.is_whole => true,
                Some(set) => {
                    set.keep_in(inner);
                    true
                }
                None => false,
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Takes out what is named.
    pub fn drop_from(&self, value: &mut Value) {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(|inner| self.drop_from(inner)),
            Value::Object(members) => members.retain(|name, inner| match self.within(name) {
                Some(set) if set.is_whole => false,
                Some(set) => {
                    set.drop_from(inner);
                    true
                }
                None => true,
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_kept_and_dropped_through_arrays() {
        let mut names = NameSet::default();
        names.insert(["a"]);
        names.insert(["list", "b"]);
        let record = json!({"a": {"x": 1}, "list": [{"b": 1, "c": 2}, {"c": 3}], "d": 4});
        let mut kept = record.clone();
        names.keep_in(&mut kept);
        assert_eq!(kept, json!({"a": {"x": 1}, "list": [{"b": 1}, {}]}));
        let mut dropped = record;
        names.drop_from(&mut dropped);
        assert_eq!(dropped, json!({"list": [{"c": 2}, {"c": 3}], "d": 4}));
    }
}
