//! `GET /api/v1/webhooks`: the webhooks of tasks, with how far each has got. Who reads the realm as
//! a whole sees all of it; every other caller sees those that it made. Where a webhook is and what
//! it is shown stays between its maker and its receiver.

use super::target::Target;
use crate::push_parts::PushParts;
use crate::state::Shared;
use axum::Json;
use axum::extract::State;
use edge::problem::{Failure, Result};
use edge::request::cursors::Purpose;
use edge::request::params::{Params, page};
use edge::request::server_state::Who;
use engine::refusal::Refusal;
use kernel::contracts::policy::Resource;
use kernel::contracts::webhooks::{Webhook, WebhookFilter, WebhookMaker};
use kernel::values::ids::{BadId, RunId};
use serde::Deserialize;
use wire::rest;

/// `?task=&live=&limit=&cursor=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebhooksQuery {
    task: Option<String>,
    live: Option<bool>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// `GET /webhooks`, those of the newest task first.
pub(crate) async fn list(
    State(a2a): State<Shared>,
    Who { server, caller }: Who,
    Params(query): Params<WebhooksQuery>,
) -> Result<Json<rest::Page<rest::Webhook>>> {
    let run = query.task.as_deref().map(str::parse::<RunId>).transpose();
    let run = run.map_err(|bad: BadId| Failure::bad_request("bad_query", bad.to_string()))?;
    let reads_all = server.engine.admin().reads(&caller, Resource::Server);
    let maker = (!reads_all).then(|| WebhookMaker::of(&caller));
    let filter = WebhookFilter { run, live: query.live, maker };
    let of = Purpose::of(&caller, "/api/v1/webhooks").filtered(&filter);
    let page = page(query.limit, server.cursors.start(&of, query.cursor)?, server.limits());
    let Some(parts) = &a2a.push else {
        return Ok(Json(rest::Page { items: Vec::new(), next_cursor: None }));
    };
    let found = parts.store.list_webhooks(&caller.realm, &filter, &page).await;
    let found = found.map_err(Refusal::from)?;
    let items = found.items.into_iter().map(|webhook| shown(parts, webhook)).collect();
    Ok(Json(rest::Page { items, next_cursor: server.cursors.next(&of, found.next_cursor) }))
}

fn shown(parts: &PushParts, webhook: Webhook) -> rest::Webhook {
    let Webhook { name, body, standing, .. } = webhook;
    let target = Target::opened(parts, &name, &body.sealed);
    rest::Webhook {
        id: name.id.to_string(),
        task: name.run.to_string(),
        session: body.session.to_string(),
        maker: body.by.subject.to_string(),
        actor: body.by.actor.map(|actor| actor.to_string()),
        dialect: body.dialect,
        target: target.and_then(|target| target.place()),
        live: standing.is_live,
        attempts: standing.attempts,
        made_at: body.made_at.rfc3339(),
        next_at: standing.next_at.map(|at| at.rfc3339()),
        last_error: standing.error,
    }
}
