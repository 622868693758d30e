//! Prompts and resources of an upstream server. Lists come from the last listing, even while the
//! server is away; other requests are passed on. Prompts get the upstream's prefix, resources keep
//! their URIs.

mod changes;
#[cfg(test)]
mod tests;

use super::peer::{AskError, Request};
use super::tool::{broken, for_the_next_hop, refused};
use super::{Link, ROUNDS_MAX};
use crate::mcp::questions::{CarriedState, Round};
use futures::future::BoxFuture;
use kernel::contracts::shelf::{
    Changes, CompletionRequest, CompletionTarget, Completions, PromptArgument, PromptRequest,
    PromptSpec, ResourceSpec, Shelf, ShelfFuture, TemplateSpec, WRONG_REQUEST,
};
use kernel::contracts::{ListPage, PageRequest};
use kernel::tool::call::{Caller, ToolOutput};
use kernel::values::fault::Fault;
use serde_json::{Value, json};
use std::sync::Arc;
use wire::jsonrpc::{INVALID_PARAMS, RpcError};
use wire::mcp::RESOURCE_NOT_FOUND;

/// The shelf of one upstream.
pub(crate) struct RemoteShelf {
    link: Arc<Link>,
}

impl RemoteShelf {
    /// The shelf of this upstream.
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { link }
    }

    /// The same shelf over the link of this caller.
    fn of(&self, caller: &Caller) -> Result<Self, Fault> {
        self.link.of(caller).map(Self::new)
    }

    /// The server's name of a prompt, if it lists it.
    fn prompt_there<'n>(&self, name: &'n str) -> Option<&'n str> {
        let there = name.strip_prefix(self.link.config.prefix.as_str())?;
        let lists = self.link.lists();
        lists.prompts.iter().any(|listed| listed["name"] == there).then_some(there)
    }

    /// Whether a URI is one of its resources, or fits one of its families.
    fn knows(&self, uri: &str) -> bool {
        let lists = self.link.lists();
        let fits_one =
            |listed: &Value| listed["uriTemplate"].as_str().is_some_and(|family| fits(family, uri));
        has(&lists.resources, uri) || lists.templates.iter().any(fits_one)
    }

    /// Whether it is asked for what is at a URI. One whose names are ours is asked for what it does
    /// not list as well: clients know of it by links in results.
    fn holds(&self, uri: &str) -> bool {
        self.has_our_names() || self.knows(uri)
    }

    fn has_our_names(&self) -> bool {
        self.link.config.prefix.is_empty()
    }

    async fn ask(&self, method: &str, params: Value, name: &str) -> Result<Value, AskError> {
        let peer = self.link.peer().await?;
        peer.ask(method, params, Some(name), timeout_ms(&self.link)).await
    }

    /// A prompt, filled in. A stateless server may want something first.
    async fn get(&self, prompting: PromptRequest<'_>) -> Result<ToolOutput, Fault> {
        let PromptRequest { name, arguments, given, can } = prompting;
        let carried = CarriedState::read(&given.state);
        let mut answers = carried.answers(given);
        let mut state = carried.request_state;
        for _ in 0..=ROUNDS_MAX {
            let mut params = json!({"name": name});
            if !arguments.is_empty() {
                params["arguments"] = Value::Object(arguments.clone());
            }
            if !answers.is_empty() {
                params["inputResponses"] = Value::Object(std::mem::take(&mut answers));
            }
            if let Some(state) = state.take() {
                params["requestState"] = state;
            }
            let peer = self.link.peer().await.map_err(|error| self.fault(&error.into()))?;
            let request = Request::new("prompts/get", params, timeout_ms(&self.link));
            let asked = peer.request(Request { name: Some(name), can, ..request }).await;
            let result = asked.map_err(|error| self.fault(&error))?;
            let kind = result["resultType"].as_str().unwrap_or("complete").to_owned();
            match (kind.as_str(), result) {
                ("complete", Value::Object(mut prompt)) => {
                    for_the_next_hop(&mut prompt);
                    return Ok(ToolOutput::Value(Value::Object(prompt)));
                }
                ("input_required", result) => match Round::read(&result, can) {
                    Round::Wants(wants) => return Ok(wants),
                    Round::Again(more, next) => (answers, state) = (more, next),
                    Round::Impossible(what, _) => return Err(self.trouble(&what)),
                },
                _ => return Err(self.trouble("it answered with something that is no prompt")),
            }
        }
        Err(self.trouble("it wants more and more before it gives the prompt"))
    }

    /// Reads a URI; `None` if the server says that nothing is there.
    async fn contents(&self, uri: &str) -> Result<Option<Vec<Value>>, Fault> {
        match self.ask("resources/read", json!({"uri": uri}), uri).await {
            Ok(mut result) => match result.get_mut("contents").map(Value::take) {
                Some(Value::Array(contents)) => Ok(Some(contents)),
                _ => Err(self.trouble("it answered with something that is no resource")),
            },
            Err(AskError::Rpc(error)) if is_not_found(&error) => Ok(None),
            Err(error) => Err(self.fault(&error)),
        }
    }

    async fn completed(
        &self,
        reference: Value,
        completion: &CompletionRequest<'_>,
    ) -> Result<Option<Completions>, Fault> {
        let peer = self.link.peer().await.map_err(|error| self.fault(&error.into()))?;
        if !peer.capabilities()["completions"].is_object() {
            return Ok(None);
        }
        let argument = json!({"name": completion.argument, "value": completion.typed});
        let mut params = json!({"ref": reference, "argument": argument});
        if let Some(chosen) = completion.chosen {
            params["context"] = json!({"arguments": chosen});
        }
        let asked = peer.ask("completion/complete", params, None, timeout_ms(&self.link)).await;
        let result = asked.map_err(|error| self.fault(&error))?;
        let found = &result["completion"];
        let texts = found["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Ok(Some(Completions {
            values: texts.map(str::to_owned).collect(),
            total: found["total"].as_u64(),
            more: found["hasMore"] == true,
        }))
    }

    fn fault(&self, error: &AskError) -> Fault {
        match error {
            AskError::Peer(error) => broken(&self.link.config, error),
            AskError::Rpc(error) if error.code == INVALID_PARAMS => {
                Fault { name: WRONG_REQUEST.to_owned(), ..refused(&self.link.config, error) }
            }
            AskError::Rpc(error) => refused(&self.link.config, error),
        }
    }

    fn trouble(&self, what: &str) -> Fault {
        let name = &self.link.config.name;
        let origin = &self.link.config.origin;
        Fault::new("UpstreamError", format!("upstream `{name}`: {what}"))
            .hint(format!("look at that server; it is configured in {origin}"))
    }
}

