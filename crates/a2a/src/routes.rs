//! The routes: those of the protocol, and `/api/v1/webhooks` with its description.

use crate::protocol_routes;
use crate::push::listed;
use crate::state::Shared;
use axum::Router;
use axum::routing::get;
use edge::acts::Right::Engine;
use edge::openapi::{PROBLEM, READ, json_answer, of};
use edge::routes::{Group, Route, group};
use kernel::values::caller::Act;
use wire::rest::{Page, Webhook};

/// Whom tasks of A2A notify.
const WEBHOOKS: &[Route<Shared>] =
    &[Route::get("/api/v1/webhooks", || get(listed::list), Engine(Act::Read))
        .says(
            "listWebhooks",
            "The webhooks of A2A tasks, newest task first, with state and last error",
        )
        .parameters(&["ofTask", "isLive", "limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<Webhook>>, "a page of webhooks")])
        .refusals(&[&[400], READ])];

/// Every route but those of the protocol, which OpenAPI cannot describe.
pub const TABLE: &[Group<Shared>] = &[group(WEBHOOKS, PROBLEM)];

/// The router of all of them.
pub fn router() -> Router<Shared> {
    edge::routes::router(TABLE, |_, handler| handler).merge(protocol_routes::routes())
}
