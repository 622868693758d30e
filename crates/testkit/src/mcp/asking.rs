//! Tools that need something of their caller first: a form, a turn of its model, its folders. Each
//! is written once; the handshake versions ask the client for it, 2026-07-28 answers
//! `input_required` and is called again.

use super::fixture::{Called, Fixture, content, pause, taking, text};
use kernel::contracts::{Clock, Tool};
use kernel::tool::call::{Call, Given, Told, ToolError, ToolOutput, Want, Wants};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long the tool that streams works before it asks.
const PAUSE_MS: u64 = 20;

/// All of them.
pub(crate) fn all(clock: &Arc<dyn Clock>) -> Vec<Arc<dyn Tool>> {
    vec![
        sampling(),
        elicitation(),
        form("test_elicitation_sep1034_defaults", "Asks with a default in each field.", defaults()),
        form("test_elicitation_sep1330_enums", "Asks with each kind of choice.", choices()),
        streaming_elicitation(clock.clone()),
        missing_capability(),
        wanting(
            "test_input_required_result_elicitation",
            "Asks for a name and greets.",
            "user_name",
            name_form("What is your name?"),
            |given| text(format!("Hello, {}!", field(given, "user_name", "name"))),
        ),
        wanting(
            "test_input_required_result_sampling",
            "Asks the model of its caller for the capital of France.",
            "capital_question",
            sample("What is the capital of France?", 100),
            |given| text(format!("The model says: {}", said(given, "capital_question"))),
        ),
        wanting(
            "test_input_required_result_list_roots",
            "Asks for the folders of its caller.",
            "client_roots",
            Want::Roots,
            |given| text(format!("Folders: {}", roots(given, "client_roots").join(", "))),
        ),
        stateful("test_input_required_result_request_state"),
        stateful("test_input_required_result_tampered_state"),
        multiple_inputs(),
        multi_round(),
        capabilities(),
    ]
}

/// A tool that wants one thing and then answers with it.
fn wanting(
    name: &str,
    description: &str,
    key: &'static str,
    want: Want,
    answer: impl Fn(&Given) -> Called + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    Fixture::at_once(content(name, description), move |call| {
        if call.given.inputs.contains_key(key) {
            return answer(&call.given);
        }
        wants([(key, want.clone())], Value::Null)
    })
}

fn sampling() -> Arc<dyn Tool> {
    let spec = content("test_sampling", "Hands a prompt to the model of its caller.");
    Fixture::at_once(taking(spec, one_text("prompt")), |call| {
        if call.given.inputs.contains_key("turn") {
            return text(format!("LLM response: {}", said(&call.given, "turn")));
        }
        let prompt = call.arguments["prompt"].as_str().unwrap_or_default();
        wants([("turn", sample(prompt, 100))], Value::Null)
    })
}

fn elicitation() -> Arc<dyn Tool> {
    let spec = content("test_elicitation", "Asks a person for a name and an address.");
    Fixture::at_once(taking(spec, one_text("message")), |call| {
        if let Some(answer) = call.given.inputs.get("user") {
            let (action, content) = (&answer["action"], &answer["content"]);
            let action = action.as_str().unwrap_or_default();
            return text(format!("User response: <action: {action}, content: {content}>"));
        }
        let message = call.arguments["message"].as_str().unwrap_or_default();
        let schema = json!({
            "type": "object",
            "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            },
            "required": ["username", "email"],
        });
        wants([("user", asked(message, schema))], Value::Null)
    })
}

/// A tool that shows a form and answers with the outcome.
fn form(name: &str, description: &str, schema: Value) -> Arc<dyn Tool> {
    let want = asked("Please fill in the form", schema);
    wanting(name, description, "form", want, |given| {
        let answer = &given.inputs["form"];
        let action = answer["action"].as_str().unwrap_or_default();
        text(format!("Elicitation completed: action={action}, content={}", answer["content"]))
    })
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": {"type": "boolean", "default": true},
        },
        "required": [],
    })
}

fn choices() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = |word: &str| {
        json!([
            {"const": "value1", "title": format!("First {word}")},
            {"const": "value2", "title": format!("Second {word}")},
            {"const": "value3", "title": format!("Third {word}")},
        ])
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
        },
        "required": [],
    })
}

/// Begins to work, so that there may be a stream, and only then asks.
fn streaming_elicitation(clock: Arc<dyn Clock>) -> Arc<dyn Tool> {
    let spec = content("test_streaming_elicitation", "Tells its progress, then asks for a name.");
    Fixture::working(spec, move |_, call: Call| {
        let clock = clock.clone();
        async move {
            if call.given.inputs.contains_key("user_name") {
                return text(format!("Hello, {}!", field(&call.given, "user_name", "name")));
            }
            let message = Some("about to ask".to_owned());
            call.teller.tell(Told::Progress { progress: 1.0, total: Some(2.0), message });
            pause(clock.as_ref(), PAUSE_MS).await;
            wants([("user_name", name_form("What is your name?"))], Value::Null)
        }
    })
}

