//! What a server lists and answers, normalised so that two routes to it can be compared.

use crate::commands::upstream::UNAUTHORIZED;
use engine::system::clock::SystemEntropy;
use kernel::contracts::shelf::PromptRequest;
use kernel::contracts::{Entropy, PageRequest};
use kernel::limits::Limits;
use kernel::tool::call::{
    Abilities, Call, CallContext, CallReporter, InputResponses, RawFailure, ToolOutput,
};
use kernel::values::ids::CallId;
use kernel::values::members::take;
use project::realm::local_caller;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use upstreams::{Upstream, UpstreamState};

/// How many resources are read.
const RESOURCES_MAX: usize = 10_000;

/// Items of one list, by name or URI.
pub(super) type Items = BTreeMap<String, Value>;

/// What one way to a server shows.
#[derive(Debug, Default)]
pub(super) struct ServerView {
    /// The version of MCP that is spoken.
    pub(super) version: String,
    /// Why it cannot be looked at, if it cannot.
    pub(super) trouble: Option<String>,
    /// Whether it cannot because someone must log in first, or our credential is not taken.
    pub(super) is_locked: bool,
    pub(super) tools: Items,
    /// Why tools that it lists are not among them.
    pub(super) left_out: Vec<String>,
    pub(super) prompts: Items,
    pub(super) resources: Items,
    pub(super) templates: Items,
}

impl ServerView {
    /// Connects and lists.
    pub(super) async fn of(upstream: &Upstream) -> Self {
        let status = match upstream.check().await {
            Ok(status) => status,
            Err(fault) => {
                let wants_login = upstream.status().state == UpstreamState::Login;
                let is_locked = wants_login || fault.name == UNAUTHORIZED;
                return Self { trouble: Some(fault.to_string()), is_locked, ..Self::default() };
            }
        };
        let shelf = upstream.shelf();
        let caller = local_caller();
        let page = PageRequest { cursor: None, limit: RESOURCES_MAX };
        let resources = shelf.resources(&caller, &page).await;
        let resources = resources.map(|page| page.items).unwrap_or_default();
        let tools = upstream.tools();
        let tools = tools.iter().map(|tool| (tool.spec().name.to_string(), &tool.spec().listed));
        let prompts = shelf.prompts(&caller);
        let templates = shelf.templates(&caller);
        Self {
            version: status.version.unwrap_or_default(),
            trouble: None,
            is_locked: false,
            tools: items(tools),
            left_out: upstream.left_out(),
            prompts: items(prompts.iter().map(|prompt| (prompt.name.clone(), &prompt.listed))),
            resources: items(resources.iter().map(|found| (found.uri.clone(), &found.listed))),
            templates: items(
                templates.iter().map(|family| (family.uri_template.clone(), &family.listed)),
            ),
        }
    }
}

fn items<'a>(listed: impl Iterator<Item = (String, &'a Option<Arc<Value>>)>) -> Items {
    let item = |(name, listed): (String, &Option<Arc<Value>>)| {
        (name, listed.as_deref().cloned().unwrap_or_default())
    };
    listed.map(item).collect()
}

/// What is at a URI, or why nothing is.
pub(super) async fn read(upstream: &Upstream, uri: &str) -> Value {
    match upstream.shelf().read(&local_caller(), uri).await {
        Ok(Some(contents)) => json!({"contents": contents}),
        Ok(None) => json!({"error": "not found"}),
        Err(fault) => json!({"error": fault.name}),
    }
}

/// What a prompt is without any arguments, or how it fails.
pub(super) async fn prompted(upstream: &Upstream, name: &str) -> Value {
    let arguments = Map::new();
    let given = InputResponses::default();
    let can = Abilities::PERSON;
    let prompting = PromptRequest { name, arguments: &arguments, given: &given, can };
    let shelf = upstream.shelf();
    let caller = local_caller();
    match shelf.prompt(&caller, &prompting).await {
        Ok(Some(ToolOutput::Value(prompt))) => json!({"prompt": without_meta(prompt)}),
        Ok(Some(ToolOutput::Wants(wants))) => json!({"asks": wants.inputs.len()}),
        Ok(Some(ToolOutput::Blob(_)) | None) => json!({"error": "not found"}),
        Err(fault) => json!({"error": fault.name}),
    }
}

/// What a call of the tool of this name is answered with: its result without `_meta`, or how it
/// fails.
pub(super) async fn called(
    upstream: &Upstream,
    name: &str,
    arguments: &Value,
    limits: &Limits,
) -> Value {
    let tools = upstream.tools();
    let Some(tool) = tools.iter().find(|tool| tool.spec().name.as_str() == name) else {
        return json!({"error": "no such tool"});
    };
    let call = Call {
        id: CallId(SystemEntropy.bits()),
        tool: tool.spec().name.clone(),
        arguments: Arc::new(arguments.clone()),
        timeout_ms: limits.call_timeout_ms,
        output_bytes_max: limits.call_output_bytes_max,
        given: Arc::new(InputResponses::default()),
        can: Abilities::PERSON,
        teller: CallReporter::default(),
        context: CallContext::default(),
    };
    match tool.call(&local_caller(), &call).await {
        Ok(ToolOutput::Value(result)) => json!({"result": without_meta(result)}),
        Ok(ToolOutput::Blob(blob)) => json!({"result": blob.uri()}),
        Ok(ToolOutput::Wants(wants)) => {
            // No one is asked: it need not be kept for the answer.
            tool.forget(&wants.state);
            json!({"asks": wants.inputs.len()})
        }
        Err(error) => match error.said.map(|said| *said) {
            Some(RawFailure::Result(result)) => json!({"result": without_meta(result)}),
            Some(RawFailure::Error(said)) => json!({"error": said}),
            Some(RawFailure::Lacks(_) | RawFailure::Reply(_)) | None => {
                json!({"error": error.fault.name})
            }
        },
    }
}

fn without_meta(mut result: Value) -> Value {
    if let Value::Object(members) = &mut result {
        take(members, "_meta");
    }
    result
}
