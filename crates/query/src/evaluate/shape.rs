//! What of a record is shown, and what is embedded in it.

use super::{Row, fitting, passes};
use crate::checked::{CheckedQuery, Expansion, Selection};
use serde_json::Value;

/// Finds a record of the type with this full name by its id.
pub type Lookup<'l> = dyn Fn(&str, &str) -> Option<Value> + 'l;

/// A record as the query shows it: first others are embedded, then fields are chosen.
pub fn shape(query: &CheckedQuery, row: Row<'_>, lookup: &Lookup<'_>) -> Value {
    let mut record = row.record.clone();
    for expansion in &query.expansions {
        let names: Vec<&str> = expansion.path.names().collect();
        embed(&mut record, &names, &|reference| embedded(expansion, reference, row.realm, lookup));
    }
    select(&query.selection, &mut record);
    record
}

fn select(selection: &Selection, record: &mut Value) {
    if let Some(include) = &selection.include {
        include.keep_in(record);
    }
    selection.exclude.drop_from(record);
    selection.hidden.drop_from(record);
}

/// What takes the place of a reference, if there is such a record and it is wanted.
fn embedded(
    expansion: &Expansion,
    reference: &Value,
    realm: &str,
    lookup: &Lookup<'_>,
) -> Option<Value> {
    let id = fitting::reference_id(reference)?;
    let mut record = lookup(&expansion.to, id)?;
    let is_wanted = expansion
        .filter
        .as_ref()
        .is_none_or(|filter| passes(filter, Row { realm, record: &record }));
    select(&expansion.selection, &mut record);
    is_wanted.then_some(record)
}

/// Replaces what is at the end of the path. What has no replacement becomes null, and in an array
/// it is left out.
fn embed(value: &mut Value, names: &[&str], replacement: &dyn Fn(&Value) -> Option<Value>) {
    let Some((name, rest)) = names.split_first() else {
        match value {
            Value::Array(elements) => *elements = elements.iter().filter_map(replacement).collect(),
            single => *single = replacement(single).unwrap_or(Value::Null),
        }
        return;
    };
    match value {
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| embed(element, names, replacement));
        }
        Value::Object(members) => {
            if let Some(inner) = members.get_mut(*name) {
                embed(inner, rest, replacement);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
