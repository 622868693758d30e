//! `/api/v1/upstreams`: the servers behind this one, how they are, and a check of one now.

use super::tools::{PageQuery, paged};
use crate::doors::{Administrator, Doors, Shared};
use crate::error::Failure;
use crate::gateway::Member;
use crate::params::{Named, Params, short};
use crate::upstreams;
use axum::Json;
use axum::extract::State;
use engine::refusal::{Refusal, RefusalKind};
use kernel::plan::mistake::meant;
use std::sync::Arc;
use tools::remote::{UpstreamState, UpstreamStatus};
use wire::rest::{Page, Upstream};

/// `GET /upstreams`, by name.
pub(crate) async fn list(
    State(doors): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Json<Page<Upstream>> {
    let members = doors.gateway.members().into_iter().map(Arc::new).collect();
    let page = paged(members, query, doors.limits(), |member: &Member| member.facts.name.as_str());
    Json(Page {
        items: page.items.iter().map(|member| shown(member)).collect(),
        next_cursor: page.next_cursor,
    })
}

/// `GET /upstreams/{name}`.
pub(crate) async fn show(
    State(doors): State<Shared>,
    Named(name): Named,
) -> Result<Json<Upstream>, Failure> {
    Ok(Json(shown(&member(&doors, &name)?)))
}

/// `POST /upstreams/{name}/check`: connects now and lists; 200 either way, for the question was
/// answered.
pub(crate) async fn check(
    State(doors): State<Shared>,
    Administrator(_): Administrator,
    Named(name): Named,
) -> Result<Json<Upstream>, Failure> {
    let member = member(&doors, &name)?;
    let Some(upstream) = &member.upstream else {
        let message = format!("upstream `{}` is disabled in {}", name, member.facts.origin);
        return Err(Refusal::new(RefusalKind::Conflict, "upstream_disabled", message)
            .hint("set `disabled = false` there")
            .into());
    };
    let status = match upstream.check().await {
        Ok(status) => status,
        Err(fault) => {
            let state = UpstreamState::Failing;
            UpstreamStatus { state, last_error: Some(fault), ..upstream.status() }
        }
    };
    Ok(Json(upstreams::shown(&member.facts, Some((upstream.config(), status)))))
}

fn shown(member: &Member) -> Upstream {
    let upstream = member.upstream.as_ref();
    let running = upstream.map(|upstream| (upstream.config(), upstream.status()));
    upstreams::shown(&member.facts, running)
}

fn member(doors: &Doors, name: &str) -> Result<Member, Failure> {
    let members = doors.gateway.members();
    let names: Vec<String> = members.iter().map(|member| member.facts.name.clone()).collect();
    members.into_iter().find(|member| member.facts.name == name).ok_or_else(|| {
        let hint = meant(name, names.iter().map(String::as_str))
            .unwrap_or_else(|| "`GET /api/v1/upstreams` lists them".to_owned());
        Refusal::not_found("upstream", short(name)).hint(hint).into()
    })
}
