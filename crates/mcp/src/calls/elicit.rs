//! Asks as elicitations and back: what a client shows its person for each kind of ask, and which
//! reply the person's answer is. A form is an object of plain fields, as MCP has it; whatever is
//! answered is checked against the whole of what was asked.

use crate::client::{Client, Version};
use kernel::ask::{Ask, AskBody, AskedCall, CallDecision, FixAction, Question, Reply};
use kernel::tool::call::CallProgress;
use kernel::values::fault::Fault;
use kernel::values::visible::{exposed, exposed_json};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The method.
pub(crate) const METHOD: &str = "elicitation/create";

/// What is said for a person who says no and nothing more.
const NO_WORDS: &str = "the person at the client did not approve it";

/// What a person said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ElicitOutcome {
    /// A reply to the ask.
    Reply(Reply),
    /// Nothing that decides it: the form was dismissed, or the ask cannot be declined.
    Nothing,
}

/// Why an answer is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ElicitError {
    /// The client did not answer as MCP wants it.
    Malformed(String),
    /// The person may try again.
    Misfit(String),
}

pub(crate) fn shows_forms(client: &Client) -> bool {
    client.can.form && client.version >= Version::June2025
}

pub(crate) fn opens_pages(client: &Client) -> bool {
    client.can.page && client.version >= Version::November2025
}

/// What the client is asked for an ask; none where it cannot show it. A call whose arguments have
/// more characters than these is not decided by a form.
pub(crate) fn request(ask: &Ask, client: &Client, shown_chars_max: usize) -> Option<Value> {
    if let AskBody::Authorize { message, url } = &ask.body {
        return opens_pages(client)
            .then(|| page(client.version, message, url, &ask.id.to_string()));
    }
    if !shows_forms(client) {
        return None;
    }
    match &ask.body {
        AskBody::Clarify { message, questions } if questions.len() < 2 => Some(question(message)),
        AskBody::Clarify { questions, .. } => Some(several(questions)),
        AskBody::Fill { message, schema } => {
            Some(form(message, plain_fields(schema, client.version)?))
        }
        AskBody::Approve { calls } if shows_all(&ask.body, shown_chars_max) => {
            Some(approval(calls))
        }
        AskBody::Approve { calls } => Some(elsewhere(ask, calls)),
        AskBody::Fix { fault, call, how, actions, plans: _ } => {
            Some(fixing(fault, *how, call.as_ref(), actions))
        }
        AskBody::Authorize { .. } => None,
    }
}

/// The same, and for a form that is more than plain fields one field that takes its JSON as text:
/// where the alternative is that no one is asked.
pub(crate) fn request_or_text(ask: &Ask, client: &Client, shown_chars_max: usize) -> Option<Value> {
    request(ask, client, shown_chars_max).or_else(|| match &ask.body {
        AskBody::Fill { message, schema } if shows_forms(client) => {
            let message = format!("{message}\n\nAnswer with JSON that fits this schema:\n{schema}");
            Some(form(&message, one_text("JSON")))
        }
        _ => None,
    })
}

/// The parameters once more, with what was wrong with the last answer.
pub(crate) fn again(mut params: Value, wrong: &str) -> Value {
    let message = params["message"].as_str().unwrap_or_default();
    params["message"] = Value::String(format!("That did not fit: {wrong}\n\n{message}"));
    params
}

/// The parameters of a page to open. The versions with a handshake want an id for it.
pub(crate) fn page(version: Version, message: &str, url: &str, id: &str) -> Value {
    let mut params = json!({"mode": "url", "message": message, "url": url});
    if !version.is_modern() {
        params["elicitationId"] = Value::from(id);
    }
    params
}

/// The parameters of a form.
pub(crate) fn form(message: &str, schema: Value) -> Value {
    json!({"message": message, "requestedSchema": schema})
}

/// What the answer to an ask says. The reply has the right kind; whether it fits is for the engine.
/// Where the form did not show all that is asked, no answer decides it.
pub(crate) fn read(
    ask: &Ask,
    answer: &Value,
    version: Version,
    shown_chars_max: usize,
) -> Result<ElicitOutcome, ElicitError> {
    match answer["action"].as_str() {
        Some("accept" | "decline") if !shows_all(&ask.body, shown_chars_max) => {
            Ok(ElicitOutcome::Nothing)
        }
        Some("accept") => {
            accepted(&ask.body, &answer["content"], version).map(ElicitOutcome::Reply)
        }
        Some("decline") => Ok(declined(&ask.body)),
        Some("cancel") => Ok(ElicitOutcome::Nothing),
        _ => Err(ElicitError::Malformed(format!(
            "the answer to `{}` needs `action`: `accept`, `decline` or `cancel`",
            ask.id
        ))),
    }
}

