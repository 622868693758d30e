//! `/api/v1/upstreams`: the servers behind this one, how they are, and a check of one now.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use edge::gateway::Member;
use edge::problem::{Failure, Result};
use edge::request::auth::Visitor;
use edge::request::cursors::Purpose;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, not_found};
use edge::request::server_state::{Administrator, ServerState, Shared};
use engine::BreakerState;
use kernel::tool::breaker::BreakerScope;
use kernel::tool::call::Caller;
use kernel::values::ids::Millis;
use project::upstream_entries;
use std::collections::BTreeMap;
use std::sync::Arc;
use upstreams::{self, UpstreamState, UpstreamStatus};
use wire::rest::{OwnLogin, Page, Upstream, UpstreamBreaker};

/// `GET /upstreams`, by name.
pub(crate) async fn list(
    State(server): State<Shared>,
    visitor: Visitor,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<Upstream>>> {
    let members = server.readable_upstreams(visitor.foremost());
    let of = Purpose::of(&visitor.caller, "/api/v1/upstreams");
    let failing = server.engine.tools().breakers(&visitor.caller.realm);
    let mut own = BTreeMap::new();
    for member in &members {
        own.insert(member.facts.name.clone(), own_login(member, &visitor.caller).await);
    }
    let show = |member: Member| {
        let your_login = own.get(&member.facts.name).cloned().flatten();
        Upstream { your_login, ..shown(&member, &visitor, &failing) }
    };
    paged(&server, &of, members, query, |member| member.facts.name.as_str(), show)
}

/// `GET /upstreams/{name}`.
pub(crate) async fn show(
    State(server): State<Shared>,
    visitor: Visitor,
    PathName(name): PathName,
) -> Result<Json<Upstream>> {
    let member = member(&server, visitor.foremost(), &name)?;
    let failing = server.engine.tools().breakers(&visitor.caller.realm);
    let your_login = own_login(&member, &visitor.caller).await;
    Ok(Json(Upstream { your_login, ..shown(&member, &visitor, &failing) }))
}

/// `POST /upstreams/{name}/check`: connects now and lists; 200 either way, for the question was
/// answered.
pub(crate) async fn check(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
) -> Result<Json<Upstream>> {
    let member = member(&server, &caller, &name)?;
    let upstream = running(&member)?;
    let status = match upstream.check().await {
        Ok(status) => status,
        Err(fault) => UpstreamStatus { last_error: Some(fault), ..unusable(upstream.status()) },
    };
    let shown = upstream_entries::shown(&member.facts, Some((upstream.config(), status)));
    let breaker = breaker(&name, &server.engine.tools().breakers(&caller.realm));
    Ok(Json(Upstream { login_url: upstream.login_url(), breaker, ..shown }))
}

/// The status of one that a check could not use: one that wants a login is not broken.
fn unusable(status: UpstreamStatus) -> UpstreamStatus {
    match status.state {
        UpstreamState::Login => status,
        UpstreamState::Connecting | UpstreamState::Ready | UpstreamState::Failing => {
            UpstreamStatus { state: UpstreamState::Failing, ..status }
        }
    }
}

/// An upstream as this visitor sees it: where someone can log in is for administrators.
fn shown(member: &Member, visitor: &Visitor, failing: &[BreakerState]) -> Upstream {
    let upstream = member.upstream.as_ref();
    let running = upstream.map(|upstream| {
        let status = upstream.status();
        // Only administrators learn what policies say.
        let unfit = upstream.unfit().filter(|_| visitor.administers());
        let last_error = status.last_error.or(unfit);
        (upstream.config(), UpstreamStatus { last_error, ..status })
    });
    let for_login = upstream.filter(|_| visitor.administers());
    let login_url = for_login.and_then(|upstream| upstream.login_url());
    let breaker = breaker(&member.facts.name, failing);
    Upstream { login_url, breaker, ..upstream_entries::shown(&member.facts, running) }
}

/// How the login of the caller is, where each logs in for themselves: nobody sees another's.
async fn own_login(member: &Member, caller: &Caller) -> Option<OwnLogin> {
    let upstream = member.upstream.as_ref()?;
    let upstreams::OwnLogin { is_done, url } = upstream.own_login(caller).await?;
    Some(OwnLogin { done: is_done, url })
}

/// The calls of an upstream that failed in a row.
fn breaker(name: &str, failing: &[BreakerState]) -> Option<UpstreamBreaker> {
    let of_it = |state: &&BreakerState| match &state.guarded {
        BreakerScope::Upstream(upstream) => **upstream == *name,
        BreakerScope::Tool(_) => false,
    };
    let state = failing.iter().find(of_it)?;
    let open_until = state.open_until.map(Millis::rfc3339);
    Some(UpstreamBreaker { failures: state.failures, open_until })
}

/// The member as it runs; one that is left alone is refused.
pub(super) fn running(member: &Member) -> Result<&Arc<upstreams::Upstream>> {
    member.upstream.as_ref().ok_or_else(|| {
        let facts = &member.facts;
        let message = format!("upstream `{}` is disabled in {}", facts.name, facts.origin);
        Failure::new(StatusCode::CONFLICT, "upstream_disabled", message)
            .hint("set `disabled = false` there")
    })
}

/// The upstream of this name; policy was asked about it already.
pub(super) fn member(server: &ServerState, caller: &Caller, name: &str) -> Result<Member> {
    let mut members = server.gateway.members(&caller.realm).into_iter();
    let found = members.find(|member| member.facts.name == name);
    found.ok_or_else(|| missing(server, caller, name))
}

/// There is no upstream of this name, or none that this caller may read.
pub(crate) fn missing(server: &ServerState, caller: &Caller, name: &str) -> Failure {
    let members = server.readable_upstreams(caller);
    let names = members.iter().map(|member| member.facts.name.as_str());
    not_found("upstream", name, names, "`GET /api/v1/upstreams` lists them")
}
