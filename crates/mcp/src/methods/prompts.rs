//! `prompts/list` and `prompts/get`, over all shelves: the first that holds a prompt answers for
//! it. A prompt may want something of its reader first, as a tool may.

use crate::answer::{AnswerResult, Outcome};
use crate::calls::input_required::{InputOutcome, ROUNDS_MAX, Retry, abilities, given, want, what};
use crate::client::Version;
use crate::exchange::Exchange;
use crate::lists::{
    LIST_TTL_MS, ListedItem, after, cursor, failed, has_titles, joined, listed, page_of,
};
use crate::seal::SealScope;
use edge::request::params::short;
use kernel::contracts::shelf::{PromptArgument, PromptRequest, PromptSpec, Shelf};
use kernel::definition::plan::mistake::meant;
use kernel::tool::call::{InputResponses, ToolOutput};
use kernel::values::members::take;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::jsonrpc::{INTERNAL_ERROR, RpcError};

/// The name of this list in its cursors and results.
const PROMPTS: &str = "prompts";

/// `prompts/list`, by name.
pub(crate) async fn list(exchange: Exchange) -> AnswerResult {
    let after = after(&exchange, PROMPTS)?;
    let version = exchange.client.version;
    let prompts = all(&exchange);
    let max = exchange.mcp.server.limits().mcp_list_items_max;
    let (page, last) = page_of(&prompts, |spec| spec.name.as_str(), after.as_deref(), max);
    let next = last.map(|last| cursor(&exchange, PROMPTS, last));
    let items = joined(page.iter().map(|spec| shown(spec, version)));
    Ok(listed(version, PROMPTS, &items, next.as_deref(), LIST_TTL_MS))
}

/// `prompts/get`.
pub(crate) async fn get(exchange: Exchange) -> AnswerResult {
    let GetParams { name, arguments, retry } = exchange.params()?;
    let arguments = arguments.unwrap_or_default();
    if let Some((argument, _)) = arguments.iter().find(|(_, value)| !value.is_string()) {
        let argument = short(argument);
        let message = format!("argument `{argument}` of prompt `{}` must be a text", short(&name));
        return Err(RpcError::invalid_params(message));
    }
    let what = what("prompts/get", &name, &Value::Object(arguments.clone()));
    let bound = SealScope::new(&exchange.caller, what);
    let given = given(&exchange, &retry, &bound)?;
    let asked = PromptQuery { name, arguments, given, bound };
    for shelf in exchange.mcp.shelves(&exchange.caller) {
        if let Some(spec) = shelf.prompt_spec(&exchange.caller, &asked.name) {
            has_required(&spec, &asked.arguments)?;
        }
        if let Some(outcome) = filled(&exchange, shelf.as_ref(), &asked).await? {
            return Ok(outcome);
        }
    }
    Err(unknown(&exchange, &asked.name))
}

#[derive(Deserialize)]
struct GetParams {
    name: String,
    arguments: Option<Map<String, Value>>,
    #[serde(flatten)]
    retry: Retry,
}

/// What one request asks for.
struct PromptQuery {
    name: String,
    arguments: Map<String, Value>,
    given: InputResponses,
    bound: SealScope,
}

/// The prompt from this shelf, if it holds it.
async fn filled(
    exchange: &Exchange,
    shelf: &dyn Shelf,
    asked: &PromptQuery,
) -> Result<Option<Outcome>, RpcError> {
    let mut given = asked.given.clone();
    for _ in 0..ROUNDS_MAX {
        let name = asked.name.as_str();
        let arguments = &asked.arguments;
        let prompting = PromptRequest { name, arguments, given: &given, can: abilities(exchange) };
        let prompt = shelf.prompt(&exchange.caller, &prompting).await;
        let wants = match prompt.map_err(failed)? {
            None => return Ok(None),
            Some(ToolOutput::Value(prompt)) => return Ok(Some(outcome(prompt))),
            Some(ToolOutput::Blob(_)) => {
                return Err(RpcError::new(INTERNAL_ERROR, "a prompt cannot be a blob"));
            }
            Some(ToolOutput::Wants(wants)) => wants,
        };
        match want(exchange, None, &wants, given, &asked.bound).await? {
            InputOutcome::Answer(outcome) => return Ok(Some(outcome)),
            InputOutcome::Again(more) => given = more,
        }
    }
    let message = format!("prompt `{}` asked {ROUNDS_MAX} times and wants more", asked.name);
    Err(RpcError::new(INTERNAL_ERROR, message))
}

