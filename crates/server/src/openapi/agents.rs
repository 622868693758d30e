//! The tables of `/api/v1/agents` and of `/api/agent/config`.

use super::operation::{Answer, BODY, Body, Content, Operation, WRITE, json_answer};
use super::schemas::of;
use wire::rest::{Agent, AgentAnswer, AgentSummary, Page};
use wire::seed002::AgentDeleted;

/// One agent with its version.
const fn agent(status: u16, about: &'static str) -> Answer {
    Answer { status, about, content: Content::Json(of::<AgentAnswer>), headers: &["ETag"] }
}

/// `/api/v1/agents`.
pub(super) const AGENTS: &[Operation] = &[
    Operation {
        method: "GET",
        path: "/api/v1/agents",
        id: "listAgents",
        summary: "The agents of the project's files and the stored ones, by name",
        parameters: &["limit", "cursor"],
        body: Body::None,
        answers: &[json_answer(200, of::<Page<AgentSummary>>, "a page of agents")],
        refusals: &[&[400]],
    },
    Operation {
        method: "GET",
        path: "/api/v1/agents/{refName}",
        id: "showAgent",
        summary: "One agent",
        parameters: &["agentName"],
        body: Body::None,
        answers: &[agent(200, "the agent; one of a file has no `ETag`")],
        refusals: &[&[400, 404]],
    },
    Operation {
        method: "PUT",
        path: "/api/v1/agents/{refName}",
        id: "storeAgent",
        summary: "Stores an agent, or its next version; for administrators",
        parameters: &["agentName", "ifMatch", "ifNoneMatch"],
        body: Body::Json(of::<Agent>),
        answers: &[
            agent(200, "the next version is stored"),
            agent(201, "the agent is stored for the first time"),
        ],
        refusals: &[&[401, 409, 412], BODY, WRITE],
    },
    Operation {
        method: "DELETE",
        path: "/api/v1/agents/{refName}",
        id: "removeAgent",
        summary: "Removes a stored agent; runs that began go on with it; for administrators",
        parameters: &["agentName"],
        body: Body::None,
        answers: &[Answer {
            status: 204,
            about: "it is gone",
            content: Content::None,
            headers: &[],
        }],
        refusals: &[&[400, 401, 404, 409], WRITE],
    },
];

/// `/api/agent/config`, with and without a slash at the end.
pub(super) const ENTITIES: &[Operation] = &[
    Operation {
        method: "GET",
        path: "/api/agent/config/list",
        id: "listAgentEntities",
        summary: "All agents as entities, by name",
        parameters: &["realm"],
        body: Body::None,
        answers: &[json_answer(200, of::<Vec<Agent>>, "the agents")],
        refusals: &[&[400, 404]],
    },
    Operation {
        method: "GET",
        path: "/api/agent/config/{refName}",
        id: "showAgentEntity",
        summary: "One agent as an entity, by its name",
        parameters: &["agentName", "realm"],
        body: Body::None,
        answers: &[json_answer(200, of::<Agent>, "the agent")],
        refusals: &[&[400, 404]],
    },
    Operation {
        method: "GET",
        path: "/api/agent/config/id/{id}",
        id: "showAgentEntityById",
        summary: "One agent as an entity, by its id",
        parameters: &["agentId", "realm"],
        body: Body::None,
        answers: &[json_answer(200, of::<Agent>, "the agent")],
        refusals: &[&[400, 404]],
    },
    Operation {
        method: "POST",
        path: "/api/agent/config",
        id: "saveAgentEntity",
        summary: "Stores an agent under its `refName`, or its next version; for administrators",
        parameters: &["realm"],
        body: Body::Json(of::<Agent>),
        answers: &[json_answer(200, of::<Agent>, "the agent as it is stored, with its id")],
        refusals: &[&[401, 404, 409], BODY, WRITE],
    },
    Operation {
        method: "DELETE",
        path: "/api/agent/config/{refName}",
        id: "deleteAgentEntity",
        summary: "Removes a stored agent by its name; for administrators",
        parameters: &["agentName", "realm"],
        body: Body::None,
        answers: &[json_answer(200, of::<AgentDeleted>, "it is gone")],
        refusals: &[&[400, 401, 404, 409], WRITE],
    },
    Operation {
        method: "DELETE",
        path: "/api/agent/config/id/{id}",
        id: "deleteAgentEntityById",
        summary: "Removes a stored agent by its id; for administrators",
        parameters: &["agentId", "realm"],
        body: Body::None,
        answers: &[json_answer(200, of::<AgentDeleted>, "it is gone")],
        refusals: &[&[400, 401, 404, 409], WRITE],
    },
];
