//! `get_directions`: how far it is from one place to another, in which direction, and roughly how
//! long that takes. There are no streets in here, and the answer says so.

use super::FAMILY;
use super::gazetteer::{Place, find};
use super::globe::direction;
use super::search_places::needed_text;
use super::tool::MapsTool;
use crate::card::{Card, Does, object, texts};
use kernel::tool::call::ToolError;
use serde_json::{Value, json};

/// How fast one is, in kilometres an hour along the straight line: streets are about a third
/// longer.
const SPEEDS: [(&str, f64); 3] = [("foot", 3.8), ("bicycle", 12.0), ("car", 60.0)];

const NOTE: &str = "Straight line over the globe, not along roads: distances and times are rough, \
                    and water in between is not looked at.";

pub(super) fn tool() -> MapsTool {
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    let place = texts(&["name", "city", "country"]);
    let card = Card {
        name: "get_directions",
        title: "Get directions",
        description: "How far it is from one well-known place to another, in which direction, and \
                      roughly how long it takes on foot, by bicycle and by car. Straight lines \
                      only: there are no roads in here.",
        family: FAMILY,
        does: Does::Reads,
        input: json!({
            "type": "object",
            "properties": {
                "from": {"type": "string", "minLength": 1, "description": "Where it begins"},
                "to": {"type": "string", "minLength": 1, "description": "Where it ends"},
            },
            "required": ["from", "to"],
            "additionalProperties": false,
        }),
        output: object([
            ("from", place.clone()),
            ("to", place),
            ("distance_km", number.clone()),
            ("bearing_degrees", number.clone()),
            ("direction", text.clone()),
            ("minutes", object(SPEEDS.map(|(means, _)| (means, number.clone())))),
            ("note", text),
        ]),
    };
    MapsTool::new(card, act)
}

fn act(arguments: &Value) -> Result<Value, ToolError> {
    let from = place(needed_text(arguments, "from")?)?;
    let to = place(needed_text(arguments, "to")?)?;
    let km = from.point.km_to(to.point);
    let bearing = from.point.bearing_to(to.point);
    let minutes: serde_json::Map<String, Value> = SPEEDS
        .iter()
        .map(|(means, speed)| ((*means).to_owned(), json!((km / speed * 60.0).round())))
        .collect();
    Ok(json!({
        "from": short(from),
        "to": short(to),
        "distance_km": (km * 10.0).round() / 10.0,
        "bearing_degrees": bearing.round(),
        "direction": direction(bearing),
        "minutes": minutes,
        "note": NOTE,
    }))
}

fn place(written: &str) -> Result<&'static Place, ToolError> {
    find(written).ok_or_else(|| {
        let written: String = written.chars().take(80).collect();
        ToolError::failed("PlaceNotFound", format!("there is no place `{written}` in here"))
            .hint("`search_places` finds those that there are")
    })
}

fn short(place: &Place) -> Value {
    json!({"name": place.name, "city": place.city, "country": place.country})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_say_that_they_are_a_straight_line() {
        let told = act(&json!({"from": "eiffel tower", "to": "Louvre"})).unwrap();
        assert_eq!(told["to"]["name"], "Louvre Museum");
        let km = told["distance_km"].as_f64().unwrap();
        assert!((2.5..4.0).contains(&km), "{told}");
        assert_eq!(told["direction"], "east");
        let minutes = |means: &str| told["minutes"][means].as_f64().unwrap();
        assert!(minutes("foot") > minutes("bicycle") && minutes("bicycle") > minutes("car"));
        assert!(told["note"].as_str().unwrap().starts_with("Straight line"));
        let nowhere = act(&json!({"from": "Louvre", "to": "Atlantis"})).unwrap_err();
        assert_eq!(nowhere.fault.message, "there is no place `Atlantis` in here");
        let same = act(&json!({"from": "Louvre", "to": "Louvre"})).unwrap();
        assert_eq!(same["distance_km"], 0.0);
    }
}