/// A prompt's own `_meta` stands beside ours.
fn outcome(mut prompt: Value) -> Outcome {
    let meta = prompt.as_object_mut().and_then(|members| take(members, "_meta"));
    let outcome = Outcome::complete(&prompt);
    match meta {
        Some(Value::Object(meta)) => outcome.with_meta(meta),
        _ => outcome,
    }
}

fn has_required(spec: &PromptSpec, arguments: &Map<String, Value>) -> Result<(), RpcError> {
    let missing = |argument: &&PromptArgument| {
        argument.required && !arguments.contains_key(argument.name.as_str())
    };
    let missing: Vec<String> = spec
        .arguments
        .iter()
        .filter(missing)
        .map(|argument| format!("`{}`", argument.name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("prompt `{}` needs {}", spec.name, missing.join(", "));
    Err(RpcError::invalid_params(message))
}

/// All prompts by name; one that several shelves hold is the first one's.
fn all(exchange: &Exchange) -> Vec<Arc<PromptSpec>> {
    let mut prompts = BTreeMap::new();
    for shelf in exchange.mcp.shelves(&exchange.caller) {
        for spec in shelf.prompts(&exchange.caller) {
            prompts.entry(spec.name.clone()).or_insert(spec);
        }
    }
    prompts.into_values().collect()
}

fn unknown(exchange: &Exchange, name: &str) -> RpcError {
    let prompts = all(exchange);
    let hint = meant(name, prompts.iter().map(|spec| spec.name.as_str()))
        .unwrap_or_else(|| "`prompts/list` lists them".to_owned());
    RpcError::invalid_params(format!("there is no prompt `{}`; {hint}", short(name)))
}

/// A prompt as it is listed. Its own server says all of its arguments.
fn shown(spec: &PromptSpec, version: Version) -> ListedItem<PromptSpec> {
    let mut shown = spec.clone();
    shown.title = shown.title.filter(|_| has_titles(version));
    shown.arguments.retain(|_| spec.listed.is_none());
    ListedItem::new(shown, spec.listed.as_ref(), &["name", "title", "description"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wire::jsonrpc::INVALID_PARAMS;

    fn spec() -> PromptSpec {
        let argument = |name: &str, required| PromptArgument {
            name: name.to_owned(),
            description: None,
            required,
        };
        PromptSpec {
            name: "p".to_owned(),
            title: Some("P".to_owned()),
            description: None,
            arguments: vec![argument("a", true), argument("b", false), argument("c", true)],
            listed: None,
        }
    }

    #[test]
    fn missing_arguments_are_named() {
        let given = |value: Value| has_required(&spec(), value.as_object().unwrap());
        assert_eq!(given(json!({"a": "1", "c": ""})), Ok(()));
        let refused = given(json!({"b": "1"})).unwrap_err();
        assert_eq!(refused.code, INVALID_PARAMS);
        assert_eq!(refused.message, "prompt `p` needs `a`, `c`");
    }

    #[test]
    fn a_title_is_shown_where_there_are_titles() {
        let shown = |version| json!(shown(&spec(), version));
        let old = json!({"name": "p", "arguments": [{"name": "a", "required": true},
            {"name": "b", "required": false}, {"name": "c", "required": true}]});
        assert_eq!(shown(Version::March2025), old);
        assert_eq!(shown(Version::June2025)["title"], "P");
    }

    #[test]
    fn the_listing_of_an_upstream_prompt_is_passed_on() {
        let listed = json!({"name": "p", "title": "P", "arguments": [{"name": "a", "title": "A"}],
            "icons": [{"src": "https://a.test/p.png"}], "_meta": {"x": 1}});
        let mut passed = spec();
        passed.name = "up.p".to_owned();
        passed.listed = Some(Arc::new(listed.clone()));
        let mut expected = listed;
        expected["name"] = json!("up.p");
        assert_eq!(json!(shown(&passed, Version::July2026)), expected);
    }

    #[test]
    fn a_prompts_own_meta_is_written_once() {
        let outcome = outcome(json!({"messages": [], "_meta": {"a": 1}}));
        let text = outcome.write(Version::July2026);
        assert_eq!(text.matches("\"_meta\"").count(), 1, "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["_meta"]["a"], 1);
    }
}
