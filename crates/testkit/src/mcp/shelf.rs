//! A shelf of prompts and resources, with one of each kind of content.

use super::samples::PNG;
use futures::future::BoxFuture;
use kernel::contracts::shelf::{
    Changes, Completed, Completing, Completion, Find, PromptArgument, PromptSpec, Prompting,
    ResourceSpec, Shelf, TemplateSpec,
};
use kernel::contracts::{Page, Paged};
use kernel::tool::call::{Caller, Given, ToolOutput, Want, Wants};
use kernel::values::fault::Fault;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::{pending, ready};
use std::sync::Arc;
use tokio::sync::watch;

const STATIC_TEXT: &str = "test://static-text";
const STATIC_BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";
const TEMPLATE: &str = "test://template/{id}/data";

const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";

/// Values that the completions are taken from.
const WORDS: [&str; 5] = ["paris", "park", "party", "test", "test value"];
const IDS: [&str; 3] = ["1", "12", "123"];

/// The fixtures' shelf.
pub(crate) struct FixtureShelf {
    prompts: Vec<Arc<PromptSpec>>,
    resources: Vec<ResourceSpec>,
    /// How often the watched resource was changed.
    touched: Arc<watch::Sender<u64>>,
}

impl FixtureShelf {
    /// A shelf whose watched resource changes with this count.
    pub(crate) fn new(touched: Arc<watch::Sender<u64>>) -> Self {
        Self { prompts: prompts(), resources: resources(), touched }
    }
}

impl Shelf for FixtureShelf {
    fn prompts(&self, _caller: &Caller) -> Vec<Arc<PromptSpec>> {
        self.prompts.clone()
    }

    fn prompt<'a>(
        &'a self,
        _caller: &'a Caller,
        prompting: &'a Prompting<'a>,
    ) -> Find<'a, ToolOutput> {
        let Prompting { name, arguments, given, .. } = *prompting;
        let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let output = match name {
            "test_simple_prompt" => {
                Some(messages(json!([told("This is a simple prompt for testing.")])))
            }
            WITH_ARGUMENTS => {
                let (arg1, arg2) = (argument("arg1"), argument("arg2"));
                let line = format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'");
                Some(messages(json!([told(&line)])))
            }
            "test_prompt_with_embedded_resource" => {
                let resource = json!({
                    "uri": argument("resourceUri"),
                    "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                });
                Some(messages(json!([
                    {"role": "user", "content": {"type": "resource", "resource": resource}},
                    told("Please process the embedded resource above."),
                ])))
            }
            "test_prompt_with_image" => {
                let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
                Some(messages(json!([
                    {"role": "user", "content": image},
                    told("Please analyze the image above."),
                ])))
            }
            "test_input_required_result_prompt" => Some(with_context(given)),
            _ => None,
        };
        Box::pin(ready(Ok(output)))
    }

    fn resources<'a>(
        &'a self,
        _caller: &'a Caller,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Paged<ResourceSpec>, Fault>> {
        let read = |cursor: &String| cursor.parse::<usize>();
        let paged = match page.cursor.as_ref().map(read).transpose() {
            Ok(from) => Ok(self.page(from.unwrap_or(0), page.limit.max(1))),
            Err(_) => Err(Fault::new("WrongRequest", "the cursor is not one of this shelf")),
        };
        Box::pin(ready(paged))
    }

    fn templates(&self, _caller: &Caller) -> Vec<TemplateSpec> {
        vec![TemplateSpec {
            uri_template: TEMPLATE.to_owned(),
            name: "template".to_owned(),
            title: None,
            description: Some("Data of an id.".to_owned()),
            mime_type: Some("application/json".to_owned()),
            listed: None,
        }]
    }

    fn read<'a>(&'a self, _caller: &'a Caller, uri: &'a str) -> Find<'a, Vec<Value>> {
        let content = match uri {
            STATIC_TEXT => Some(json!({
                "uri": uri,
                "mimeType": "text/plain",
                "text": "This is the content of the static text resource.",
            })),
            STATIC_BINARY => Some(json!({"uri": uri, "mimeType": "image/png", "blob": PNG})),
            WATCHED => {
                let times = *self.touched.borrow();
                let text = format!("This resource was changed {times} times.");
                Some(json!({"uri": uri, "mimeType": "text/plain", "text": text}))
            }
            _ => template_id(uri).map(|id| {
                let data = format!("Data for ID: {id}");
                let text = json!({"id": id, "templateTest": true, "data": data}).to_string();
                json!({"uri": uri, "mimeType": "application/json", "text": text})
            }),
        };
        Box::pin(ready(Ok(content.map(|content| vec![content]))))
    }

    fn changes<'a>(&'a self, _caller: &'a Caller, uri: &'a str) -> Find<'a, Box<dyn Changes>> {
        let changes: Option<Box<dyn Changes>> = match uri {
            WATCHED => Some(Box::new(Touches(self.touched.subscribe()))),
            STATIC_TEXT | STATIC_BINARY => Some(Box::new(Never)),
            _ => template_id(uri).map(|_| Box::new(Never) as Box<dyn Changes>),
        };
        Box::pin(ready(Ok(changes)))
    }

    fn complete<'a>(
        &'a self,
        _caller: &'a Caller,
        completion: &'a Completion<'a>,
    ) -> Find<'a, Completed> {
        let values: Option<&[&str]> = match (&completion.of, completion.argument) {
            (Completing::Prompt(WITH_ARGUMENTS), "arg1" | "arg2") => Some(&WORDS),
            (Completing::Template(TEMPLATE), "id") => Some(&IDS),
            (Completing::Prompt(name), _) if self.has_prompt(name) => Some(&[]),
            _ => None,
        };
        let fits = |value: &&&str| value.starts_with(completion.typed);
        let found = values.map(|values| {
            values.iter().filter(fits).map(|value| (*value).to_owned()).collect::<Vec<String>>()
        });
        Box::pin(ready(Ok(found.map(Completed::from))))
    }
}

