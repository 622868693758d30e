//! Hidden fields in a save: its caller can neither set nor remove them.

use super::values::joined;
use crate::names::NameSet;
use kernel::values::canonical;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// What a caller names that does not exist for it: where, and its name.
pub(super) fn named(
    hidden: &NameSet,
    value: &Value,
    place: &str,
    found: &mut Vec<(String, String)>,
) {
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                named(hidden, element, &format!("{place}[{index}]"), found);
            }
        }
        Value::Object(members) => {
            for (name, inner) in members {
                match hidden.within(name) {
                    // Null stands for what is left out, also where there is no such field.
                    _ if inner.is_null() => {}
                    Some(set) if set.is_whole() => {
                        found.push((place.to_owned(), name.clone()));
                    }
                    Some(set) => named(set, inner, &joined(place, name), found),
                    None => {}
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Puts back what is hidden of the record before the save. It stays even if what is visible around
/// it goes, but not if the element of an array goes that it was in.
pub(super) fn keep(hidden: &NameSet, before: &Value, after: &mut Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, old) in before {
                let Some(set) = hidden.within(name) else { continue };
                if set.is_whole() {
                    after.insert(name.clone(), old.clone());
                    continue;
                }
                match after.get_mut(name) {
                    Some(new) if !new.is_null() => keep(set, old, new),
                    Some(_) | None => {
                        let mut kept = old.clone();
                        set.keep_in(&mut kept);
                        if kept.as_object().is_some_and(|members| !members.is_empty()) {
                            after.insert(name.clone(), kept);
                        }
                    }
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => keep_in_elements(hidden, before, after),
        _ => {}
    }
}

/// An element is the one that looked the same, else the one in its place if none came or went.
fn keep_in_elements(hidden: &NameSet, before: &[Value], after: &mut [Value]) {
    let mut alike: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
    for (place, old) in before.iter().enumerate() {
        let mut visible = old.clone();
        hidden.drop_from(&mut visible);
        alike.entry(canonical::text(&visible)).or_default().push_back(place);
    }
    let is_as_long = before.len() == after.len();
    let mut is_used = vec![false; before.len()];
    let mut unlike = Vec::new();
    for (place, new) in after.iter_mut().enumerate() {
        let found = alike.get_mut(&canonical::text(new)).and_then(VecDeque::pop_front);
        match found {
            Some(old) => {
                is_used[old] = true;
                keep(hidden, &before[old], new);
            }
            None => unlike.push(place),
        }
    }
    for place in unlike {
        if is_as_long && !is_used[place] {
            keep(hidden, &before[place], &mut after[place]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hidden() -> NameSet {
        let mut hidden = NameSet::default();
        hidden.insert(["cost"]);
        hidden.insert(["address", "door"]);
        hidden.insert(["lines", "margin"]);
        hidden
    }

    #[test]
    fn hidden_fields_survive_a_save_that_does_not_know_them() {
        let before = json!({
            "cost": 5, "name": "old", "address": {"city": "Oslo", "door": "7"},
            "lines": [{"sku": "a", "margin": 1}, {"sku": "b", "margin": 2}],
        });
        let mut after = json!({"name": "new", "lines": [{"sku": "b"}, {"sku": "a"}]});
        keep(&hidden(), &before, &mut after);
        let kept = json!({
            "name": "new", "cost": 5, "address": {"door": "7"},
            "lines": [{"sku": "b", "margin": 2}, {"sku": "a", "margin": 1}],
        });
        assert_eq!(after, kept);
    }

    #[test]
    fn what_is_hidden_in_an_element_goes_with_it() {
        let before = json!({"lines": [{"sku": "a", "margin": 1}, {"sku": "b", "margin": 2}]});
        let mut fewer = json!({"lines": [{"sku": "b"}]});
        keep(&hidden(), &before, &mut fewer);
        assert_eq!(fewer, json!({"lines": [{"sku": "b", "margin": 2}]}));
        let mut changed = json!({"lines": [{"sku": "c"}, {"sku": "b"}]});
        keep(&hidden(), &before, &mut changed);
        let lines = json!([{"sku": "c", "margin": 1}, {"sku": "b", "margin": 2}]);
        assert_eq!(changed, json!({"lines": lines}));
    }

    #[test]
    fn hidden_names_in_a_save_are_found() {
        let entity = json!({
            "cost": 1, "address": {"door": 2}, "lines": [{"margin": null}, {"margin": 3}],
        });
        let mut found = Vec::new();
        named(&hidden(), &entity, "", &mut found);
        let expected = [("", "cost"), ("address", "door"), ("lines[1]", "margin")]
            .map(|(place, name)| (place.to_owned(), name.to_owned()));
        assert_eq!(found, expected);
    }
}
