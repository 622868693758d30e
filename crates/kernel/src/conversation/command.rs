//! Commands: tool calls that a model writes as JSON text, `{intent, tool, args, stop}`. Any model
//! can write them, including those without tool calls.

use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::{Map, Value};

/// The one intent that there is.
const CALL_TOOL: &str = "CALL_TOOL";

/// What a model orders in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The tool, by the name that the model said.
    pub tool: String,
    pub args: Map<String, Value>,
    /// Whether the work is done once it was called, where the model says so.
    pub stop: Option<bool>,
}

/// Why a text is no command that can be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCommand {
    /// It is an ordinary text, and no JSON object.
    Text,
    /// Its intent is this other one, or it has none.
    Intent(Option<String>),
    /// A part of it cannot be used; in words.
    Malformed(String),
}

/// The command that a text is. Strict: the text is one JSON object of that shape and nothing else,
/// alone or in one fenced block. The only intent is `CALL_TOOL`; `reasoning` and `expected` are
/// allowed and left aside; any other key makes it an ordinary text.
pub fn read_command(text: &str) -> Option<Command> {
    let written: Written = serde_json::from_str(object(text)?).ok()?;
    let Intent::CallTool = written.intent;
    let tool = written.tool;
    (!tool.is_empty()).then_some(Command { tool, args: written.args, stop: written.stop })
}

/// The command that a text must be, where nothing but commands is spoken. What is wrong with it is
/// reported, and keys that it should not have are ignored, for nothing else can be meant.
pub fn must_command(text: &str) -> Result<Command, NoCommand> {
    let object = object(text).ok_or(NoCommand::Text)?;
    let spoken: Spoken = serde_json::from_str(object).map_err(|error| match error.classify() {
        // It is JSON, and says one thing twice.
        Category::Data => NoCommand::Malformed(error.to_string()),
        Category::Io | Category::Syntax | Category::Eof => NoCommand::Text,
    })?;
    match spoken.intent {
        Value::String(intent) if intent == CALL_TOOL => {}
        Value::String(intent) => return Err(NoCommand::Intent(Some(intent))),
        Value::Null => return Err(NoCommand::Intent(None)),
        other => return Err(NoCommand::Intent(Some(other.to_string()))),
    }
    let malformed = |why: &str| Err(NoCommand::Malformed(why.to_owned()));
    let tool = match spoken.tool {
        Value::String(tool) if !tool.is_empty() => tool,
        Value::Null => return malformed("`tool` is missing"),
        _ => return malformed("`tool` is not a tool's name"),
    };
    let args = match spoken.args {
        Value::Object(args) => args,
        Value::Null => Map::new(),
        _ => return malformed("`args` is not a JSON object"),
    };
    let stop = match spoken.stop {
        Value::Bool(stop) => Some(stop),
        Value::Null => None,
        _ => return malformed("`stop` is neither true nor false"),
    };
    Ok(Command { tool, args, stop })
}

/// The part of a text that could be a command: alone, or in one fenced block.
fn object(text: &str) -> Option<&str> {
    // Most texts are none, and this is cheaper than to find out why.
    unfenced(text.trim()).filter(|text| text.starts_with('{'))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    intent: Intent,
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default, deserialize_with = "said_outright")]
    stop: Option<bool>,
    #[serde(default, rename = "reasoning")]
    _reasoning: Value,
    #[serde(default, rename = "expected")]
    _expected: Value,
}

fn said_outright<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    bool::deserialize(deserializer).map(Some)
}

/// A command in which anything may be wrong.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Spoken {
    intent: Value,
    tool: Value,
    args: Value,
    stop: Value,
}

#[derive(Deserialize)]
enum Intent {
    #[serde(rename = "CALL_TOOL")]
    CallTool,
}

