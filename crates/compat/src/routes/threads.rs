//! The endpoints of conversations: `/run`, `/resume` and `/health-check`.

use crate::threads;
use axum::routing::{get, post};
use edge::acts::{HEALTH, Right::Engine};
use edge::openapi::{Answer, BODY, Body, Content, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::conversations::{ResumeThread, RunThread, ThreadAnswer};

/// The result of a request in a thread.
const THREAD_ANSWERS: &[Answer] = &[
    answer(
        200,
        Content::JsonOrEvents(of::<ThreadAnswer>),
        "it is done; as a stream its events, the last of them `result`",
    )
    .headers(&["Idempotency-Replayed"]),
    json_answer(202, of::<ThreadAnswer>, "a user has to act first, or it takes longer")
        .headers(&["Location", "Idempotency-Replayed"]),
];

/// All of them.
pub(super) const THREADS: &[Route<Shared>] = &[
    Route::post("/run", || post(threads::run), Engine(Act::Talk))
        .says("runThread", "Says something to an agent in a thread, which is made if there is none")
        .parameters(&["wait", "idempotencyKey"])
        .body(Body::Json(of::<RunThread>))
        .answers(THREAD_ANSWERS)
        .refusals(&[BODY, &[404, 409, 410], WRITE]),
    Route::post("/resume", || post(threads::resume), Engine(Act::Answer))
        .says("resumeThread", "Answers what a thread waits for: whole asks, all of them or none")
        .parameters(&["wait", "idempotencyKey"])
        .body(Body::Json(of::<ResumeThread>))
        .answers(THREAD_ANSWERS)
        .refusals(&[BODY, &[404, 409, 410], WRITE]),
    Route::get("/health-check", || get(threads::health), HEALTH)
        .says("healthCheck", "Whether the server answers")
        .answers(&[answer(200, Content::AnyJson, "a sentence that says so")]),
];