/// Cannot do without a model of its caller's.
fn missing_capability() -> Arc<dyn Tool> {
    wanting(
        "test_missing_capability",
        "Needs the model of its caller.",
        "turn",
        sample("Say anything", 10),
        |given| text(format!("The model says: {}", said(given, "turn"))),
    )
}

/// Looks whether the state that it handed out comes back to it.
fn stateful(name: &'static str) -> Arc<dyn Tool> {
    let state = json!({"handedOutBy": name});
    Fixture::at_once(content(name, "Asks for a confirmation and remembers it."), move |call| {
        if !call.given.inputs.contains_key("confirm") {
            let schema = json!({
                "type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
            });
            return wants([("confirm", asked("Please confirm", schema))], state.clone());
        }
        if call.given.state == state {
            return text("state-ok");
        }
        let message = format!("the state `{}` is not the one handed out", call.given.state);
        Err(ToolError::failed("StateLost", message))
    })
}

fn multiple_inputs() -> Arc<dyn Tool> {
    let spec = content(
        "test_input_required_result_multiple_inputs",
        "Asks for a name, a greeting of the model and the folders, all at once.",
    );
    Fixture::at_once(spec, |call| {
        let given = &call.given;
        let keys = ["user_name", "greeting", "client_roots"];
        if keys.iter().all(|key| given.inputs.contains_key(*key)) {
            let (name, greeting) = (field(given, "user_name", "name"), said(given, "greeting"));
            let folders = roots(given, "client_roots").len();
            return text(format!("{greeting} {name} works in {folders} folders."));
        }
        wants(
            [
                ("user_name", name_form("What is your name?")),
                ("greeting", sample("Generate a greeting", 50)),
                ("client_roots", Want::Roots),
            ],
            json!({"asked": keys}),
        )
    })
}

fn multi_round() -> Arc<dyn Tool> {
    let spec = content(
        "test_input_required_result_multi_round",
        "Asks for a name, and after that for a colour.",
    );
    Fixture::at_once(spec, |call| {
        let given = &call.given;
        if !given.inputs.contains_key("step1") {
            return wants(
                [("step1", name_form("Step 1: What is your name?"))],
                json!({"round": 1}),
            );
        }
        if !given.inputs.contains_key("step2") {
            let schema = json!({
                "type": "object", "properties": {"color": {"type": "string"}},
                "required": ["color"],
            });
            let want = asked("Step 2: What is your favorite color?", schema);
            return wants([("step2", want)], json!({"round": 2}));
        }
        let (name, color) = (field(given, "step1", "name"), field(given, "step2", "color"));
        text(format!("{name} likes {color}."))
    })
}

/// Takes whichever of the two its caller can give; what it cannot is not asked for.
fn capabilities() -> Arc<dyn Tool> {
    let spec = content(
        "test_input_required_result_capabilities",
        "Asks a person or a model, whichever there is.",
    );
    Fixture::at_once(spec, |call| {
        let given = &call.given;
        if given.inputs.contains_key("turn") {
            return text(format!("The model says: {}", said(given, "turn")));
        }
        if given.inputs.contains_key("user_name") {
            return text(format!("Hello, {}!", field(given, "user_name", "name")));
        }
        wants(
            [("user_name", name_form("What is your name?")), ("turn", sample("Say anything", 10))],
            Value::Null,
        )
    })
}

fn wants<const N: usize>(inputs: [(&str, Want); N], state: Value) -> Called {
    let inputs: BTreeMap<String, Want> =
        inputs.into_iter().map(|(key, want)| (key.to_owned(), want)).collect();
    Ok(ToolOutput::Wants(Box::new(Wants { inputs, state })))
}

fn asked(message: &str, schema: Value) -> Want {
    Want::Form { message: message.to_owned(), schema: Arc::new(schema) }
}

fn name_form(message: &str) -> Want {
    let schema = json!({
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
    });
    asked(message, schema)
}

fn sample(prompt: &str, tokens_max: u64) -> Want {
    let content = json!({"type": "text", "text": prompt});
    let messages = json!([{"role": "user", "content": content}]);
    Want::Sample { request: Arc::new(json!({"messages": messages, "maxTokens": tokens_max})) }
}

fn one_text(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

/// A field of a form, or what became of the form.
fn field(given: &Given, key: &str, name: &str) -> String {
    let answer = given.inputs.get(key).unwrap_or(&Value::Null);
    let filled = answer["content"][name].as_str().or(answer["action"].as_str());
    filled.unwrap_or("nobody").to_owned()
}

/// What a model said; newer clients may answer several blocks.
fn said(given: &Given, key: &str) -> String {
    let content = given.inputs.get(key).map_or(&Value::Null, |turn| &turn["content"]);
    let said = content["text"].as_str().or(content[0]["text"].as_str());
    said.unwrap_or("nothing").to_owned()
}

fn roots(given: &Given, key: &str) -> Vec<String> {
    let listed = given.inputs.get(key).and_then(|answer| answer["roots"].as_array());
    let uri = |root: &Value| root["uri"].as_str().map(str::to_owned);
    listed.into_iter().flatten().filter_map(uri).collect()
}
