//! The session endpoints: `/sessions`, `/capabilities` and `/admin/capabilities`.

use crate::plan_sessions;
use axum::routing::{get, post};
use edge::acts::Right::Engine;
use edge::openapi::{Answer, BODY, Body, READ, WRITE, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::plan_sessions::{
    Capabilities, CreateSession, Discover, ExecutePlan, Register, Registered, ResumeBody,
    SessionCore, SessionStatus, SessionView,
};

const ACCEPTED: &[Answer] = &[json_answer(
    202,
    of::<SessionStatus>,
    "where the session stands, once the run ended, paused or took too long",
)
.headers(&["Idempotency-Replayed"])];

/// All of them.
pub(super) const PLAN_SESSIONS: &[Route<Shared>] = &[
    Route::post("/sessions", || post(plan_sessions::create), Engine(Act::Run))
        .says("createSession", "Makes a session, under the client's id if it gives one")
        .body(Body::Maybe(of::<CreateSession>))
        .answers(&[json_answer(201, of::<SessionCore>, "the session")])
        .refusals(&[BODY, &[409], WRITE]),
    Route::get("/sessions/{id}", || get(plan_sessions::show), Engine(Act::Read))
        .says("viewSession", "A session with its context and its history, newest first")
        .parameters(&["sessionId", "limit", "cursor"])
        .answers(&[json_answer(200, of::<SessionView>, "the session")])
        .refusals(&[&[400, 404], READ]),
    Route::post("/sessions/{id}/execute-plan", || post(plan_sessions::execute), Engine(Act::Run))
        .says("executePlan", "Starts a run in a session that is there")
        .parameters(&["sessionId", "idempotencyKey"])
        .body(Body::Json(of::<ExecutePlan>))
        .answers(ACCEPTED)
        .refusals(&[BODY, &[404, 409, 410], WRITE]),
    Route::post("/sessions/{id}/resume", || post(plan_sessions::resume), Engine(Act::Answer))
        .says("resumeSession", "Answers the open ask of a session")
        .parameters(&["sessionId", "idempotencyKey"])
        .body(Body::Maybe(of::<ResumeBody>))
        .answers(ACCEPTED)
        .refusals(&[BODY, &[404, 409, 410], WRITE]),
    Route::get("/capabilities", || get(plan_sessions::capabilities), Engine(Act::Read))
        .says("listCapabilities", "All tools and plans")
        .answers(&[json_answer(200, of::<Capabilities>, "tools and plans")]),
    Route::post("/capabilities/discover", || post(plan_sessions::discover), Engine(Act::Read))
        .says("discoverCapabilities", "Tools and plans that fit a text, best first")
        .body(Body::Json(of::<Discover>))
        .answers(&[json_answer(200, of::<Capabilities>, "what was found")])
        .refusals(&[BODY]),
    Route::post("/admin/capabilities", || post(plan_sessions::register), Engine(Act::Define))
        .says("registerCapability", "Stores a plan; for who may administer")
        .body(Body::Json(of::<Register>))
        .answers(&[json_answer(201, of::<Registered>, "it is stored")])
        .refusals(&[&[401], BODY, WRITE]),
];