fn question(message: &str) -> Value {
    form(message, one_text("Answer"))
}

/// One field for each question of an agent.
fn several(questions: &[Question]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (index, asked) in questions.iter().enumerate() {
        let mut field = json!({"type": "string", "title": asked.question});
        if !asked.context.is_empty() {
            field["description"] = Value::from(asked.context.as_str());
        }
        properties.insert(answer_key(index), field);
        required.push(answer_key(index));
    }
    let texts: Vec<&str> = questions.iter().map(|asked| asked.question.as_str()).collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    form(&texts.join("\n"), schema)
}

fn answer_key(index: usize) -> String {
    format!("answer_{}", index + 1)
}

/// The answers to an agent's questions, by their calls.
fn answers(questions: &[Question], content: &Map<String, Value>) -> Result<Value, ElicitError> {
    let mut answers = Map::new();
    for (index, asked) in questions.iter().enumerate() {
        let text = match questions.len() {
            1 => text_of(content, "answer")?,
            _ => text_of(content, &answer_key(index))?,
        };
        answers.insert(asked.call_id.to_string(), Value::from(text));
    }
    Ok(Value::Object(answers))
}

fn one_text(title: &str) -> Value {
    json!({
        "type": "object",
        "properties": {"answer": {"type": "string", "title": title}},
        "required": ["answer"],
    })
}

fn approval(calls: &[AskedCall]) -> Value {
    let mut message = String::new();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let name = approve_key(index, calls.len());
        let tool = exposed(call.tool.as_str());
        let arguments = arguments(call);
        message.push_str(&format!("May `{tool}` be called with\n{arguments}\n\n"));
        let title = format!("Call `{tool}`");
        properties.insert(name.clone(), json!({"type": "boolean", "title": title}));
        required.push(name);
    }
    properties.insert(
        "feedback".to_owned(),
        json!({"type": "string", "title": "Feedback", "description": "Why, if you want to say"}),
    );
    let schema = json!({"type": "object", "properties": properties, "required": required});
    form(message.trim_end(), schema)
}

/// The arguments of a call as a person sees them: nothing in them is hidden.
fn arguments(call: &AskedCall) -> String {
    exposed_json(&serde_json::to_string_pretty(&*call.arguments).unwrap_or_default())
}

/// Whether a form can show all that would be approved by it.
fn shows_all(body: &AskBody, shown_chars_max: usize) -> bool {
    let fits = |call: &AskedCall| arguments(call).chars().nth(shown_chars_max).is_none();
    match body {
        AskBody::Approve { calls } => calls.iter().all(fits),
        AskBody::Clarify { .. }
        | AskBody::Fill { .. }
        | AskBody::Fix { .. }
        | AskBody::Authorize { .. } => true,
    }
}

/// A form that decides nothing: a person approves only what they have seen, and here they cannot
/// see all of it.
fn elsewhere(ask: &Ask, calls: &[AskedCall]) -> Value {
    let tools: Vec<String> =
        calls.iter().map(|call| format!("`{}`", exposed(call.tool.as_str()))).collect();
    let tools = tools.join(", ");
    let id = ask.id;
    let message = format!(
        "A call of {tools} waits for approval. Its arguments are too long to show here, so it \
         cannot be decided here, whatever you answer. `waypost inbox show {id}` or `GET \
         /api/v1/asks/{id}` shows all of it; decide it there."
    );
    form(&message, json!({"type": "object", "properties": {}}))
}

/// `approve`, or `approve_1` and so on where several calls are asked about.
fn approve_key(index: usize, calls: usize) -> String {
    if calls == 1 { "approve".to_owned() } else { format!("approve_{}", index + 1) }
}

