//! Routes of `/api/agent` beside its agents: tools, what is told about records, and one that calls
//! a tool.

use crate::agent_tools;
use axum::routing::{get, post};
use edge::acts::Right::Engine;
use edge::openapi::{BODY, Body, Content, READ, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::query_gateway::{AgentTools, ExecuteBody};
use wire::rest::PendingCall;

/// With and without a slash at the end.
pub(super) const AGENT_TOOLS: &[Route<Shared>] = &[
    Route::get("/api/agent/tools", || get(agent_tools::tools), Engine(Act::Call))
        .says("listAgentTools", "The tools of records that the caller sees; with `all` all tools")
        .parameters(&["allTools"])
        .answers(&[json_answer(200, of::<AgentTools>, "the tools")])
        .refusals(&[&[400]]),
    Route::get("/api/agent/schema", || get(agent_tools::schemas), Engine(Act::Call))
        .says("listAgentSchemas", "The same as `GET /api/query/rootTypes`")
        .answers(&[answer(200, Content::AnyJson, "the types")])
        .refusals(&[&[400, 404]]),
    Route::get("/api/agent/schema/{type}", || get(agent_tools::schema), Engine(Act::Call))
        .says("showAgentSchema", "A type of records as JSON Schema, as far as the caller sees it")
        .parameters(&["recordType"])
        .answers(&[answer(200, Content::AnyJson, "the schema")])
        .refusals(&[&[400, 404]]),
    Route::get("/api/agent/query-hints", || get(agent_tools::query_hints), Engine(Act::Call))
        .says("showQueryHints", "The query language in short, with queries that find something")
        .answers(&[answer(200, Content::AnyJson, "grammar, examples, and what is good to know")])
        .refusals(&[&[404], READ]),
    Route::get(
        "/api/agent/permission-hints",
        || get(agent_tools::permission_hints),
        Engine(Act::Call),
    )
    .says("showPermissionHints", "How a caller asks what it may do")
    .answers(&[answer(200, Content::AnyJson, "endpoints, names, and examples")])
    .refusals(&[&[404]]),
    Route::post("/api/agent/execute", || post(agent_tools::execute), Engine(Act::Call))
        .says("executeAgentTool", "Calls a tool by its name; the answer is that of the tool")
        .parameters(&["idempotencyKey"])
        .body(Body::Json(of::<ExecuteBody>))
        .answers(&[
            answer(200, Content::AnyJson, "the output of the tool"),
            json_answer(202, of::<PendingCall>, "a person is asked, or the call continues")
                .headers(&["Location", "Idempotency-Replayed"]),
        ])
        .refusals(&[BODY, &[404, 409, 410, 502], WRITE]),
];
