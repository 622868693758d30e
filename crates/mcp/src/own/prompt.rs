//! A plan as a prompt: what it takes, and the words that ask a model to run it.

use kernel::contracts::shelf::{PromptArgument, PromptSpec};
use kernel::tool::call::ToolSpec;
use kernel::values::names::{Alphabet, outward};
use serde_json::{Map, Value, json};

pub(super) fn spec(plan: &ToolSpec) -> PromptSpec {
    let about = if plan.description.is_empty() {
        format!("Run the plan `{}`.", plan.name)
    } else {
        plan.description.clone()
    };
    PromptSpec {
        name: outward(plan.name.as_str(), Alphabet::Mcp),
        title: Some(plan.title.clone()),
        description: Some(about),
        arguments: arguments(plan),
        listed: None,
    }
}

/// The prompt with its arguments filled in: `{description, messages}`.
pub(super) fn filled(plan: &ToolSpec, given: &Map<String, Value>) -> Value {
    let text = words(plan, given);
    json!({
        "description": spec(plan).description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    })
}

/// Completions of an argument: the values that its schema lists.
pub(super) fn choices(plan: &ToolSpec, argument: &str, typed: &str) -> Vec<String> {
    let Some(schema) = plan.input_schema["properties"].get(argument) else { return Vec::new() };
    let listed: Vec<Value> = match (&schema["enum"], &schema["const"]) {
        (Value::Array(values), _) => values.clone(),
        (_, Value::Null) if has_type(schema, "boolean") => vec![json!(true), json!(false)],
        (_, Value::Null) => Vec::new(),
        (_, only) => vec![only.clone()],
    };
    let typed = typed.to_lowercase();
    listed.iter().map(as_text).filter(|value| value.to_lowercase().starts_with(&typed)).collect()
}

/// Those that must be given come first, in the schema's order.
fn arguments(plan: &ToolSpec) -> Vec<PromptArgument> {
    let required: Vec<&str> = match &plan.input_schema["required"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let properties = &plan.input_schema["properties"];
    let argument = |name: &str, required: bool| PromptArgument {
        name: name.to_owned(),
        description: about(&properties[name]),
        required,
    };
    let names = properties.as_object().into_iter().flat_map(Map::keys);
    let rest = names.filter(|name| !required.contains(&name.as_str()));
    required
        .iter()
        .map(|name| argument(name, true))
        .chain(rest.map(|name| argument(name, false)))
        .collect()
}

/// What a property is for. A person who fills in a form sees no schema, so a type that is no text
/// is described in words.
fn about(schema: &Value) -> Option<String> {
    let words = schema["description"].as_str().or_else(|| schema["title"].as_str());
    let kind = schema["type"].as_str().filter(|kind| *kind != "string");
    match (words, kind) {
        (Some(words), Some(kind)) => Some(format!("{words} ({kind})")),
        (Some(words), None) => Some(words.to_owned()),
        (None, kind) => kind.map(str::to_owned),
    }
}

fn words(plan: &ToolSpec, given: &Map<String, Value>) -> String {
    let properties = &plan.input_schema["properties"];
    let read = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => typed(&properties[name], text),
            other => other.clone(),
        };
        (name.clone(), value)
    };
    let arguments: Map<String, Value> = given.iter().map(read).collect();
    let mut text = format!("Run the plan `{}` for me.\n\n", plan.name);
    if !plan.description.is_empty() {
        text.push_str(&format!("What it does: {}\n\n", plan.description));
    }
    let tool = outward(plan.name.as_str(), Alphabet::Mcp);
    // These are plain data; writing them as JSON cannot fail.
    let pretty = serde_json::to_string_pretty(&arguments).unwrap_or_default();
    text.push_str(&format!(
        "Call the tool `{tool}` once, with these arguments:\n\n```json\n{pretty}\n```\n\n"
    ));
    let open: Vec<String> = self::arguments(plan)
        .iter()
        .filter(|argument| !argument.required && !given.contains_key(argument.name.as_str()))
        .map(|argument| format!("`{}`", argument.name))
        .collect();
    if !open.is_empty() {
        text.push_str(&format!(
            "Not given, and not needed: {}. Leave them out unless I have told you what to put \
             there.\n\n",
            open.join(", ")
        ));
    }
    text.push_str(
        "The plan may pause until a person answers a question or approves a step. If the result \
         says that it waits, tell me what is asked and where to answer it, and do not call the \
         tool again: the plan continues by itself after the answer. Otherwise tell me its result.",
    );
    text
}

