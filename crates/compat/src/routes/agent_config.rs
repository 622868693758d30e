//! Routes of `/api/agent/config`: agents of a realm, stored and read as their clients wrote them.

use crate::agent_config;
use axum::routing::{delete, get, post};
use edge::acts::Right::Engine;
use edge::openapi::{BODY, Body, WRITE, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::agent_config::AgentDeleted;
use wire::rest::Agent;

/// `/api/agent/config`, with and without a slash at the end.
pub(super) const ENTITIES: &[Route<Shared>] = &[
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
