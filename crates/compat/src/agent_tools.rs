//! `/api/agent`: which tools an agent may call, what it may know of records before it does, and one
//! endpoint that calls a tool by its name.

use crate::query_gateway::{BodyRequest, listed, parsed, shown};
use axum::Json;
use axum::response::Response;
use edge::direct_call::{find, names};
use edge::problem::{Failure, Result};
use edge::record_calls::{self, is_of_records, not_enabled, refused, source, told};
use edge::record_hints;
use edge::request::params::{Params, PathName, short};
use edge::request::server_state::{ServerState, Who};
use edge::request::trace::Trace;
use edge::request::via::of_agent;
use edge::tool_answer;
use engine::{CallRequest, UnseenCall};
use kernel::event::Occasion;
use kernel::tool::call::{Caller, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use wire::query_gateway::{AgentTool, AgentToolParameter, AgentTools, ExecuteBody};

/// The tool that lists types: who may not call it learns no type here.
const ROOT_TYPES: &str = "query_rootTypes";
/// Without it no record is shown.
const FIND: &str = "query_find";

/// `?all=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolsQuery {
    /// Also those that are not of records.
    all: bool,
}

/// `GET /tools`.
pub(crate) async fn tools(
    Who { server, caller }: Who,
    Params(query): Params<ToolsQuery>,
) -> Result<Json<AgentTools>> {
    let specs = server.engine.tools().callables(&caller);
    let shown = specs.iter().filter(|spec| query.all || is_of_records(spec.name.as_str()));
    let tools: Vec<AgentTool> = shown.map(|spec| agent_tool(spec)).collect();
    Ok(Json(AgentTools { count: tools.len() as u64, tools }))
}

/// `GET /schema`.
pub(crate) async fn schemas(Who { server, caller }: Who, Trace(trace): Trace) -> Result<Response> {
    listed(&server, &caller, trace, "/api/agent/schema").await
}

/// `GET /schema/{type}`.
pub(crate) async fn schema(
    Who { server, caller }: Who,
    PathName(name): PathName,
) -> Result<Json<Value>> {
    record_calls::require(&server, &caller, ROOT_TYPES)?;
    record_hints::schema(source(&server)?, &caller, &name).map(Json).map_err(told)
}

/// `GET /query-hints`.
pub(crate) async fn query_hints(Who { server, caller }: Who) -> Result<Json<Value>> {
    record_calls::require(&server, &caller, ROOT_TYPES)?;
    let may_find = server.engine.tools().find(&caller, FIND).is_some();
    let hints = record_hints::query_hints(source(&server)?, &caller, may_find).await;
    hints.map(Json).map_err(told)
}

/// `GET /permission-hints`.
pub(crate) async fn permission_hints(Who { server, caller }: Who) -> Result<Json<Value>> {
    record_calls::require(&server, &caller, ROOT_TYPES)?;
    record_hints::permission_hints(source(&server)?, &caller).map(Json).map_err(told)
}

/// `POST /execute`: the answer is that of the tool itself.
pub(crate) async fn execute(request: BodyRequest) -> Result<Response> {
    let BodyRequest { realm, key, trace, sent } = request;
    let server = realm.server.clone();
    let body: ExecuteBody = parsed(&server, &sent)?;
    let once = key.once(&sent);
    // Its bytes count against the budget of all bodies.
    drop(sent);
    let caller = realm.caller(body.realm.as_deref())?;
    server.engine.tools().within_scopes(&caller)?;
    let via = of_agent(&caller.via, body.session_id.as_deref(), body.trace_id.as_deref());
    let caller = Caller { via, ..Caller::clone(&caller) };
    let tool = body.tool.filter(|tool| !tool.trim().is_empty()).ok_or_else(tool_required)?;
    let arguments = Value::Object(body.arguments.unwrap_or_default());
    let occasion = Occasion::at("rest", "/api/agent/execute");
    let Some(found) = find(&server, &caller, &tool) else {
        let failure = unknown_tool(&server, &caller, &tool);
        let unseen = UnseenCall { names: names(&tool).collect(), arguments, trace, occasion };
        server.engine.audits().note_unseen(&caller, &unseen);
        return Err(failure);
    };
    let request = CallRequest::new(found, arguments, server.limits().run_wait_ms);
    let request = CallRequest { once, trace, occasion, ..request };
    let answer = tool_answer::call(&server, &caller, request, refused).await?;
    Ok(answer.respond(shown))
}

fn tool_required() -> Failure {
    Failure::bad_request("ToolRequired", "the body names no tool")
        .hint("send `tool`, and its `arguments`")
}

/// There is no such tool, or the caller may not see it, or the realm's settings leave it out.
fn unknown_tool(server: &ServerState, caller: &Caller, tool: &str) -> Failure {
    let tools = server.engine.tools();
    let is_there = names(tool).any(|name| tools.exists(caller, &name));
    if let Some(failure) = not_enabled(server, caller, tool).filter(|_| is_there) {
        return failure;
    }
    let available = tools.callables(caller);
    let available: Vec<&str> = available.iter().map(|spec| spec.name.as_str()).collect();
    Failure::bad_request("UnknownTool", format!("there is no tool `{}`", short(tool)))
        .hint("`GET /api/agent/tools?all=true` lists the tools")
        .detail(json!({"availableTools": available}))
}

fn agent_tool(spec: &ToolSpec) -> AgentTool {
    let [area, domain] = match is_of_records(spec.name.as_str()) {
        true => ["integration", "query"],
        false => ["waypost", "tool"],
    };
    AgentTool {
        name: spec.name.to_string(),
        description: spec.description.clone(),
        parameters: parameters(&spec.input_schema),
        input_schema: (*spec.input_schema).clone(),
        area: area.to_owned(),
        domain: domain.to_owned(),
    }
}

/// The arguments of a tool in a flat list.
fn parameters(schema: &Value) -> Vec<AgentToolParameter> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let parameter = |(name, property): (&String, &Value)| AgentToolParameter {
        name: name.clone(),
        kind: kind(property),
        description: property["description"].as_str().unwrap_or_default().to_owned(),
    };
    properties.map(parameter).collect()
}

/// What a value of a schema is, in one word where it has one.
fn kind(property: &Value) -> String {
    match &property["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join("|")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_a_flat_list_in_which_each_has_a_type() {
        let schema = json!({"type": "object", "properties": {
            "rootType": {"type": "string", "description": "The type."},
            "sort": {"type": ["string", "array"]},
            "entity": {},
        }});
        let told: Vec<String> = parameters(&schema)
            .into_iter()
            .map(|told| format!("{} {} {}", told.name, told.kind, told.description))
            .collect();
        let mut expected = ["rootType string The type.", "sort string|array ", "entity any "];
        expected.sort_unstable();
        let mut told = told;
        told.sort_unstable();
        assert_eq!(told, expected);
        assert!(parameters(&json!({"type": "object"})).is_empty());
    }
}
