//! Routes of `/api/v1/sinks`.

use crate::sinks;
use axum::routing::{delete, get, post};
use edge::acts::Right::Engine;
use edge::openapi::{Content, READ, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{Delivery, Page, Sink};

/// Where events go.
pub(super) const SINKS: &[Route<Shared>] = &[
    Route::get("/api/v1/sinks", || get(sinks::list), Engine(Act::Read))
        .says("listSinks", "Where events go, by name, and how far each sink came")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<Sink>>, "a page of sinks")])
        .refusals(&[&[400], READ]),
    Route::delete("/api/v1/sinks/{name}", || delete(sinks::forget), Engine(Act::Operate))
        .says("forgetSink", "Forgets a sink that is not configured any more; for administrators")
        .parameters(&["sinkName"])
        .answers(&[answer(204, Content::None, "its place and its log are gone")])
        .refusals(&[&[400, 401, 404, 409], WRITE]),
    Route::get("/api/v1/sinks/{name}/deliveries", || get(sinks::deliveries), Engine(Act::Read))
        .says("listDeliveries", "A sink's log of deliveries, newest first")
        .parameters(&["sinkName", "deliveryStatus", "limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<Delivery>>, "a page of deliveries")])
        .refusals(&[&[400, 404], READ]),
    Route::post(
        "/api/v1/sinks/{name}/deliveries/{event}/resend",
        || post(sinks::resend),
        Engine(Act::Operate),
    )
    .says("resendEvent", "Sends an event of the log to its sink once more; for administrators")
    .parameters(&["sinkName", "eventId"])
    .answers(&[json_answer(200, of::<Delivery>, "how it went, also if it failed again")])
    .refusals(&[&[400, 401, 404, 409, 410], WRITE]),
    Route::post("/api/v1/sinks/{name}/resume", || post(sinks::resume), Engine(Act::Operate))
        .says(
            "resumeSink",
            "Resumes a sink whose receiver said that it is gone; for administrators",
        )
        .parameters(&["sinkName"])
        .answers(&[json_answer(200, of::<Sink>, "its state")])
        .refusals(&[&[400, 401, 404, 409], WRITE]),
];
