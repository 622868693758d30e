//! The keys of plans, agents and pipelines, as the schemas of their files describe them.

use super::head;
use kernel::definition::schemas;
use serde_json::Value;

/// A kind of file.
struct Kind {
    title: &'static str,
    schema: &'static str,
    about: &'static str,
}

const PLAN: Kind = Kind {
    title: "Keys of a plan",
    schema: schemas::PLAN,
    about: "\
Every key of a file in `plans/<domain>/`. YAML and JSON are the same. An unknown key is an error with
its line; keys that begin with `x-` are left to other programs. `waypost schema plan` prints the same
as a JSON Schema, for editors. A pointer, `{jsonPath, default, all}`, may stand wherever a value may
be anything: see [pointers](../concepts/pointers.md). [Steps](../concepts/steps.md) says what each
step does.",
};

const AGENT: Kind = Kind {
    title: "Keys of an agent",
    schema: schemas::AGENT,
    about: "\
Every key of a file in `agents/`; `refName` and `llmConfigRef` are required. YAML and JSON are the
same. An unknown key is an error with its line; keys that begin with `x-` are left to other programs.
`waypost schema agent` prints the same as a JSON Schema, for editors. [Agents](../concepts/agents.md)
says what an agent is.",
};

const PIPELINE: Kind = Kind {
    title: "Keys of a pipeline",
    schema: schemas::PIPELINE,
    about: "\
Every key of a file in `pipelines/`. YAML and JSON are the same. An unknown key is an error with its
line; keys that begin with `x-` are left to other programs. `waypost schema pipeline` prints the same
as a JSON Schema, for editors. [Pipelines](../concepts/pipelines.md) says what a pipeline is.",
};

/// The page of plans.
pub(super) fn plan() -> String {
    page(&PLAN)
}

/// The page of agents.
pub(super) fn agent() -> String {
    page(&AGENT)
}

/// The page of pipelines.
pub(super) fn pipeline() -> String {
    page(&PIPELINE)
}

fn page(kind: &Kind) -> String {
    let schema: Value = serde_json::from_str(kind.schema).unwrap();
    let mut page = head(kind.title, kind.about);
    page.push_str(&section(&schema, &schema));
    for part in schema["$defs"].as_object().unwrap().values() {
        page.push_str(&section(&schema, part));
    }
    page
}

/// A map with its keys, or what is chosen from.
fn section(schema: &Value, part: &Value) -> String {
    let title = part["title"].as_str().unwrap();
    let about = part["description"].as_str().map(|about| format!("{about}\n\n"));
    let Some(keys) = part["properties"].as_object() else {
        let choices = part["oneOf"].as_array().unwrap().iter();
        let choices: String =
            choices.map(|choice| format!("- {}\n", what(schema, choice))).collect();
        return format!("\n## {title}\n\n{}{choices}", about.unwrap_or_default());
    };
    let required: Vec<&str> =
        part["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = format!("\n## {title}\n\n{}", about.unwrap_or_default());
    text.push_str("| key | value | meaning |\n|---|---|---|\n");
    for (key, value) in keys {
        let must = if required.contains(&key.as_str()) { " (required)" } else { "" };
        let meaning = value["description"].as_str().unwrap_or_default();
        let default = value.get("default").map(|usual| format!(" Default: `{}`.", plain(usual)));
        let default = default.unwrap_or_default();
        text.push_str(&format!(
            "| `{key}`{must} | {} | {meaning}{default} |\n",
            what(schema, value).replace('|', "\\|")
        ));
    }
    text
}

/// What a value can be, in words.
fn what(schema: &Value, value: &Value) -> String {
    if let Some(name) = value["$ref"].as_str() {
        let part = &schema["$defs"][name.rsplit('/').next().unwrap()];
        let title = part["title"].as_str().unwrap();
        return format!("[{}](#{})", title.to_lowercase(), anchor(title));
    }
    if let Some(word) = value.get("const") {
        return format!("`{}`", plain(word));
    }
    if let Some(words) = value["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", plain(word))).collect();
        return words.join(", ");
    }
    if let Some(choices) = value["oneOf"].as_array() {
        let choices: Vec<String> = choices.iter().map(|choice| what(schema, choice)).collect();
        return choices.join("; ");
    }
    let kinds: Vec<&str> = match &value["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return "anything".to_owned(),
    };
    let kinds = kinds.into_iter().map(|kind| match kind {
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "object" => of_object(schema, value),
        "array" => format!(
            "list: {}",
            value.get("items").map_or("anything".to_owned(), |items| { what(schema, items) })
        ),
        other => other.to_owned(),
    });
    let kinds: Vec<String> = kinds.collect();
    format!("{}{}", kinds.join(" or "), range(value))
}

/// A map whose keys are described in place, or one with any keys.
fn of_object(schema: &Value, value: &Value) -> String {
    if let Some(keys) = value["properties"].as_object() {
        let keys: Vec<String> = keys.keys().map(|key| format!("`{key}`")).collect();
        return format!("map with {}", keys.join(", "));
    }
    match value.get("additionalProperties").filter(|other| other.is_object()) {
        Some(each) => format!("map of names: {}", what(schema, each)),
        None => "map".to_owned(),
    }
}

fn range(value: &Value) -> String {
    match (value.get("minimum"), value.get("maximum")) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        _ => String::new(),
    }
}

/// A text without its quotes, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The anchor of a heading, as Markdown makes it.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
