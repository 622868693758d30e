//! What is told to agents about the types of a realm before they ask for records: schemas, example
//! queries and permissions. All of it is of the caller's own types and fields, and each example
//! query finds something.

mod examples;
mod permissions;
mod schema;

#[cfg(test)]
mod tests;

use crate::records::reach::Visible;
use crate::types::RecordType;
use examples::Example;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub use permissions::permission_hints;
pub use schema::schema_of;

/// How many types have examples.
pub const SAMPLED_TYPES_MAX: usize = 10;
/// How many of the examples of one type are shown.
const EXAMPLES_OF_TYPE_MAX: usize = 4;
/// How many facts about the language are shown.
const FACTS_MAX: usize = 5;

/// The types that samples are read of: first those that the realm declares, by name.
pub fn sampled(visible: &Visible) -> Vec<&RecordType> {
    let readable = |built_in: bool| {
        let of_kind = visible.rights.iter().filter(move |(_, own)| own.is_built_in == built_in);
        of_kind.filter_map(move |(name, _)| visible.access.types.find(name).ok())
    };
    readable(false).chain(readable(true)).take(SAMPLED_TYPES_MAX).collect()
}

/// The language in short, with examples that are made of a record of each type, by the full names
/// of the types. The records are as the caller sees them.
pub fn query_hints(visible: &Visible, samples: &BTreeMap<String, Value>) -> Value {
    let all: Vec<Vec<Example>> = sampled(visible)
        .into_iter()
        .filter_map(|root| {
            let sample = samples.get(&root.full_name())?;
            Some(examples::of_type(visible, root, sample))
        })
        .collect();
    let shown: Vec<Value> =
        all.iter().flat_map(|own| own.iter().take(EXAMPLES_OF_TYPE_MAX)).map(shown).collect();
    let facts: Vec<Value> =
        examples::FACTS.iter().filter_map(|fact| told(fact, &all)).take(FACTS_MAX).collect();
    json!({
        "queryGrammarSummary": grammar(),
        "exampleQueries": shown,
        "didYouKnow": facts,
    })
}

fn shown(example: &Example) -> Value {
    json!({
        "intent": example.intent,
        "query": example.query,
        "rootType": example.root_type,
        "description": example.description,
    })
}

/// A fact with the first example that shows it; none without one.
fn told(fact: &examples::Fact, all: &[Vec<Example>]) -> Option<Value> {
    let example = all.iter().flatten().find(|example| example.shows == fact.of)?;
    Some(json!({
        "title": fact.title,
        "body": fact.body,
        "exampleQuery": example.query,
        "rootTypeExample": example.root_type,
    }))
}

fn grammar() -> Value {
    json!({
        "syntax": "field:value; conditions are joined by && (and) and || (or), and grouped by ( )",
        "operators": {
            "equals": "field:value, field:\"text with spaces: or signs\", field:#7, field:##19.9",
            "notEquals": "field:!value; it holds for records without the field, too",
            "comparisons": "field:>#1, field:<#9, field:>=2024-01-31, field:<=##19.9",
            "inList": "field:^[a, b, \"c d\"]",
            "notInList": "field:!^[a, b]",
            "exists": "field:~",
            "nullCheck": "field:null, field:!null",
            "wildcards": "field:Har*, field:*bour, field:*arb*, field:H?rbour",
            "andOrNot": "a:1 && (b:2 || c:3) && !!(d:4)",
        },
        "expand": "expand(field) embeds the record that the field refers to; fields:[+a,+b] shows \
                   only these fields",
        "ontologyEdges": "hasEdge(predicate, target) is read, and matches nothing",
    })
}
