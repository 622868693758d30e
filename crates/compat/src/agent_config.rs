//! `/api/agent/config`: agents as a framework's entities. They are those of `/api/v1/agents`; what
//! a client keeps beside our keys is given back as it came, and each has an id. A realm must be
//! named, and it must be the caller's.

use axum::Json;
use axum::http::StatusCode;
use edge::problem::{Failure, Result};
use edge::request::body::JsonBody;
use edge::request::params::{Params, PathName, short};
use edge::request::server_state::refuse_filed_agent;
use edge::request::server_state::{Administrator, ServerState, Who};
use engine::KnownAgent;
use engine::refusal::{Refusal, RefusalCode};
use kernel::tool::call::Caller;
use kernel::values::ids::{AgentName, ContentHash, RealmId};
use kernel::values::members::take;
use serde::Deserialize;
use serde_json::{Map, Value};
use wire::agent_config::AgentDeleted;

const ID: &str = "id";
/// As many hexadecimal digits as the ids of such entities have.
const ID_DIGITS: usize = 24;

/// `?realm=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InRealm {
    realm: Option<String>,
}

/// `GET /list`: a bare list, by name.
pub(crate) async fn list(
    Who { server, caller }: Who,
    Params(query): Params<InRealm>,
) -> Result<Json<Vec<Value>>> {
    let realm = realm(&caller, query)?;
    let agents = server.engine.catalog().agents(&caller);
    Ok(Json(agents.iter().map(|known| entity(&realm, known)).collect()))
}

/// `GET /{refName}`.
pub(crate) async fn show(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<InRealm>,
) -> Result<Json<Value>> {
    let realm = realm(&caller, query)?;
    let known = server.engine.catalog().agent(&caller, &AgentName::from(name.as_str()));
    Ok(Json(entity(&realm, &known.ok_or_else(|| missing(&name))?)))
}

/// `GET /id/{id}`.
pub(crate) async fn show_by_id(
    Who { server, caller }: Who,
    PathName(id): PathName,
    Params(query): Params<InRealm>,
) -> Result<Json<Value>> {
    let realm = realm(&caller, query)?;
    Ok(Json(entity(&realm, &with_id(&server, &caller, &id).ok_or_else(|| missing(&id))?)))
}

/// `POST /`: stores the agent under its `refName`, whether there is one or not.
pub(crate) async fn save(
    Administrator { server, caller }: Administrator,
    Params(query): Params<InRealm>,
    JsonBody(mut agent): JsonBody<Map<String, Value>>,
) -> Result<Json<Value>> {
    let realm = realm(&caller, query)?;
    let named = agent.get("refName").or_else(|| agent.get("ref_name")).and_then(Value::as_str);
    if let Some(name) = named.map(AgentName::from) {
        refuse_filed_agent(&server, &caller, &name)?;
        let known = server.engine.catalog().agent(&caller, &name);
        let id = given_id(agent.get(ID))
            .or_else(|| known.as_ref().map(|known| id_of(&realm, known)))
            .unwrap_or_else(|| made_id(&realm, &name));
        refuse_taken(&server, &caller, &id, &name)?;
        agent.insert(ID.to_owned(), Value::from(id));
    }
    let stored =
        server.engine.catalog().register_agent(&caller, Value::Object(agent), None).await?;
    let known = KnownAgent { agent: stored.agent, version: Some(stored.version) };
    Ok(Json(entity(&realm, &known)))
}

/// `DELETE /{refName}`.
pub(crate) async fn remove(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
    Params(query): Params<InRealm>,
) -> Result<Json<AgentDeleted>> {
    realm(&caller, query)?;
    let known = server.engine.catalog().agent(&caller, &AgentName::from(name.as_str()));
    let known = known.ok_or_else(|| missing(&name))?;
    refuse_filed_agent(&server, &caller, &known.agent.name)?;
    server.engine.catalog().remove_agent(&caller, &known.agent.name).await?;
    Ok(Json(AgentDeleted { deleted: true, ref_name: Some(name), id: None }))
}

/// `DELETE /id/{id}`.
pub(crate) async fn remove_by_id(
    Administrator { server, caller }: Administrator,
    PathName(id): PathName,
    Params(query): Params<InRealm>,
) -> Result<Json<AgentDeleted>> {
    realm(&caller, query)?;
    let known = with_id(&server, &caller, &id).ok_or_else(|| missing(&id))?;
    refuse_filed_agent(&server, &caller, &known.agent.name)?;
    server.engine.catalog().remove_agent(&caller, &known.agent.name).await?;
    Ok(Json(AgentDeleted { deleted: true, ref_name: None, id: Some(id) }))
}

/// The realm that the query names: the caller's, or none that is there.
fn realm(caller: &Caller, query: InRealm) -> Result<RealmId> {
    let named = query.realm.filter(|realm| !realm.trim().is_empty());
    let Some(named) = named else {
        let message = "realm query parameter is required";
        return Err(Failure::bad_request("realm_required", message)
            .hint(format!("add `?realm={}`", caller.realm)));
    };
    let realm = &caller.realm;
    if realm.as_str() == named {
        return Ok(realm.clone());
    }
    Err(Refusal::not_found("realm", short(&named)).hint(format!("yours is `{realm}`")).into())
}

/// The agent as its client keeps it.
fn entity(realm: &RealmId, known: &KnownAgent) -> Value {
    let Value::Object(mut fields) = (*known.agent.source).clone() else { return Value::Null };
    fields.insert(ID.to_owned(), Value::from(id_of(realm, known)));
    // A file has our word for it; a client that stores an agent reads the word that it wrote.
    if known.version.is_none()
        && let Some(steps) = take(&mut fields, "promptSteps")
    {
        fields.insert("context".to_owned(), steps);
    }
    Value::Object(fields)
}

fn id_of(realm: &RealmId, known: &KnownAgent) -> String {
    let given = given_id(known.agent.source.get(ID));
    given.unwrap_or_else(|| made_id(realm, &known.agent.name))
}

fn given_id(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned)
}

/// The id of an agent whose client gave none: always the same one.
fn made_id(realm: &RealmId, name: &AgentName) -> String {
    let hash = ContentHash::of(format!("agent\n{realm}\n{name}").as_bytes());
    hash.as_str().chars().take(ID_DIGITS).collect()
}

fn with_id(server: &ServerState, caller: &Caller, id: &str) -> Option<KnownAgent> {
    let agents = server.engine.catalog().agents(caller);
    agents.into_iter().find(|known| id_of(&caller.realm, known) == id)
}

/// An id is one agent's.
fn refuse_taken(server: &ServerState, caller: &Caller, id: &str, name: &AgentName) -> Result<()> {
    let owner = with_id(server, caller, id).filter(|known| known.agent.name != *name);
    let Some(owner) = owner else { return Ok(()) };
    let message = format!("the id `{}` is that of agent `{}`", short(id), owner.agent.name);
    Err(Failure::new(StatusCode::CONFLICT, "id_taken", message)
        .hint("leave `id` out: an agent is stored under its `refName`"))
}

fn missing(name: &str) -> Failure {
    let message = format!("agent not found: {}", short(name));
    Refusal::new(RefusalCode::NotFound, message).into()
}
