//! Routes of `/api/v1/agents`.

use crate::agents;
use axum::routing::{delete, get, put};
use edge::acts::Right::Engine;
use edge::openapi::{Answer, BODY, Body, Content, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{Agent, AgentAnswer, AgentSummary, Page};

/// One agent with its version.
const fn agent(status: u16, about: &'static str) -> Answer {
    json_answer(status, of::<AgentAnswer>, about).headers(&["ETag"])
}

/// `/api/v1/agents`.
pub(super) const AGENTS: &[Route<Shared>] = &[
    Route::get("/api/v1/agents", || get(agents::list), Engine(Act::Read))
        .says("listAgents", "The agents of the project's files and the stored ones, by name")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<AgentSummary>>, "a page of agents")])
        .refusals(&[&[400]]),
    Route::get("/api/v1/agents/{refName}", || get(agents::show), Engine(Act::Read))
        .says("showAgent", "One agent")
        .parameters(&["agentName"])
        .answers(&[agent(200, "the agent; one of a file has no `ETag`")])
        .refusals(&[&[400, 404]]),
    Route::put("/api/v1/agents/{refName}", || put(agents::store), Engine(Act::Define))
        .says("storeAgent", "Stores an agent, or its next version; for administrators")
        .parameters(&["agentName", "ifMatch", "ifNoneMatch"])
        .body(Body::Json(of::<Agent>))
        .answers(&[
            agent(200, "the next version is stored"),
            agent(201, "the agent is stored for the first time"),
        ])
        .refusals(&[&[401, 409, 412], BODY, WRITE]),
    Route::delete("/api/v1/agents/{refName}", || delete(agents::remove), Engine(Act::Define))
        .says(
            "removeAgent",
            "Removes a stored agent; runs that began continue with it; for administrators",
        )
        .parameters(&["agentName"])
        .answers(&[answer(204, Content::None, "it is gone")])
        .refusals(&[&[400, 401, 404, 409], WRITE]),
];