impl FixtureShelf {
    fn has_prompt(&self, name: &str) -> bool {
        self.prompts.iter().any(|prompt| prompt.name == name)
    }

    fn page(&self, from: usize, limit: usize) -> Paged<ResourceSpec> {
        let items: Vec<ResourceSpec> =
            self.resources.iter().skip(from).take(limit).cloned().collect();
        let end = from.saturating_add(items.len());
        let next_cursor = (end < self.resources.len()).then(|| end.to_string());
        Paged { items, next_cursor }
    }
}

/// Wakes with each touch.
struct Touches(watch::Receiver<u64>);

impl Changes for Touches {
    fn next(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The sender lives in the shelf; without it nothing changes any more.
            if self.0.changed().await.is_err() {
                pending::<()>().await;
            }
        })
    }
}

/// What does not change.
struct Never;

impl Changes for Never {
    fn next(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }
}

fn prompts() -> Vec<Arc<PromptSpec>> {
    let argument = |name: &str, description: &str| PromptArgument {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        required: true,
    };
    let prompt = |name: &str, description: &str, arguments: Vec<PromptArgument>| {
        Arc::new(PromptSpec {
            name: name.to_owned(),
            title: None,
            description: Some(description.to_owned()),
            arguments,
            listed: None,
        })
    };
    vec![
        prompt("test_simple_prompt", "A prompt without arguments.", Vec::new()),
        prompt(
            WITH_ARGUMENTS,
            "A prompt that is filled with two arguments.",
            vec![argument("arg1", "First test argument"), argument("arg2", "Second test argument")],
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            "A prompt with a resource inside.",
            vec![argument("resourceUri", "URI of the resource to embed")],
        ),
        prompt("test_prompt_with_image", "A prompt with a picture.", Vec::new()),
        prompt("test_input_required_result_prompt", "A prompt that asks first.", Vec::new()),
    ]
}

fn resources() -> Vec<ResourceSpec> {
    let resource = |uri: &str, name: &str, description: &str, mime_type: &str| ResourceSpec {
        uri: uri.to_owned(),
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        mime_type: Some(mime_type.to_owned()),
        bytes: None,
        listed: None,
    };
    vec![
        resource(STATIC_TEXT, "static-text", "A text that does not change.", "text/plain"),
        resource(STATIC_BINARY, "static-binary", "A picture that does not change.", "image/png"),
        resource(WATCHED, "watched-resource", "A text that changes when touched.", "text/plain"),
    ]
}

/// The id in a URI of the template.
fn template_id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

fn told(text: &str) -> Value {
    json!({"role": "user", "content": {"type": "text", "text": text}})
}

fn messages(messages: Value) -> ToolOutput {
    ToolOutput::Value(json!({"messages": messages}))
}

/// Asks what the prompt is about, then says so.
fn with_context(given: &Given) -> ToolOutput {
    let Some(answer) = given.inputs.get("user_context") else {
        let schema = json!({
            "type": "object", "properties": {"context": {"type": "string"}},
            "required": ["context"],
        });
        let message = "What context should the prompt use?".to_owned();
        let want = Want::Form { message, schema: Arc::new(schema) };
        let inputs = BTreeMap::from([("user_context".to_owned(), want)]);
        return ToolOutput::Wants(Box::new(Wants { inputs, state: Value::Null }));
    };
    let context = answer["content"]["context"].as_str().unwrap_or("no context");
    messages(json!([told(&format!("Use this context: {context}"))]))
}
