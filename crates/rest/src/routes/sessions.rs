//! Routes of `/api/v1/sessions` and `/api/v1/events`.

use crate::sessions;
use crate::streams::feed;
use crate::streams::session;
use axum::routing::{delete, get, post};
use edge::acts::Right::Engine;
use edge::openapi::{BODY, Body, Content, READ, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{ContextAnswer, ForkBody, HistoryEntry, Page, PruneAnswer, PruneBody, Session};

/// `/api/v1/sessions` and `/api/v1/events`.
pub(super) const SESSIONS: &[Route<Shared>] = &[
    Route::get("/api/v1/sessions", || get(sessions::list), Engine(Act::Read))
        .says("listSessions", "Sessions, newest first")
        .parameters(&["ofStatus", "ofPlan", "ofAgent", "ofSpace", "limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<Session>>, "a page of sessions")])
        .refusals(&[&[400], READ]),
    Route::post("/api/v1/sessions/prune", || post(sessions::prune), Engine(Act::Operate))
        .says(
            "pruneSessions",
            "Removes old sessions that are over and old runs of others; for administrators",
        )
        .body(Body::Json(of::<PruneBody>))
        .answers(&[json_answer(200, of::<PruneAnswer>, "what was removed")])
        .refusals(&[&[401], BODY, WRITE]),
    Route::get("/api/v1/sessions/{id}", || get(sessions::show), Engine(Act::Read))
        .says("showSession", "One session; with its conversation, if it is a thread")
        .parameters(&["sessionId", "space"])
        .answers(&[json_answer(200, of::<Session>, "the session")])
        .refusals(&[&[400, 404], READ]),
    Route::delete("/api/v1/sessions/{id}", || delete(sessions::remove), Engine(Act::Remove))
        .says("removeSession", "Removes a session that does not move, with all that belongs to it")
        .parameters(&["sessionId", "space", "unsent"])
        .answers(&[answer(204, Content::None, "it is gone")])
        .refusals(&[&[400, 404, 409], WRITE]),
    Route::get("/api/v1/sessions/{id}/history", || get(sessions::history), Engine(Act::Read))
        .says("listHistory", "A session's finished tool calls, newest first")
        .parameters(&["sessionId", "space", "limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<HistoryEntry>>, "a page of finished calls")])
        .refusals(&[&[400, 404], READ]),
    Route::get("/api/v1/sessions/{id}/context", || get(sessions::context), Engine(Act::Read))
        .says("showContext", "A session's context")
        .parameters(&["sessionId", "space"])
        .answers(&[json_answer(200, of::<ContextAnswer>, "the context")])
        .refusals(&[&[400, 404], READ]),
    Route::get("/api/v1/sessions/{id}/events", || get(session::follow), Engine(Act::Read))
        .says(
            "followSession",
            "A session's journal as server-sent events: `snapshot`, each event, `end`",
        )
        .parameters(&["sessionId", "space", "after", "lastEventId"])
        .answers(&[answer(200, Content::Events, "a stream of events")])
        .refusals(&[&[400, 404, 410], READ]),
    Route::post("/api/v1/sessions/{id}/fork", || post(sessions::fork), Engine(Act::Fork))
        .says(
            "forkSession",
            "Makes a session that begins as a copy of this one, up to one of its events",
        )
        .parameters(&["sessionId", "space"])
        .body(Body::Maybe(of::<ForkBody>))
        .answers(&[json_answer(201, of::<Session>, "the new session").headers(&["Location"])])
        .refusals(&[BODY, &[404, 409, 410], WRITE]),
    Route::get("/api/v1/sessions/{id}/export", || get(sessions::export), Engine(Act::Export))
        .says("exportSession", "A session with its whole journal and history")
        .parameters(&["sessionId", "space"])
        .answers(&[answer(200, Content::AnyJson, "`{session, events, history}`")])
        .refusals(&[&[400, 404, 413], READ]),
    Route::get("/api/v1/events", || get(feed::follow), Engine(Act::Read))
        .says(
            "followAll",
            "All journals of the realm as server-sent events: `snapshot`, then each event",
        )
        .parameters(&["afterCursor", "lastEventId"])
        .answers(&[answer(200, Content::Events, "a stream of events; the `id` of each is opaque")])
        .refusals(&[&[400, 410], READ]),
];