/// A prompt's arguments are texts; the plan's may be anything.
fn typed(schema: &Value, text: &str) -> Value {
    let as_it_is = || Value::from(text);
    if has_type(schema, "string") {
        return as_it_is();
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else { return as_it_is() };
    let is_listed = schema["enum"].as_array().is_some_and(|values| values.contains(&value));
    // Without a type `12` may well be meant as a text, but `{..}` and `[..]` hardly.
    let is_meant = schema.get("type").is_some() || is_listed;
    if is_meant || value.is_object() || value.is_array() { value } else { as_it_is() }
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    match &schema["type"] {
        Value::String(kind) => kind == wanted,
        Value::Array(kinds) => kinds.iter().any(|kind| kind == wanted),
        _ => false,
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::tool::call::Reach;
    use std::sync::Arc;

    fn plan(schema: Value) -> ToolSpec {
        ToolSpec {
            description: "Settles a trade.".to_owned(),
            input_schema: Arc::new(schema),
            reach: Reach::Writes,
            ..testkit::specs::tool("trade/settle")
        }
    }

    fn settle() -> ToolSpec {
        plan(json!({
            "type": "object",
            "required": ["trade", "amount", "ghost"],
            "properties": {
                "amount": {"type": "number", "description": "In euros"},
                "lines": {},
                "mode": {"enum": ["Fast", "safe", 3]},
                "really": {"type": ["boolean", "null"]},
                "trade": {"type": "string", "title": "Its number"},
            },
        }))
    }

    #[test]
    fn the_inputs_of_a_plan_are_the_prompts_arguments() {
        let spec = spec(&settle());
        assert_eq!(spec.name, "trade--settle");
        assert_eq!(spec.description.as_deref(), Some("Settles a trade."));
        let arguments: Vec<(&str, Option<&str>, bool)> = spec
            .arguments
            .iter()
            .map(|one| (one.name.as_str(), one.description.as_deref(), one.required))
            .collect();
        let expected = [
            ("trade", Some("Its number"), true),
            ("amount", Some("In euros (number)"), true),
            ("ghost", None, true),
            ("lines", None, false),
            ("mode", None, false),
            ("really", None, false),
        ];
        assert_eq!(arguments, expected);
        assert!(super::spec(&plan(json!(true))).arguments.is_empty());
    }

    #[test]
    fn the_prompt_says_which_tool_to_call_with_which_arguments() {
        let given = json!({"trade": "17", "amount": "2.5", "lines": "[1]", "mode": "3"});
        let filled = filled(&settle(), given.as_object().unwrap());
        let text = filled["messages"][0]["content"]["text"].as_str().unwrap();
        let (_, after) = text.split_once("```json\n").unwrap();
        let (arguments, _) = after.split_once("\n```").unwrap();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let expected = json!({"trade": "17", "amount": 2.5, "lines": [1], "mode": 3});
        assert_eq!(arguments, expected);
        for part in ["`trade/settle`", "`trade--settle`", "Settles a trade.", "`really`", "pause"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("`ghost`"), "{text}");
        assert_eq!(filled["messages"][0]["role"], "user");
    }

    #[test]
    fn text_arguments_become_values_of_the_schema() {
        let number = json!({"type": "integer"});
        assert_eq!(typed(&number, "12"), json!(12));
        assert_eq!(typed(&number, "twelve"), json!("twelve"));
        assert_eq!(typed(&json!({"type": ["string", "null"]}), "12"), json!("12"));
        assert_eq!(typed(&Value::Null, "12"), json!("12"));
        assert_eq!(typed(&Value::Null, "{\"a\": 1}"), json!({"a": 1}));
    }

    #[test]
    fn an_argument_is_completed_with_the_values_of_its_schema() {
        let settle = settle();
        assert_eq!(choices(&settle, "mode", ""), ["Fast", "safe", "3"]);
        assert_eq!(choices(&settle, "mode", "f"), ["Fast"]);
        assert_eq!(choices(&settle, "really", "t"), ["true"]);
        assert_eq!(choices(&settle, "trade", ""), Vec::<String>::new());
        assert_eq!(choices(&settle, "ghost", ""), Vec::<String>::new());
        let only = plan(json!({"properties": {"a": {"const": "b"}}}));
        assert_eq!(choices(&only, "a", "B"), ["b"]);
    }
}