impl Shelf for RemoteShelf {
    fn prompts(&self, _caller: &Caller) -> Vec<Arc<PromptSpec>> {
        let prefix = &self.link.config.prefix;
        let lists = self.link.lists();
        lists.prompts.iter().filter_map(|listed| prompt(prefix, listed)).map(Arc::new).collect()
    }

    fn prompt<'a>(
        &'a self,
        caller: &'a Caller,
        prompting: &'a PromptRequest<'a>,
    ) -> ShelfFuture<'a, ToolOutput> {
        Box::pin(async move {
            let Some(name) = self.prompt_there(prompting.name) else { return Ok(None) };
            self.of(caller)?.get(PromptRequest { name, ..*prompting }).await.map(Some)
        })
    }

    fn resources<'a>(
        &'a self,
        _caller: &'a Caller,
        page: &'a PageRequest,
    ) -> BoxFuture<'a, Result<ListPage<ResourceSpec>, Fault>> {
        Box::pin(std::future::ready(paged(&self.link.lists().resources, page)))
    }

    fn templates(&self, _caller: &Caller) -> Vec<TemplateSpec> {
        self.link.lists().templates.iter().filter_map(template).collect()
    }

    fn lists(&self, _caller: &Caller, uri: &str) -> bool {
        has(&self.link.lists().resources, uri)
    }

    fn takes_unlisted(&self, _caller: &Caller, uri: &str) -> bool {
        self.has_our_names() && !self.knows(uri)
    }

    fn read<'a>(&'a self, caller: &'a Caller, uri: &'a str) -> ShelfFuture<'a, Vec<Value>> {
        Box::pin(async move {
            if !self.holds(uri) {
                return Ok(None);
            }
            self.of(caller)?.contents(uri).await
        })
    }

    fn changes<'a>(
        &'a self,
        caller: &'a Caller,
        uri: &'a str,
    ) -> ShelfFuture<'a, Box<dyn Changes>> {
        Box::pin(async move {
            if !self.holds(uri) {
                return Ok(None);
            }
            let link = self.link.of(caller)?;
            changes::watch(&link, uri).await.map_err(|error| self.fault(&error))
        })
    }

    fn complete<'a>(
        &'a self,
        caller: &'a Caller,
        completion: &'a CompletionRequest<'a>,
    ) -> ShelfFuture<'a, Completions> {
        Box::pin(async move {
            let reference = match completion.of {
                CompletionTarget::Prompt(name) => {
                    let Some(there) = self.prompt_there(name) else { return Ok(None) };
                    json!({"type": "ref/prompt", "name": there})
                }
                CompletionTarget::Template(uri) => {
                    let lists = self.link.lists();
                    if !lists.templates.iter().any(|listed| listed["uriTemplate"] == uri) {
                        return Ok(None);
                    }
                    json!({"type": "ref/resource", "uri": uri})
                }
            };
            self.of(caller)?.completed(reference, completion).await
        })
    }
}

