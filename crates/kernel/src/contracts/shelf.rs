//! What can be prompted and read beside tools: a shelf holds prompts and resources. Ours holds
//! plans, sessions and blobs; code and upstream servers bring others.

use crate::contracts::{ListPage, PageRequest};
use crate::tool::call::{Abilities, Caller, InputResponses, ToolOutput};
use crate::values::fault::Fault;
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A prompt as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptSpec {
    /// Its stable name.
    pub name: String,
    /// A short title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments, which are all texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// The listing as its server wrote it, for endpoints that pass it on.
    #[serde(skip)]
    pub listed: Option<Arc<Value>>,
}

/// One argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptArgument {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: bool,
}

/// A resource as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpec {
    pub uri: String,
    pub name: String,
    /// A short title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size, if it is known.
    #[serde(rename = "size", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The listing as its server wrote it, for endpoints that pass it on.
    #[serde(skip)]
    pub listed: Option<Arc<Value>>,
}

/// A family of resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// Their URIs, as an RFC 6570 template.
    pub uri_template: String,
    /// The family's name.
    pub name: String,
    /// A short title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Their media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The listing as its server wrote it, for endpoints that pass it on.
    #[serde(skip)]
    pub listed: Option<Arc<Value>>,
}

/// One prompt to fill in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PromptRequest<'a> {
    pub name: &'a str,
    pub arguments: &'a Map<String, Value>,
    /// The answers to what it wanted when it was asked for before.
    pub given: &'a InputResponses,
    /// Abilities of the caller.
    pub can: Abilities,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionTarget<'a> {
    /// An argument of a prompt of this name.
    Prompt(&'a str),
    /// A variable of a resource template.
    Template(&'a str),
}

/// One completion to find.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest<'a> {
    pub of: CompletionTarget<'a>,
    /// The argument's name.
    pub argument: &'a str,
    /// What was typed so far.
    pub typed: &'a str,
    /// Arguments that were chosen before, if they were sent.
    pub chosen: Option<&'a Map<String, Value>>,
}

/// Completions of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completions {
    /// The values, best first.
    pub values: Vec<String>,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub more: bool,
}

impl From<Vec<String>> for Completions {
    /// These, and no others.
    fn from(values: Vec<String>) -> Self {
        Self { total: Some(values.len() as u64), more: false, values }
    }
}

/// Wakes when a resource has changed.
pub trait Changes: Send {
    /// Waits for the next change.
    fn next(&mut self) -> BoxFuture<'_, ()>;
}

/// The name of a fault that is the caller's: what it sent is not right.
pub const WRONG_REQUEST: &str = "WrongRequest";

/// What a shelf finds: none where it does not hold it, so that the next one is asked.
pub type ShelfFuture<'a, T> = BoxFuture<'a, Result<Option<T>, Fault>>;

/// Prompts and resources. What a caller may not see is not there for it.
pub trait Shelf: Send + Sync {
    /// All prompts.
    fn prompts(&self, _caller: &Caller) -> Vec<Arc<PromptSpec>> {
        Vec::new()
    }

    fn prompt_spec(&self, caller: &Caller, name: &str) -> Option<Arc<PromptSpec>> {
        self.prompts(caller).into_iter().find(|spec| spec.name == name)
    }

    /// A prompt with its arguments filled in: `{description?, messages}` in MCP's shape.
    fn prompt<'a>(
        &'a self,
        _caller: &'a Caller,
        _prompting: &'a PromptRequest<'a>,
    ) -> ShelfFuture<'a, ToolOutput> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// A page of its resources, in an order that does not change.
    fn resources<'a>(
        &'a self,
        _caller: &'a Caller,
        _page: &'a PageRequest,
    ) -> BoxFuture<'a, Result<ListPage<ResourceSpec>, Fault>> {
        Box::pin(std::future::ready(Ok(ListPage { items: Vec::new(), next_cursor: None })))
    }

    /// All families of resources.
    fn templates(&self, _caller: &Caller) -> Vec<TemplateSpec> {
        Vec::new()
    }

    /// Whether exactly this URI is one of its resources, and not only perhaps one of a family. Who
    /// lists a resource is asked for it first, and where that fails no one else stands in.
    fn lists(&self, _caller: &Caller, _uri: &str) -> bool {
        false
    }

    /// Whether it is asked for this URI although it neither lists it nor has a family that it may
    /// be of. Such a shelf is asked after all others.
    fn takes_unlisted(&self, _caller: &Caller, _uri: &str) -> bool {
        false
    }

    /// Reads a URI: a list of contents in MCP's shape.
    fn read<'a>(&'a self, _caller: &'a Caller, _uri: &'a str) -> ShelfFuture<'a, Vec<Value>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// What wakes when the resource changes; none where it does not hold it.
    fn changes<'a>(
        &'a self,
        _caller: &'a Caller,
        _uri: &'a str,
    ) -> ShelfFuture<'a, Box<dyn Changes>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Completions of an argument; none where it does not know the prompt or template.
    fn complete<'a>(
        &'a self,
        _caller: &'a Caller,
        _completion: &'a CompletionRequest<'a>,
    ) -> ShelfFuture<'a, Completions> {
        Box::pin(std::future::ready(Ok(None)))
    }
}
