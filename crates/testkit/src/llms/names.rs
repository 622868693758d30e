//! What a fake model does, by the end of its name: `says`, or `gemini-3.8-flash--calls`.

use super::act::{Act, Break, Failure};
use super::wire::ModelRequest;
use serde_json::{Map, Value, json};

/// What stands before the act in a model's name.
const BEFORE_ACT: &str = "--";

/// The end of a model's name.
pub(super) fn name_of(model: &str) -> &str {
    model.rsplit(BEFORE_ACT).next().unwrap_or(model)
}

/// What a model of this name does.
pub(super) fn act_of(request: &ModelRequest) -> Act {
    let hello = || "Hello there, dear friend.".to_owned();
    match name_of(&request.model) {
        "says" => Act::Says(hello()),
        "calls" => calls(request, false),
        "thinks" => calls(request, true),
        "fills" => fills(request),
        "refuses" => Act::Refuses("I will not.".to_owned()),
        "stops" => Act::Stops(hello()),
        "rate-limited" => Act::Fails(Failure::RateLimited),
        "rate-limited-until" => Act::Fails(Failure::RateLimitedUntil),
        "overloaded" => Act::Fails(Failure::Overloaded),
        "too-long" => Act::Fails(Failure::TooLong),
        "no-money" => Act::Fails(Failure::NoMoney),
        "cut" => Act::Breaks(Break::Cut),
        "dropped" => Act::Breaks(Break::Dropped),
        "page" => Act::Breaks(Break::Page),
        "nonsense" => Act::Breaks(Break::Nonsense),
        "error" => Act::Breaks(Break::Error),
        "silence" => Act::Breaks(Break::Silence),
        "flood" => Act::Breaks(Break::Flood),
        "whole" => Act::Breaks(Break::Whole),
        "elsewhere" => Act::Breaks(Break::Elsewhere),
        _ => Act::Fails(Failure::NoModel(request.model.clone())),
    }
}

/// The first tool, twice; then it tells what came of that.
fn calls(request: &ModelRequest, thinks: bool) -> Act {
    let Some(tool) = request.tools.first() else {
        return Act::Says("There is nothing to call.".to_owned());
    };
    if !request.results.is_empty() {
        return Act::Says(format!("It said: {}.", request.results.join(", ")));
    }
    let call = |city: &str| (tool.clone(), json!({"city": city}));
    Act::Calls {
        text: "One moment, please.".to_owned(),
        calls: vec![call("Paris"), call("Rome")],
        thinks,
    }
}

fn fills(request: &ModelRequest) -> Act {
    match &request.form {
        Some(schema) => Act::Says(filled(schema).to_string()),
        None => Act::Fails(Failure::Bad("no form was asked for".to_owned())),
    }
}

/// A value that fits a schema, as far as forms go.
fn filled(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let filled: Map<String, Value> =
                properties.map(|(name, schema)| (name.clone(), filled(schema))).collect();
            Value::Object(filled)
        }
        Some("array") => json!([filled(&schema["items"])]),
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        _ => json!("text"),
    }
}