/// The inside of a fenced block, or the text if there is none.
fn unfenced(text: &str) -> Option<&str> {
    let Some(fenced) = text.strip_prefix("```") else { return Some(text) };
    let (language, inner) = fenced.strip_suffix("```")?.split_once('\n')?;
    matches!(language.trim(), "" | "json").then(|| inner.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WHOLE: &str =
        r#"{"intent": "CALL_TOOL", "tool": "add", "args": {"a": 1}, "stop": false}"#;

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_command_is_read_alone_and_fenced() {
        let tool = "add".to_owned();
        let command = Some(Command { tool, args: args(json!({"a": 1})), stop: Some(false) });
        assert_eq!(read_command(WHOLE), command);
        assert_eq!(read_command(&format!("\n  {WHOLE}\n")), command);
        assert_eq!(read_command(&format!("```json\n{WHOLE}\n```")), command);
        assert_eq!(read_command(&format!("```\n{WHOLE}```\n")), command);
    }

    #[test]
    fn missing_command_members_get_their_defaults() {
        let command = read_command(r#"{"intent": "CALL_TOOL", "tool": "events.publish"}"#).unwrap();
        assert_eq!(command.args, Map::new());
        assert_eq!(command.stop, None);
        let told = r#"{"intent":"CALL_TOOL","tool":"t","args":{},"stop":true,"reasoning":"why"}"#;
        assert_eq!(read_command(told).unwrap().stop, Some(true));
    }

    #[test]
    fn anything_else_is_a_text() {
        for text in [
            "",
            "{}",
            "hello",
            "[1]",
            r#"{"intent": "STOP", "tool": "add"}"#,
            r#"{"intent": "CALL_TOOL"}"#,
            r#"{"intent": "CALL_TOOL", "tool": ""}"#,
            r#"{"intent": "CALL_TOOL", "tool": 1}"#,
            r#"{"intent": "CALL_TOOL", "tool": "add", "args": [1]}"#,
            r#"{"intent": "CALL_TOOL", "tool": "add", "args": "{}"}"#,
            r#"{"intent": "CALL_TOOL", "tool": "add", "stop": "no"}"#,
            r#"{"intent": "CALL_TOOL", "tool": "add", "stop": null}"#,
            r#"{"intent": "CALL_TOOL", "tool": "add", "tool": "sub"}"#,
            r#"{"intent": "CALL_TOOL", "tool": "add", "then": 1}"#,
            "```python\n{\"intent\": \"CALL_TOOL\", \"tool\": \"add\"}\n```",
        ] {
            assert_eq!(read_command(text), None, "{text}");
        }
        assert_eq!(read_command(&format!("I will do this: {WHOLE}")), None);
        assert_eq!(read_command(&format!("{WHOLE} {WHOLE}")), None);
        assert_eq!(read_command(&format!("```json\n{WHOLE}\n```\nand more")), None);
        assert_eq!(read_command(&format!("```json\n{WHOLE}")), None);
    }

    #[test]
    fn an_agent_of_commands_is_told_what_is_wrong_with_a_command() {
        let command = must_command(&format!("```json\n{WHOLE}\n```")).unwrap();
        assert_eq!((command.tool.as_str(), command.stop), ("add", Some(false)));
        let loose = r#"{"intent": "CALL_TOOL", "tool": "add", "args": null, "then": 1}"#;
        let command = Command { tool: "add".to_owned(), args: Map::new(), stop: None };
        assert_eq!(must_command(loose), Ok(command));
        let intent = |word: Option<&str>| NoCommand::Intent(word.map(str::to_owned));
        let malformed = |why: &str| NoCommand::Malformed(why.to_owned());
        for (text, why) in [
            ("", NoCommand::Text),
            ("I am done.", NoCommand::Text),
            ("[1]", NoCommand::Text),
            ("{no JSON}", NoCommand::Text),
            ("{\"intent\": \"CALL_TO", NoCommand::Text),
            ("{}", intent(None)),
            (r#"{"tool": "add"}"#, intent(None)),
            (r#"{"intent": "ESCALATE", "tool": "add"}"#, intent(Some("ESCALATE"))),
            (r#"{"intent": 7}"#, intent(Some("7"))),
            (r#"{"intent": "CALL_TOOL"}"#, malformed("`tool` is missing")),
            (r#"{"intent": "CALL_TOOL", "tool": ""}"#, malformed("`tool` is not a tool's name")),
            (
                r#"{"intent": "CALL_TOOL", "tool": "add", "args": "{}"}"#,
                malformed("`args` is not a JSON object"),
            ),
            (
                r#"{"intent": "CALL_TOOL", "tool": "add", "stop": "no"}"#,
                malformed("`stop` is neither true nor false"),
            ),
        ] {
            assert_eq!(must_command(text), Err(why), "{text}");
        }
        let twice = r#"{"intent": "CALL_TOOL", "tool": "add", "tool": "sub"}"#;
        assert!(matches!(must_command(twice), Err(NoCommand::Malformed(_))));
    }
}
