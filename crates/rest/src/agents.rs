//! `/api/v1/agents`: the agents of the project's files and those that are stored. What a file
//! brings is changed in that file alone, so that a reader of the project sees what runs.

use super::condition::{Condition, not_stored, tagged};
use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::JsonBody;
use edge::request::cursors::Purpose;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, not_found};
use edge::request::server_state::{Administrator, ServerState, Who, refuse_filed_agent};
use edge::views::rows;
use engine::KnownAgent;
use kernel::tool::call::Caller;
use kernel::values::ids::AgentName;
use serde_json::{Map, Value};
use std::future::ready;
use wire::rest::{AgentAnswer, AgentSummary, Page};

/// `GET /agents`, by name.
pub(crate) async fn list(
    Who { server, caller }: Who,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<AgentSummary>>> {
    let default = server.agent_of_nameless(&caller);
    let agents = server.engine.catalog().agents(&caller);
    let of = Purpose::of(&caller, "/api/v1/agents");
    let show = |known: KnownAgent| summary(&known, default.as_ref());
    paged(&server, &of, agents, query, |known| known.agent.name.as_str(), show)
}

/// `GET /agents/{refName}`.
pub(crate) async fn show(
    Who { server, caller }: Who,
    PathName(name): PathName,
) -> Result<Response> {
    match server.engine.catalog().agent(&caller, &AgentName::from(name.as_str())) {
        Some(known) => Ok(answer(&server, &caller, &known)),
        None => Err(missing(&server, &caller, &name)),
    }
}

/// `PUT /agents/{refName}`: the body is the agent. 201 for the first version, 200 for the next
/// ones.
pub(crate) async fn store(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
    headers: HeaderMap,
    JsonBody(mut agent): JsonBody<Map<String, Value>>,
) -> Result<(StatusCode, Response)> {
    let condition = Condition::of(&headers)?;
    named_by_path(&mut agent, &name)?;
    let ref_name = AgentName::from(name.as_str());
    refuse_filed_agent(&server, &caller, &ref_name)?;
    let known = server.engine.catalog().agent(&caller, &ref_name);
    let version = ready(Ok::<_, Failure>(known.and_then(|known| known.version)));
    let expected = condition.expected("agent", &name, version).await?;
    let stored =
        server.engine.catalog().register_agent(&caller, Value::Object(agent), expected).await;
    let stored = stored.map_err(not_stored)?;
    let status = if stored.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
    let known = KnownAgent { agent: stored.agent, version: Some(stored.version) };
    Ok((status, answer(&server, &caller, &known)))
}

/// `DELETE /agents/{refName}`.
pub(crate) async fn remove(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
) -> Result<StatusCode> {
    let ref_name = AgentName::from(name.as_str());
    if server.engine.catalog().agent(&caller, &ref_name).is_none() {
        return Err(missing(&server, &caller, &name));
    }
    refuse_filed_agent(&server, &caller, &ref_name)?;
    server.engine.catalog().remove_agent(&caller, &ref_name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An agent with its version, if it has one.
fn answer(server: &ServerState, caller: &Caller, known: &KnownAgent) -> Response {
    let agent = (*known.agent.source).clone();
    let summary = summary(known, server.agent_of_nameless(caller).as_ref());
    tagged(Json(AgentAnswer { summary, agent }).into_response(), known.version)
}

fn summary(known: &KnownAgent, default: Option<&AgentName>) -> AgentSummary {
    rows::agent_summary(known, default == Some(&known.agent.name))
}

/// An agent is stored under the name in its path; one without a name gets it from there.
fn named_by_path(agent: &mut Map<String, Value>, name: &str) -> Result<()> {
    let spelt = ["refName", "ref_name"].into_iter().find(|key| agent.contains_key(*key));
    match spelt.and_then(|key| agent.get(key)) {
        None => {
            agent.insert("refName".to_owned(), Value::from(name));
            Ok(())
        }
        Some(Value::String(given)) if given == name => Ok(()),
        Some(_) => Err(Failure::wrong_value("/refName", "`refName` is not the name in the path")
            .hint("leave it out, or use the same")),
    }
}

fn missing(server: &ServerState, caller: &Caller, name: &str) -> Failure {
    let agents = server.engine.catalog().agents(caller);
    let names = agents.iter().map(|known| known.agent.name.as_str());
    not_found("agent", name, names, "`GET /api/v1/agents` lists the agents")
}
