//! The tables of the session doors, `/sessions`, `/capabilities`, `/admin/capabilities`, and of
//! the doors of conversations, `/run`, `/resume`, `/health-check`.

use super::operation::{Answer, BODY, Body, Content, Operation, READ, WRITE, json_answer};
use super::schemas::of;
use wire::seed001::{ResumeThread, RunThread, ThreadAnswer};
use wire::seed004::{
    Capabilities, CreateSession, Discover, ExecutePlan, Register, Registered, ResumeBody,
    SessionCore, SessionStatus, SessionView,
};

const ACCEPTED: &[Answer] = &[Answer {
    status: 202,
    about: "where the session stands, once the run ended, paused or took too long",
    content: Content::Json(of::<SessionStatus>),
    headers: &["Idempotency-Replayed"],
}];

/// All of them.
pub(super) const SESSIONS: &[Operation] = &[
    Operation {
        method: "POST",
        path: "/sessions",
        id: "createSession",
        summary: "Makes a session, under the client's id if it gives one",
        parameters: &[],
        body: Body::Maybe(of::<CreateSession>),
        answers: &[json_answer(201, of::<SessionCore>, "the session")],
        refusals: &[BODY, &[409], WRITE],
    },
    Operation {
        method: "GET",
        path: "/sessions/{id}",
        id: "viewSession",
        summary: "A session with its context and its history, newest first",
        parameters: &["sessionId", "limit", "cursor"],
        body: Body::None,
        answers: &[json_answer(200, of::<SessionView>, "the session")],
        refusals: &[&[400, 404], READ],
    },
    Operation {
        method: "POST",
        path: "/sessions/{id}/execute-plan",
        id: "executePlan",
        summary: "Starts a run in a session that is there",
        parameters: &["sessionId", "idempotencyKey"],
        body: Body::Json(of::<ExecutePlan>),
        answers: ACCEPTED,
        refusals: &[BODY, &[404, 409, 410], WRITE],
    },
    Operation {
        method: "POST",
        path: "/sessions/{id}/resume",
        id: "resumeSession",
        summary: "Answers the open ask of a session",
        parameters: &["sessionId", "idempotencyKey"],
        body: Body::Maybe(of::<ResumeBody>),
        answers: ACCEPTED,
        refusals: &[BODY, &[404, 409, 410], WRITE],
    },
    Operation {
        method: "GET",
        path: "/capabilities",
        id: "listCapabilities",
        summary: "All tools and plans",
        parameters: &[],
        body: Body::None,
        answers: &[json_answer(200, of::<Capabilities>, "tools and plans")],
        refusals: &[],
    },
    Operation {
        method: "POST",
        path: "/capabilities/discover",
        id: "discoverCapabilities",
        summary: "Tools and plans whose id or description has these words",
        parameters: &[],
        body: Body::Json(of::<Discover>),
        answers: &[json_answer(200, of::<Capabilities>, "what was found")],
        refusals: &[BODY],
    },
    Operation {
        method: "POST",
        path: "/admin/capabilities",
        id: "registerCapability",
        summary: "Stores a plan; for who may administer",
        parameters: &[],
        body: Body::Json(of::<Register>),
        answers: &[json_answer(201, of::<Registered>, "it is stored")],
        refusals: &[&[401], BODY, WRITE],
    },
];

/// The outcome of a request in a thread.
const THREAD_ANSWERS: &[Answer] = &[
    Answer {
        status: 200,
        about: "it is done; as a stream its events, the last of them `result`",
        content: Content::JsonOrEvents(of::<ThreadAnswer>),
        headers: &["Idempotency-Replayed"],
    },
    Answer {
        status: 202,
        about: "somebody has to do something first, or it takes longer",
        content: Content::Json(of::<ThreadAnswer>),
        headers: &["Location", "Idempotency-Replayed"],
    },
];

/// The doors of conversations.
pub(super) const THREADS: &[Operation] = &[
    Operation {
        method: "POST",
        path: "/run",
        id: "runThread",
        summary: "Says something to an agent in a thread, which is made if there is none",
        parameters: &["wait", "idempotencyKey"],
        body: Body::Json(of::<RunThread>),
        answers: THREAD_ANSWERS,
        refusals: &[BODY, &[404, 409, 410], WRITE],
    },
    Operation {
        method: "POST",
        path: "/resume",
        id: "resumeThread",
        summary: "Answers what a thread waits for: whole asks, all of them or none",
        parameters: &["wait", "idempotencyKey"],
        body: Body::Json(of::<ResumeThread>),
        answers: THREAD_ANSWERS,
        refusals: &[BODY, &[404, 409, 410], WRITE],
    },
    Operation {
        method: "GET",
        path: "/health-check",
        id: "healthCheck",
        summary: "Whether the server answers",
        parameters: &[],
        body: Body::None,
        answers: &[Answer {
            status: 200,
            about: "a sentence that says so",
            content: Content::AnyJson,
            headers: &[],
        }],
        refusals: &[],
    },
];
