//! Commands: a tool call that a model writes as JSON text, `{intent, tool, args, stop}`. Any model
//! can do this, one without tool calls of its own included.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What a model orders in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The tool, by the name that the model said.
    pub tool: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// Whether the work is done once it was called; so it is unless the model says otherwise.
    pub stop: bool,
}

/// The command that a text is. Strict: the text is one JSON object of that shape and nothing else,
/// alone or in one fenced block. The only intent is `CALL_TOOL`; `reasoning` and `expected` are
/// allowed and left aside; any other key makes it an ordinary text.
pub fn read_command(text: &str) -> Option<Command> {
    let text = unfenced(text.trim())?;
    // Most texts are none, and this is cheaper than to find out why.
    if !text.starts_with('{') {
        return None;
    }
    let written: Written = serde_json::from_str(text).ok()?;
    let Intent::CallTool = written.intent;
    let tool = written.tool;
    (!tool.is_empty()).then_some(Command { tool, args: written.args, stop: written.stop })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    intent: Intent,
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default = "stops")]
    stop: bool,
    #[serde(default, rename = "reasoning")]
    _reasoning: Value,
    #[serde(default, rename = "expected")]
    _expected: Value,
}

#[derive(Deserialize)]
enum Intent {
    #[serde(rename = "CALL_TOOL")]
    CallTool,
}

fn stops() -> bool {
    true
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
        let command = Some(Command { tool, args: args(json!({"a": 1})), stop: false });
        assert_eq!(read_command(WHOLE), command);
        assert_eq!(read_command(&format!("\n  {WHOLE}\n")), command);
        assert_eq!(read_command(&format!("```json\n{WHOLE}\n```")), command);
        assert_eq!(read_command(&format!("```\n{WHOLE}```\n")), command);
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let command = read_command(r#"{"intent": "CALL_TOOL", "tool": "events.publish"}"#).unwrap();
        assert_eq!(command.args, Map::new());
        assert!(command.stop);
        let told = r#"{"intent":"CALL_TOOL","tool":"t","args":{},"stop":true,"reasoning":"why"}"#;
        assert!(read_command(told).is_some());
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
}