fn fixing(
    fault: &Fault,
    how: CallProgress,
    call: Option<&AskedCall>,
    actions: &[FixAction],
) -> Value {
    let is_unknown = how == CallProgress::Unknown;
    let what = match call {
        Some(call) if is_unknown => format!("outcome unknown: `{}`", exposed(call.tool.as_str())),
        Some(call) => format!("`{}` failed", exposed(call.tool.as_str())),
        None => "a step failed".to_owned(),
    };
    let mut message = format!("{what}: {}", exposed(&fault.to_string()));
    if is_unknown {
        message.push_str(
            "\nCheck the other system first: `settle` if it happened, `retry` if it did not, \
             else `abort`.",
        );
    }
    // `edit` needs the whole arguments as an object, which no form can hold, and `correct` a plan.
    let elsewhere = [FixAction::Edit, FixAction::Correct, FixAction::Propose];
    let offered: Vec<&FixAction> =
        actions.iter().filter(|action| !elsewhere.contains(action)).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "title": "What now?", "enum": offered},
            "output": {
                "type": "string",
                "title": "Output",
                "description": "JSON: what it answered (`settle`) or what to go on with (`skip`)",
            },
        },
        "required": ["action"],
    });
    form(&message, schema)
}

fn declined(body: &AskBody) -> ElicitOutcome {
    match body {
        AskBody::Clarify { .. } => ElicitOutcome::Reply(Reply::Clarify { answer: None }),
        AskBody::Fill { .. } => ElicitOutcome::Reply(Reply::Fill { content: None }),
        AskBody::Authorize { .. } => ElicitOutcome::Reply(Reply::Authorize { done: false }),
        AskBody::Approve { calls } => {
            let decide = |call: &AskedCall| CallDecision {
                call_id: call.call_id,
                approve: false,
                feedback: Some("the person at the client declined".to_owned()),
                arguments: None,
            };
            ElicitOutcome::Reply(Reply::Approve { decisions: calls.iter().map(decide).collect() })
        }
        // A failed step stays one until someone says what to do about it.
        AskBody::Fix { .. } => ElicitOutcome::Nothing,
    }
}

fn accepted(body: &AskBody, content: &Value, version: Version) -> Result<Reply, ElicitError> {
    if let AskBody::Authorize { .. } = body {
        return Ok(Reply::Authorize { done: true });
    }
    let Some(content) = content.as_object() else {
        return Err(misfit("`content` must be an object with the fields of the form"));
    };
    match body {
        AskBody::Clarify { questions, .. } => {
            let answer = match questions.as_slice() {
                [] => Value::from(text_of(content, "answer")?),
                questions => answers(questions, content)?,
            };
            Ok(Reply::Clarify { answer: Some(answer) })
        }
        AskBody::Fill { schema, .. } => {
            let filled = match plain_fields(schema, version) {
                Some(_) => Value::Object(content.clone()),
                None => json_in(content, "answer")?.unwrap_or(Value::Null),
            };
            Ok(Reply::Fill { content: Some(filled) })
        }
        AskBody::Approve { calls } => decisions(calls, content),
        AskBody::Fix { .. } => {
            let action = text_of(content, "action")?;
            let action = serde_json::from_value::<FixAction>(Value::from(action))
                .map_err(|_| misfit(format!("there is no action `{action}`")))?;
            let output = json_in(content, "output")?;
            Ok(Reply::Fix { action, arguments: None, output, plan_id: None })
        }
        AskBody::Authorize { .. } => Ok(Reply::Authorize { done: true }),
    }
}

fn decisions(calls: &[AskedCall], content: &Map<String, Value>) -> Result<Reply, ElicitError> {
    let feedback = content.get("feedback").and_then(Value::as_str);
    let feedback = feedback.filter(|words| !words.trim().is_empty());
    let mut decisions = Vec::with_capacity(calls.len());
    for (index, call) in calls.iter().enumerate() {
        let key = approve_key(index, calls.len());
        let approve = content.get(&key).and_then(Value::as_bool);
        let approve = approve.ok_or_else(|| misfit(format!("`{key}` must be true or false")))?;
        // An agent whose call is rejected must get a reason.
        let words = feedback.or((!approve).then_some(NO_WORDS));
        decisions.push(CallDecision {
            call_id: call.call_id,
            approve,
            feedback: words.map(str::to_owned),
            arguments: None,
        });
    }
    Ok(Reply::Approve { decisions })
}

