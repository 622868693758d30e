//! Routes of `/api/query`: the tools of records over HTTP.

use crate::query_gateway;
use axum::routing::{get, post};
use edge::acts::Right::Engine;
use edge::openapi::{Answer, BODY, Body, Content, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::query_gateway::RecordArguments;
use wire::rest::PendingCall;

const ARGUMENTS: Body = Body::Json(of::<RecordArguments>);
const ANSWERS: &[Answer] = &[
    answer(200, Content::AnyJson, "the output of the tool"),
    json_answer(202, of::<PendingCall>, "a person is asked, or the call continues")
        .headers(&["Location", "Idempotency-Replayed"]),
];
/// What can go wrong with a call on records beside its body.
const REFUSALS: &[&[u16]] = &[BODY, &[404, 409, 410, 502], WRITE];

/// All of them.
pub(super) const QUERY_GATEWAY: &[Route<Shared>] = &[
    Route::get("/api/query/rootTypes", || get(query_gateway::root_types), Engine(Act::Call))
        .says("listRootTypes", "The types of records that the caller may read, by name")
        .answers(ANSWERS)
        .refusals(&[&[400, 404]]),
    Route::post("/api/query/plan", || post(query_gateway::plan), Engine(Act::Call))
        .says("planQuery", "How a query would be run: `query_plan`")
        .body(ARGUMENTS)
        .answers(ANSWERS)
        .refusals(REFUSALS),
    Route::post("/api/query/find", || post(query_gateway::find), Engine(Act::Call))
        .says("findRecords", "Records that a query takes, page by page: `query_find`")
        .body(ARGUMENTS)
        .answers(ANSWERS)
        .refusals(REFUSALS),
    Route::post("/api/query/count", || post(query_gateway::count), Engine(Act::Call))
        .says("countRecords", "How many records a query takes, also in groups: `query_count`")
        .body(ARGUMENTS)
        .answers(ANSWERS)
        .refusals(REFUSALS),
    Route::post("/api/query/save", || post(query_gateway::save), Engine(Act::Call))
        .says("saveRecord", "Makes, replaces or changes a record: `query_save`")
        .parameters(&["idempotencyKey"])
        .body(ARGUMENTS)
        .answers(ANSWERS)
        .refusals(REFUSALS),
    Route::post("/api/query/delete", || post(query_gateway::delete), Engine(Act::Call))
        .says("deleteRecord", "Deletes one record: `query_delete`")
        .parameters(&["idempotencyKey"])
        .body(ARGUMENTS)
        .answers(ANSWERS)
        .refusals(REFUSALS),
    Route::post("/api/query/deleteMany", || post(query_gateway::delete_many), Engine(Act::Call))
        .says("deleteRecords", "Deletes all records that a query takes: `query_deleteMany`")
        .parameters(&["idempotencyKey"])
        .body(ARGUMENTS)
        .answers(ANSWERS)
        .refusals(REFUSALS),
];
