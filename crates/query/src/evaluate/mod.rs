//! What a query means, over records as JSON: which of them it takes, in which order, what of them
//! is shown, what is embedded, and what is computed over many. Whatever finds records in another
//! way must come to the same.

use crate::checked::{CheckedQuery, FieldPath, Relation, Root, Test, Wanted, Words, folded};
use crate::names::NameSet;
use serde_json::Value;

mod leaves;
mod pattern;
mod fitting;
pub mod shape;
pub mod order;
pub mod group;

use leaves::{any_element, any_leaf, any_node};

/// A record where it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Row<'r> {
    pub realm: &'r str,
    pub record: &'r Value,
}

/// Whether a query takes a record.
pub fn takes(query: &CheckedQuery, row: Row<'_>) -> bool {
    query.filter.as_ref().is_none_or(|filter| passes(filter, row))
}

/// Whether a record passes a test.
pub fn passes(test: &Test, row: Row<'_>) -> bool {
    match test {
        Test::Never => false,
        Test::All(tests) => tests.iter().all(|test| passes(test, row)),
        Test::Any(tests) => tests.iter().any(|test| passes(test, row)),
        Test::Not(inner) => !passes(inner, row),
        Test::Compare(path, relation, wanted) => fits(path, *relation, wanted, row),
        Test::OneOf(path, wanted) => {
            wanted.iter().any(|wanted| fits(path, Relation::Equal, wanted, row))
        }
        Test::Exists(path) => on(path, row, |record| {
            any_node(record, &path.steps, &mut |node: &Value| !node.is_null())
        }),
        Test::Element(path, inner) => on(path, row, |record| {
            any_node(record, &path.steps, &mut |node: &Value| {
                node.is_array()
                    && any_element(node, &mut |element: &Value| {
                        element.is_object()
                            && passes(inner, Row { realm: row.realm, record: element })
                    })
            })
        }),
        Test::Words(words) => has_word(words, &words.hidden, row.record),
    }
}

fn fits(path: &FieldPath, relation: Relation, wanted: &Wanted, row: Row<'_>) -> bool {
    on(path, row, |record| {
        any_leaf(record, &path.steps, &mut |leaf: Option<&Value>| {
            fitting::fits(leaf, relation, wanted)
        })
    })
}

/// Looks at what a path begins in. A field that does not exist is missing in an empty record.
fn on(path: &FieldPath, row: Row<'_>, look: impl Fn(&Value) -> bool) -> bool {
    match path.root {
        Root::Record => look(row.record),
        Root::Realm => look(&serde_json::json!({ "realm": row.realm })),
        Root::Hidden => look(&Value::Null),
    }
}

fn has_word(words: &Words, hidden: &NameSet, value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let text = folded(text);
            words.words.iter().any(|word| text.contains(word.as_str()))
        }
        Value::Array(elements) => elements.iter().any(|inner| has_word(words, hidden, inner)),
        Value::Object(members) => members.iter().any(|(name, inner)| match hidden.within(name) {
            Some(hidden) if hidden.is_whole() => false,
            Some(hidden) => has_word(words, hidden, inner),
            None => has_word(words, &NameSet::default(), inner),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