fn text_of<'a>(content: &'a Map<String, Value>, key: &str) -> Result<&'a str, ElicitError> {
    let text = content.get(key).and_then(Value::as_str);
    text.ok_or_else(|| misfit(format!("`{key}` must be a text")))
}

/// The JSON in a text field; clients send an empty text for a field that was left empty.
fn json_in(content: &Map<String, Value>, key: &str) -> Result<Option<Value>, ElicitError> {
    if content.get(key).is_none_or(Value::is_null) {
        return Ok(None);
    }
    let text = text_of(content, key)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(text) {
        Ok(value) => Ok(Some(value)),
        Err(error) => Err(misfit(format!("`{key}` is not JSON: {error}; a text needs quotes"))),
    }
}

fn misfit(message: impl Into<String>) -> ElicitError {
    ElicitError::Misfit(message.into())
}

/// What may stand beside the fields without saying more about them than a form can show.
const BESIDE_FIELDS: [&str; 8] = [
    "type", "properties", "required", "title", "description", "additionalProperties", "$schema",
    "examples",
];

/// The schema as a form of this version: plain fields with the keywords that MCP knows. None if it
/// describes more than that. Keywords of a field that are left out still count when it is answered.
fn plain_fields(schema: &Arc<Value>, version: Version) -> Option<Value> {
    let object = schema.as_object()?;
    let known = object.keys().all(|key| BESIDE_FIELDS.contains(&key.as_str()));
    if !known || object.get("type")? != "object" {
        return None;
    }
    let mut properties = Map::new();
    for (name, property) in object.get("properties")?.as_object()? {
        properties.insert(name.clone(), plain_field(property, version)?);
    }
    let mut form = json!({"type": "object"});
    if let Some(required) = object.get("required") {
        let names = required.as_array()?;
        let shown = |name: &Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        if !names.iter().all(shown) {
            return None;
        }
        form["required"] = required.clone();
    }
    form["properties"] = Value::Object(properties);
    Some(form)
}

fn plain_field(property: &Value, version: Version) -> Option<Value> {
    let field = property.as_object()?;
    let mut shown = Map::new();
    let mut keep = |keys: &[&str]| {
        for key in keys {
            if let Some(value) = field.get(*key) {
                shown.insert((*key).to_owned(), value.clone());
            }
        }
    };
    keep(&["type", "title", "description", "default"]);
    match field.get("type")?.as_str()? {
        "boolean" => {}
        "number" | "integer" => keep(&["minimum", "maximum"]),
        "string" if field.contains_key("enum") => {
            is_texts(field.get("enum")).then(|| keep(&["enum", "enumNames"]))?;
        }
        "string" if field.contains_key("oneOf") => {
            let titled = is_titled(field.get("oneOf"));
            if version >= Version::November2025 {
                titled.then(|| keep(&["oneOf"]))?;
            } else {
                let choices = titled.then(|| field.get("oneOf")?.as_array())??;
                let column = |key: &str| choices.iter().map(|choice| choice[key].clone()).collect();
                shown.insert("enum".to_owned(), column("const"));
                shown.insert("enumNames".to_owned(), column("title"));
            }
        }
        "string" => {
            keep(&["minLength", "maxLength"]);
            let format = field.get("format").and_then(Value::as_str);
            if format.is_some_and(|format| FORMATS.contains(&format)) {
                keep(&["format"]);
            }
        }
        "array" if version >= Version::November2025 => {
            let items = field.get("items")?;
            let texts = items["type"] == "string" && is_texts(items.get("enum"));
            (texts || is_titled(items.get("anyOf"))).then(|| {
                keep(&["items", "minItems", "maxItems"]);
            })?;
        }
        _ => return None,
    }
    Some(Value::Object(shown))
}

/// The formats of texts that MCP's forms have.
const FORMATS: [&str; 4] = ["date", "date-time", "email", "uri"];

fn is_texts(values: Option<&Value>) -> bool {
    let values = values.and_then(Value::as_array);
    values.is_some_and(|values| values.iter().all(Value::is_string))
}

/// Choices with a title each: `[{const, title}]`.
fn is_titled(choices: Option<&Value>) -> bool {
    let choices = choices.and_then(Value::as_array);
    choices.is_some_and(|choices| {
        choices.iter().all(|choice| choice["const"].is_string() && choice["title"].is_string())
    })
}

#[cfg(test)]
mod tests;
