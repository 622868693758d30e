//! `/api/v1/providers`: upstreams that are stored. One is started when it is stored and stopped
//! when it is removed; what runs is shown by `/api/v1/upstreams`. Each is the own of the realm that
//! it is stored in: another may have one of the same name.

use super::condition::{Condition, not_stored, tagged};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use edge::gateway::{Gateway, Member, StoredProvider, leads_inside};
use edge::problem::{Failure, Result};
use edge::request::auth::Visitor;
use edge::request::body::JsonBody;
use edge::request::cursors::Purpose;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, short};
use edge::request::server_state::{Administrator, ServerState, Shared, for_whole_server};
use engine::refusal::{Refusal, RefusalCode};
use kernel::contracts::policy::Resource;
use kernel::contracts::{Definition, Precondition, StoreError, StoredBy};
use kernel::definition::plan::mistake::Mistake;
use kernel::values::caller::{Act, Caller};
use kernel::values::ids::RealmId;
use project::upstream_entries;
use project::upstream_entries::shown_url;
use project::upstream_entries::stored::KIND;
use serde_json::Value;
use std::sync::Arc;
use wire::rest::{Page, Provider, ProviderSummary};

/// `GET /providers`, by name: those that are stored, and those that are configured. Secrets are not
/// shown.
pub(crate) async fn list(
    State(server): State<Shared>,
    visitor: Visitor,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<ProviderSummary>>> {
    let members = server.readable_upstreams(visitor.foremost());
    let of = Purpose::of(&visitor.caller, "/api/v1/providers");
    paged(&server, &of, members, query, |member| member.facts.name.as_str(), summary)
}

fn summary(member: Member) -> ProviderSummary {
    let running = member.upstream.as_ref().map(|upstream| (upstream.config(), upstream.status()));
    let facts = upstream_entries::shown(&member.facts, running);
    ProviderSummary {
        ref_name: facts.name,
        provider_type: provider_type(&facts.kind),
        target: facts.target,
        origin: facts.origin,
        prefix: facts.prefix,
        state: facts.state,
        tools: facts.tools,
    }
}

/// As a provider that is stored says it: an MCP server is one however it is reached.
fn provider_type(kind: &str) -> String {
    match kind {
        "http" | "stdio" => "MCP".to_owned(),
        kind => kind.to_ascii_uppercase(),
    }
}

/// `GET /providers/{refName}`. What may be a secret in an address is for administrators.
pub(crate) async fn show(
    State(server): State<Shared>,
    visitor: Visitor,
    PathName(name): PathName,
) -> Result<Response> {
    let definition = stored(&server.gateway, &visitor.caller.realm, &name).await?;
    let Definition { mut body, version, .. } = definition.ok_or_else(|| missing(&name))?;
    if !visitor.administers() {
        for key in ["baseUrl", "document"] {
            if let Some(Value::String(url)) = body.get_mut(key) {
                *url = shown_url(url);
            }
        }
    }
    Ok(tagged(Json(body).into_response(), Some(version)))
}

/// `PUT /providers/{refName}`: 201 for the first version, 200 for the next ones.
pub(crate) async fn store(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
    judged: Option<Extension<StoredBy>>,
    headers: HeaderMap,
    JsonBody(mut provider): JsonBody<Provider>,
) -> Result<(StatusCode, Response)> {
    named_by_path(&mut provider, &name)?;
    if reaches_further(&provider) {
        server.engine.admin().permit(&caller, Act::Administer, Resource::Server)?;
        let what = "a provider inside the server's own network, or trusted,";
        for_whole_server(&server, &visitor, what)?;
    }
    if let Some(facts) = server.gateway.configured(&caller.realm, &name) {
        let message = format!("upstream `{name}` is configured in {}", facts.origin);
        return Err(Failure::new(StatusCode::CONFLICT, "upstream_configured", message)
            .hint("store it under another name"));
    }
    let provided = StoredProvider::new(&caller.realm, &name, &provider).map_err(unusable)?;
    let condition = Condition::of(&headers)?;
    let definition = Definition {
        kind: KIND.to_owned(),
        name,
        version: 0,
        // A provider is plain data; writing it as JSON cannot fail.
        body: serde_json::to_value(&provider).unwrap_or_default(),
        updated_at: server.engine.clock().now(),
        by: caller.owner(),
    };
    let judged = judged.map(|Extension(judged)| judged);
    let storing = ProviderUpdate { caller, provided, definition, condition, judged };
    let working = server.clone();
    let stored = server.gateway.to_the_end(async move { put_and_begun(&working, storing).await });
    let Definition { body, version, .. } = stored.await.unwrap_or_else(|| Err(ending()))?;
    let status = if version == 1 { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, tagged(Json(body).into_response(), Some(version))))
}

/// A provider to be stored.
struct ProviderUpdate {
    caller: Arc<Caller>,
    provided: StoredProvider,
    definition: Definition,
    condition: Condition,
    /// Who had stored it when policy was asked, if it was.
    judged: Option<StoredBy>,
}

/// Stores it and lets it run, one after the other for all callers.
async fn put_and_begun(server: &ServerState, storing: ProviderUpdate) -> Result<Definition> {
    let ProviderUpdate { caller, provided, definition, condition, judged } = storing;
    let gateway = &server.gateway;
    let _changing = gateway.changing.lock().await;
    let config = gateway.config_of(&provided).map_err(unusable)?;
    let realm = &provided.realm;
    let name = provided.entry.name.as_str();
    let version = async {
        let stored = stored(gateway, realm, name).await;
        stored.map(|stored| stored.map(|definition| definition.version))
    };
    let version = condition.expected("provider", name, version).await?;
    let against = Precondition { version, owner: judged };
    let definition = match server.engine.catalog().store(&caller, definition, against).await {
        Ok(definition) => definition,
        Err(refusal) => return Err(unchanged(server, &caller, name, refusal).await),
    };
    gateway.begin(&provided, config).await;
    Ok(definition)
}