/// Whether a resource at this URI is listed.
fn has(resources: &[Value], uri: &str) -> bool {
    resources.iter().any(|listed| listed["uri"] == uri)
}

/// How long the server may take.
fn timeout_ms(link: &Link) -> u64 {
    link.config.timeout_ms.unwrap_or(link.parts.limits.call_timeout_ms)
}

/// There is no such resource: the versions do not agree on its number.
fn is_not_found(error: &RpcError) -> bool {
    matches!(error.code, RESOURCE_NOT_FOUND | INVALID_PARAMS)
}

fn text(listed: &Value, key: &str) -> Option<String> {
    listed[key].as_str().map(str::to_owned)
}

/// A prompt as it is listed here; nothing where it is invalid.
fn prompt(prefix: &str, listed: &Value) -> Option<PromptSpec> {
    let name = listed["name"].as_str().filter(|name| !name.is_empty())?;
    let argument = |argument: &Value| {
        Some(PromptArgument {
            name: text(argument, "name")?,
            description: text(argument, "description"),
            required: argument["required"] == true,
        })
    };
    let arguments = listed["arguments"].as_array();
    Some(PromptSpec {
        name: format!("{prefix}{name}"),
        title: text(listed, "title"),
        description: text(listed, "description"),
        arguments: arguments.into_iter().flatten().filter_map(argument).collect(),
        listed: Some(Arc::new(listed.clone())),
    })
}

fn resource(listed: &Value) -> Option<ResourceSpec> {
    let uri = text(listed, "uri").filter(|uri| !uri.is_empty())?;
    Some(ResourceSpec {
        name: text(listed, "name").unwrap_or_else(|| uri.clone()),
        uri,
        title: text(listed, "title"),
        description: text(listed, "description"),
        mime_type: text(listed, "mimeType"),
        bytes: listed["size"].as_u64(),
        listed: Some(Arc::new(listed.clone())),
    })
}

fn template(listed: &Value) -> Option<TemplateSpec> {
    let uri_template = text(listed, "uriTemplate").filter(|template| !template.is_empty())?;
    Some(TemplateSpec {
        name: text(listed, "name").unwrap_or_else(|| uri_template.clone()),
        uri_template,
        title: text(listed, "title"),
        description: text(listed, "description"),
        mime_type: text(listed, "mimeType"),
        listed: Some(Arc::new(listed.clone())),
    })
}

/// A page of its resources. A cursor says how many went before.
fn paged(listed: &[Value], page: &PageRequest) -> Result<ListPage<ResourceSpec>, Fault> {
    let before = page.cursor.as_deref().map_or(Ok(0), str::parse::<usize>).map_err(|_| {
        Fault::new(WRONG_REQUEST, "the cursor is not one of this list")
            .hint("use `nextCursor` of the page before, as it is")
    })?;
    let mut resources = listed.iter().filter_map(resource).skip(before);
    let items: Vec<ResourceSpec> = resources.by_ref().take(page.limit.max(1)).collect();
    let more = resources.next().is_some();
    let next_cursor = more.then(|| before.saturating_add(items.len()).to_string());
    Ok(ListPage { items, next_cursor })
}

/// Whether a URI may be of this family: its fixed parts are there, in this order. Whether it is one
/// of the family is for its server to say.
fn fits(template: &str, uri: &str) -> bool {
    let Some((head, mut rest)) = template.split_once('{') else { return template == uri };
    // A family without a scheme of its own would claim every URI there is.
    let Some(mut uri) = uri.strip_prefix(head).filter(|_| head.contains(':')) else { return false };
    while let Some((_, after)) = rest.split_once('}') {
        let Some((fixed, next)) = after.split_once('{') else { return uri.ends_with(after) };
        let Some((_, behind)) = uri.split_once(fixed) else { return false };
        uri = behind;
        rest = next;
    }
    false
}
