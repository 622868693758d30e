//! `search_places`: places by a part of their name, city, country or kind.

use super::FAMILY;
use super::gazetteer::search;
use super::tool::MapsTool;
use crate::card::{Card, Does, list, object};
use kernel::tool::arguments::{kind, misfit};
use kernel::tool::call::ToolError;
use serde_json::{Value, json};

/// How many places are returned at most.
const PLACES_MAX: usize = 10;

pub(super) fn tool() -> MapsTool {
    let of = |kind: &'static str| move |name: &'static str| (name, json!({"type": kind}));
    let words = ["name", "kind", "city", "country"].into_iter().map(of("string"));
    let numbers = ["latitude", "longitude"].into_iter().map(of("number"));
    let card = Card {
        name: "search_places",
        title: "Search places",
        description: "Finds places by a part of their name, city, country or kind, in a small \
                      list of well-known ones.",
        family: FAMILY,
        does: Does::Reads,
        input: json!({
            "type": "object",
            "properties": {"query": {"type": "string", "minLength": 1}},
            "required": ["query"],
            "additionalProperties": false,
        }),
        output: list("places", object(words.chain(numbers))),
    };
    MapsTool::new(card, act)
}

fn act(arguments: &Value) -> Result<Value, ToolError> {
    let query = needed_text(arguments, "query")?;
    let places: Vec<Value> =
        search(query).into_iter().take(PLACES_MAX).map(|place| place.to_json()).collect();
    Ok(json!({"places": places}))
}

/// A text that is required and must not be blank.
pub(super) fn needed_text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, ToolError> {
    match arguments.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.trim()),
        Some(Value::String(_)) | None => Err(misfit(format!("`{name}` is missing"))),
        Some(other) => Err(misfit(format!("`{name}` must be a text, not {}", kind(other)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_by_name_country_and_kind() {
        let names = |query: &str| -> Vec<String> {
            let found = act(&json!({"query": query})).unwrap();
            let places = found["places"].as_array().unwrap();
            places.iter().map(|place| place["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("eiffel")[0], "Eiffel Tower");
        assert!(names("museum paris").contains(&"Louvre Museum".to_owned()));
        assert_eq!(names("PRADO"), ["Prado Museum"]);
        assert!(names("Atlantis").is_empty());
        assert!(names("a").len() <= PLACES_MAX);
        assert!(act(&json!({"query": " "})).is_err());
    }
}
