//! Routes of `/api/v1/runs` and `/api/v1/asks`.

use crate::{asks, runs};
use axum::routing::{get, post};
use edge::acts::Right::Engine;
use edge::openapi::{Answer, BODY, Body, READ, WRITE, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{Ask, AskReply, Page, ReplyAnswer, RunAnswer, RunBody};

/// A run that is over, or that waits, is stuck or continues.
const RUN_ANSWERS: &[Answer] = &[
    json_answer(200, of::<RunAnswer>, "the run is over").headers(&["Idempotency-Replayed"]),
    json_answer(202, of::<RunAnswer>, "the run waits, is stuck or continues")
        .headers(&["Location", "Idempotency-Replayed"]),
];

/// `/api/v1/runs`.
pub(super) const RUNS: &[Route<Shared>] = &[
    Route::post("/api/v1/runs", || post(runs::start), Engine(Act::Run))
        .says("startRun", "Starts a run of a plan or an agent and waits until it ends or pauses")
        .parameters(&["wait", "idempotencyKey"])
        .body(Body::Json(of::<RunBody>))
        .answers(RUN_ANSWERS)
        .refusals(&[BODY, &[404, 409, 410], WRITE]),
    Route::get("/api/v1/runs/{id}", || get(runs::show), Engine(Act::Read))
        .says("showRun", "One run")
        .parameters(&["runId"])
        .answers(&[json_answer(200, of::<RunAnswer>, "the run")])
        .refusals(&[&[400, 404], READ]),
    Route::post("/api/v1/runs/{id}/cancel", || post(runs::cancel), Engine(Act::Cancel))
        .says("cancelRun", "Ends a run: no new effect starts, open asks are withdrawn")
        .parameters(&["runId"])
        .answers(&[
            json_answer(200, of::<RunAnswer>, "the run is over"),
            json_answer(202, of::<RunAnswer>, "the run ends once its calls did")
                .headers(&["Location"]),
        ])
        .refusals(&[&[400, 404, 409], WRITE]),
    Route::post("/api/v1/runs/{id}/pause", || post(runs::pause), Engine(Act::Cancel))
        .says("pauseRun", "Stops a run at its next step")
        .parameters(&["runId"])
        .answers(&[json_answer(200, of::<RunAnswer>, "the run")])
        .refusals(&[&[400, 404, 409], WRITE]),
    Route::post("/api/v1/runs/{id}/continue", || post(runs::go_on), Engine(Act::Answer))
        .says("continueRun", "Continues a paused run")
        .parameters(&["runId"])
        .answers(&[json_answer(200, of::<RunAnswer>, "the run")])
        .refusals(&[&[400, 404, 409], WRITE]),
    Route::post("/api/v1/runs/{id}/retry", || post(runs::retry), Engine(Act::Answer))
        .says("retryRun", "Tries the failed step of a run again and waits like a reply")
        .parameters(&["runId", "wait"])
        .answers(&[
            json_answer(200, of::<RunAnswer>, "the run is over"),
            json_answer(202, of::<RunAnswer>, "the run waits, is stuck again or continues")
                .headers(&["Location"]),
        ])
        .refusals(&[&[400, 404, 409], WRITE]),
];

/// `/api/v1/asks`.
pub(super) const ASKS: &[Route<Shared>] = &[
    Route::get("/api/v1/asks", || get(asks::list), Engine(Act::Read))
        .says("listAsks", "The inbox, oldest first: the open asks unless `status` says otherwise")
        .parameters(&[
            "ofSession", "space", "ofRun", "ofStep", "ofKind", "askStatus", "held", "limit",
            "cursor",
        ])
        .answers(&[json_answer(200, of::<Page<Ask>>, "a page of asks")])
        .refusals(&[&[400, 404], READ]),
    Route::get("/api/v1/asks/{id}", || get(asks::show), Engine(Act::Read))
        .says("showAsk", "One ask")
        .parameters(&["askId"])
        .answers(&[json_answer(200, of::<Ask>, "the ask")])
        .refusals(&[&[400, 404], READ]),
    Route::post("/api/v1/asks/{id}", || post(asks::reply), Engine(Act::Answer))
        .says("replyToAsk", "Answers an ask and waits until its run ends or pauses again")
        .parameters(&["askId", "wait", "idempotencyKey"])
        .body(Body::Json(of::<AskReply>))
        .answers(&[json_answer(
            200,
            of::<ReplyAnswer>,
            "the reply won, whatever the run does then",
        )
        .headers(&["Idempotency-Replayed"])])
        .refusals(&[BODY, &[404, 409, 410], WRITE]),
];