/// `DELETE /providers/{refName}`.
pub(crate) async fn remove(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
    judged: Option<Extension<StoredBy>>,
) -> Result<StatusCode> {
    let judged = judged.map(|Extension(judged)| judged);
    let removing = server.clone();
    let removed = server
        .gateway
        .to_the_end(async move { deleted_and_ended(&removing, &caller, &name, judged).await });
    removed.await.unwrap_or_else(|| Err(ending()))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes it out of the store and ends it.
async fn deleted_and_ended(
    server: &ServerState,
    caller: &Caller,
    name: &str,
    judged: Option<StoredBy>,
) -> Result<()> {
    let gateway = &server.gateway;
    let realm = &caller.realm;
    let _changing = gateway.changing.lock().await;
    match server.engine.catalog().discard(caller, KIND, name, judged).await {
        Ok(true) => {}
        Ok(false) => return Err(missing(name)),
        Err(refusal) => return Err(unchanged(server, caller, name, refusal).await),
    }
    // A configured one of the same name was never replaced by what was stored.
    gateway.log_out(realm, name).await;
    gateway.end(realm, name).await;
    gateway.forget_logins(realm, name).await;
    Ok(())
}

/// Why a provider was not changed. Who may not change what someone else stored meanwhile gets the
/// answer that it would have got later.
async fn unchanged(server: &ServerState, caller: &Caller, name: &str, refusal: Refusal) -> Failure {
    if refusal.code != RefusalCode::Forbidden(Act::Define) {
        return not_stored(refusal);
    }
    let by = match stored(&server.gateway, &caller.realm, name).await {
        Ok(stored) => stored.and_then(|definition| definition.by),
        Err(failure) => return failure,
    };
    let resource = Resource::Definition { kind: KIND, name, defined_by: by.as_deref() };
    match server.engine.admin().reads(caller, resource) {
        true => refusal.into(),
        false => missing(name),
    }
}

/// Whether a provider reaches what is the server's own, its network and its journal: an address
/// that is not public, tools whose effects no one judges, calls that leave no trace.
fn reaches_further(provider: &Provider) -> bool {
    leads_inside(provider) || provider.trusted || !provider.journal
}

/// A provider is stored under the name in its path; one without a name gets it from there.
fn named_by_path(provider: &mut Provider, name: &str) -> Result<()> {
    // The stored form says it in capitals, and takes it in any.
    provider.provider_type.make_ascii_uppercase();
    let given = provider.ref_name.get_or_insert_with(|| name.to_owned());
    if given.as_str() == name {
        return Ok(());
    }
    Err(Failure::wrong_value("/refName", "`refName` is not the name in the path")
        .hint("leave it out, or use the same"))
}

pub(crate) async fn stored(
    gateway: &Gateway,
    realm: &RealmId,
    name: &str,
) -> Result<Option<Definition>> {
    Ok(gateway.definitions().get(realm, KIND, name).await.map_err(Refusal::from)?)
}

/// There is no such stored provider.
pub(crate) fn missing(name: &str) -> Failure {
    Refusal::not_found("stored provider", short(name))
        .hint("`GET /api/v1/upstreams` lists all upstreams, stored ones too")
        .into()
}

/// The server ends, and the work with it.
fn ending() -> Failure {
    Refusal::from(StoreError::Closed).into()
}

fn unusable(mistake: Mistake) -> Failure {
    Failure::wrong_value("", mistake.message).maybe_hint(mistake.hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn further(more: Value) -> bool {
        let mut body = json!({"baseUrl": "https://crm.example.com/api"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        reaches_further(&serde_json::from_value(body).unwrap())
    }

    #[test]
    fn an_mcp_server_is_one_however_it_is_reached() {
        let told = ["http", "stdio", "rest", "rpc", "a2a"].map(provider_type);
        assert_eq!(told, ["MCP", "MCP", "REST", "RPC", "A2A"]);
    }

    #[test]
    fn trusted_or_inward_providers_need_further_rights() {
        for plain in [
            json!({}),
            json!({"baseUrl": "https://me:${WAYPOST_PROVIDER_X}@crm.example.com"}),
            json!({"document": "https://crm.example.com/openapi.json", "providerType": "MCP"}),
            json!({"baseUrl": "http://203.0.114.7"}),
        ] {
            assert!(!further(plain.clone()), "{plain}");
        }
        for reaching in [
            json!({"allowPrivate": true}),
            json!({"trusted": true}),
            json!({"journal": false}),
            json!({"baseUrl": "http://localhost:8420"}),
            json!({"baseUrl": "http://LOCALHOST./"}),
            json!({"baseUrl": "http://169.254.169.254/latest"}),
            json!({"baseUrl": "http://2130706433/"}),
            json!({"baseUrl": "http://0x7f.1/"}),
            json!({"baseUrl": "http://[::ffff:10.0.0.1]/"}),
            json!({"baseUrl": "https://${WAYPOST_PROVIDER_HOST}/"}),
            json!({"document": "http://10.0.0.7/openapi.json"}),
        ] {
            assert!(further(reaching.clone()), "{reaching}");
        }
    }
}
