//! `/api/v1/webhooks`.

use super::route::Route;
use crate::a2a::push::listed;
use crate::acts::Right::Engine;
use crate::openapi::{READ, json_answer, of};
use axum::routing::get;
use kernel::values::caller::Act;
use wire::rest::{Page, Webhook};

/// Whom tasks of A2A notify.
pub(super) const WEBHOOKS: &[Route] =
    &[Route::get("/api/v1/webhooks", || get(listed::list), Engine(Act::Read))
        .says(
            "listWebhooks",
            "The webhooks of A2A tasks, newest task first, with state and last error",
        )
        .parameters(&["ofTask", "isLive", "limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<Webhook>>, "a page of webhooks")])
        .refusals(&[&[400], READ])];
