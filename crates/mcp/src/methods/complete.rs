//! `completion/complete`: completions of an argument of a prompt, or of a variable of a resource
//! template.

use super::resources::all_templates;
use crate::answer::{AnswerResult, Outcome};
use crate::exchange::Exchange;
use crate::lists::failed;
use edge::request::params::short;
use kernel::contracts::shelf::{CompletionRequest, CompletionTarget, Completions};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use wire::jsonrpc::RpcError;

/// The protocol's own bound.
const VALUES_MAX: usize = 100;

/// `completion/complete`.
pub(crate) async fn complete(exchange: Exchange) -> AnswerResult {
    let Params { of, argument, context } = exchange.params()?;
    let chosen = context.and_then(|context| context.arguments);
    let completion = CompletionRequest {
        of: match &of {
            Reference::Prompt { name } => CompletionTarget::Prompt(name),
            Reference::Resource { uri } => CompletionTarget::Template(uri),
        },
        argument: &argument.name,
        typed: &argument.value,
        chosen: chosen.as_ref(),
    };
    for shelf in exchange.mcp.shelves(&exchange.caller) {
        let found = shelf.complete(&exchange.caller, &completion).await.map_err(failed)?;
        if let Some(found) = found {
            return Ok(completed(found));
        }
    }
    // A shelf need not know how to complete what it holds.
    if is_known(&exchange, &of) {
        Ok(completed(Vec::<String>::new().into()))
    } else {
        Err(unknown(&of))
    }
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "ref")]
    of: Reference,
    argument: Argument,
    context: Option<Context>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Reference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Context {
    arguments: Option<Map<String, Value>>,
}

fn completed(Completions { mut values, total, more }: Completions) -> Outcome {
    let more = more || values.len() > VALUES_MAX;
    values.truncate(VALUES_MAX);
    let mut completion = json!({"values": values, "hasMore": more});
    if let Some(total) = total {
        completion["total"] = Value::from(total);
    }
    Outcome::complete(&json!({"completion": completion}))
}

fn is_known(exchange: &Exchange, of: &Reference) -> bool {
    let mcp = &exchange.mcp;
    let caller = &exchange.caller;
    match of {
        Reference::Prompt { name } => {
            mcp.shelves(caller).iter().any(|shelf| shelf.prompt_spec(caller, name).is_some())
        }
        Reference::Resource { uri } => {
            all_templates(mcp, caller).iter().any(|spec| spec.uri_template == *uri)
        }
    }
}

fn unknown(of: &Reference) -> RpcError {
    RpcError::invalid_params(match of {
        Reference::Prompt { name } => {
            format!("there is no prompt `{}`; `prompts/list` lists them", short(name))
        }
        Reference::Resource { uri } => format!(
            "there is no resource template `{}`; `resources/templates/list` lists them",
            short(uri)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Version;

    #[test]
    fn no_more_than_the_protocol_allows_are_sent() {
        let values: Vec<String> = (0..101).map(|number| number.to_string()).collect();
        let written = |found: Completions| -> Value {
            serde_json::from_str(&completed(found).write(Version::June2025)).unwrap()
        };
        let read = |values: Vec<String>| written(values.into());
        let cut = &read(values.clone())["completion"];
        assert_eq!(cut["values"].as_array().unwrap().len(), 100);
        assert_eq!((&cut["total"], &cut["hasMore"]), (&json!(101), &json!(true)));
        let all = &read(values[..100].to_vec())["completion"];
        assert_eq!((&all["total"], &all["hasMore"]), (&json!(100), &json!(false)));
        let some = Completions { values: vec!["a".to_owned()], total: None, more: true };
        let told = json!({"values": ["a"], "hasMore": true});
        assert_eq!(written(some)["completion"], told, "another server knows better than we");
    }

    #[test]
    fn a_reference_is_to_a_prompt_or_to_a_template() {
        let read = |of: Value| {
            let argument = json!({"name": "a", "value": ""});
            serde_json::from_value::<Params>(json!({"ref": of, "argument": argument}))
        };
        let prompt = read(json!({"type": "ref/prompt", "name": "p", "title": "P"})).unwrap();
        assert!(unknown(&prompt.of).message.contains("prompt `p`"));
        let template = read(json!({"type": "ref/resource", "uri": "a://{b}"})).unwrap();
        assert!(unknown(&template.of).message.contains("template `a://{b}`"));
        assert!(read(json!({"type": "ref/tool", "name": "p"})).is_err());
        assert!(read(json!({"type": "ref/prompt", "uri": "p"})).is_err());
    }
}
