//! Answers of a scene's tools: from its lines, else the tool's own.

use kernel::tool::call::{CallProgress, InputRequired, InputResponses, ToolError, ToolOutput};
use kernel::values::fault::Fault;
use kernel::values::ids::ToolName;
use serde_json::{Value, json};

/// For how long calls are refused that a circuit breaker refuses.
const REFUSED_MS: u64 = 700;

/// As the line says: `= value`, `! how Name message` (`!~` where that is passing; `CircuitOpen` is
/// refused for [`REFUSED_MS`]), or `? {what it wants, by key}`. The state that a tool hands out is
/// the number of its round.
pub(super) fn scripted(line: &str, round: u32) -> Result<ToolOutput, ToolError> {
    if let Some(value) = line.strip_prefix("= ") {
        let value = serde_json::from_str(value).expect("tool outputs are JSON");
        return Ok(ToolOutput::Value(value));
    }
    if let Some(inputs) = line.strip_prefix("? ") {
        let inputs = serde_json::from_str(inputs).expect("what a tool wants is JSON, by key");
        return Ok(ToolOutput::Wants(Box::new(InputRequired { inputs, state: json!(round) })));
    }
    let (passing, words) = match line.strip_prefix("!~ ") {
        Some(words) => (true, words),
        None => {
            let words = line.strip_prefix("! ");
            (false, words.expect("a tool line is `= value`, `! how Name message` or `? {wants}`"))
        }
    };
    let mut words = words.splitn(3, ' ');
    let how = match words.next() {
        Some("not_sent") => CallProgress::NotSent,
        Some("unknown") => CallProgress::Unknown,
        _ => CallProgress::Failed,
    };
    let name = words.next().unwrap_or("Failed");
    let fault = Fault::new(name, words.next().unwrap_or("it failed"));
    let fault = if name == "CircuitOpen" { fault.refused_for(REFUSED_MS) } else { fault };
    let error = ToolError::new(how, fault);
    Err(if passing { error.passing() } else { error })
}

/// As the tool does by itself.
pub(super) fn natural(
    tool: &ToolName,
    arguments: &Value,
    given: &InputResponses,
) -> Result<ToolOutput, ToolError> {
    let number = |name: &str| arguments[name].as_i64().unwrap_or_default();
    Ok(ToolOutput::Value(match tool.as_str() {
        "math::add" => json!(number("a") + number("b")),
        "validate::is_positive" => json!(number("num") > 0),
        "test::always_fail" => return Err(ToolError::failed("AlwaysFails", "as told")),
        "test::echo" => arguments.clone(),
        "list_calendars" => json!({"calendars": ["primary"]}),
        "list_events" => json!({"events": []}),
        "create_event" => json!({"id": "e1", "event_details": arguments["name"]}),
        "update_event" => json!({"id": arguments["event_id"], "event_details": arguments["start"]}),
        "test::given" | "write::given" => json!(given),
        _ => json!("done"),
    }))
}
