//! Where a path leads in a record. An array on the way stands for all of its elements, and so does
//! one inside another.

use crate::checked::Step;
use crate::tree::Index;
use serde_json::Value;

/// Whether this holds for a value at the end of the path, each element of an array for itself.
/// Where the path leads nowhere, it is asked about none.
pub(super) fn any_leaf(
    value: &Value,
    steps: &[Step],
    holds: &mut dyn FnMut(Option<&Value>) -> bool,
) -> bool {
    any_end(value, steps, &mut |end: Option<&Value>| match end {
        Some(end) => any_element(end, &mut |element: &Value| holds(Some(element))),
        None => holds(None),
    })
}

/// Whether this holds for a value at the end of the path, an array as a whole.
pub(super) fn any_node(
    value: &Value,
    steps: &[Step],
    holds: &mut dyn FnMut(&Value) -> bool,
) -> bool {
    any_end(value, steps, &mut |end: Option<&Value>| end.is_some_and(&mut *holds))
}

/// Whether this holds for an element of the array, or for the value that is none.
pub(super) fn any_element(value: &Value, holds: &mut dyn FnMut(&Value) -> bool) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(|element| any_element(element, holds)),
        _ => holds(value),
    }
}

fn any_end(value: &Value, steps: &[Step], holds: &mut dyn FnMut(Option<&Value>) -> bool) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return holds(Some(value));
    };
    let inner = match value {
        Value::Array(elements) if !elements.is_empty() => {
            return elements.iter().any(|element| any_end(element, steps, holds));
        }
        Value::Object(members) => members.get(&step.name),
        _ => None,
    };
    let inner = match step.index {
        Index::Unsaid | Index::Each => inner,
        Index::At(index) => inner.and_then(|inner| inner.get(index as usize)),
    };
    match inner {
        Some(inner) => any_end(inner, rest, holds),
        None => holds(None),
    }
}
