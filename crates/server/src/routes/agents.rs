//! `/api/v1/agents` and `/api/agent/config`.

use super::route::Route;
use crate::acts::Right::Engine;
use crate::http::agents;
use crate::http::compat::agent_config;
use crate::openapi::{Answer, BODY, Body, Content, WRITE, answer, json_answer, of};
use axum::routing::{delete, get, post, put};
use kernel::values::caller::Act;
use wire::agent_config::AgentDeleted;
use wire::rest::{Agent, AgentAnswer, AgentSummary, Page};

/// One agent with its version.
const fn agent(status: u16, about: &'static str) -> Answer {
    json_answer(status, of::<AgentAnswer>, about).headers(&["ETag"])
}

/// `/api/v1/agents`.
pub(super) const AGENTS: &[Route] = &[
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

/// `/api/agent/config`, with and without a slash at the end.
pub(super) const ENTITIES: &[Route] = &[
    Route::get("/api/agent/config/list", || get(agent_config::list), Engine(Act::Read))
        .says("listAgentEntities", "All agents as entities, by name")
        .parameters(&["realm"])
        .answers(&[json_answer(200, of::<Vec<Agent>>, "the agents")])
        .refusals(&[&[400, 404]]),
    Route::get("/api/agent/config/{refName}", || get(agent_config::show), Engine(Act::Read))
        .says("showAgentEntity", "One agent as an entity, by its name")
        .parameters(&["agentName", "realm"])
        .answers(&[json_answer(200, of::<Agent>, "the agent")])
        .refusals(&[&[400, 404]]),
    Route::get("/api/agent/config/id/{id}", || get(agent_config::show_by_id), Engine(Act::Read))
        .says("showAgentEntityById", "One agent as an entity, by its id")
        .parameters(&["agentId", "realm"])
        .answers(&[json_answer(200, of::<Agent>, "the agent")])
        .refusals(&[&[400, 404]]),
    Route::post("/api/agent/config", || post(agent_config::save), Engine(Act::Define))
        .says(
            "saveAgentEntity",
            "Stores an agent under its `refName`, or its next version; for administrators",
        )
        .parameters(&["realm"])
        .body(Body::Json(of::<Agent>))
        .answers(&[json_answer(200, of::<Agent>, "the agent as it is stored, with its id")])
        .refusals(&[&[401, 404, 409], BODY, WRITE]),
    Route::delete(
        "/api/agent/config/{refName}",
        || delete(agent_config::remove),
        Engine(Act::Define),
    )
    .says("deleteAgentEntity", "Removes a stored agent by its name; for administrators")
    .parameters(&["agentName", "realm"])
    .answers(&[json_answer(200, of::<AgentDeleted>, "it is gone")])
    .refusals(&[&[400, 401, 404, 409], WRITE]),
    Route::delete(
        "/api/agent/config/id/{id}",
        || delete(agent_config::remove_by_id),
        Engine(Act::Define),
    )
    .says("deleteAgentEntityById", "Removes a stored agent by its id; for administrators")
    .parameters(&["agentId", "realm"])
    .answers(&[json_answer(200, of::<AgentDeleted>, "it is gone")])
    .refusals(&[&[400, 401, 404, 409], WRITE]),
];
