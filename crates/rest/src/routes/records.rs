//! Routes of `/api/v1/records`.

use crate::records;
use axum::routing::{delete, get, patch, post, put};
use edge::acts::Right::Engine;
use edge::openapi::{Answer, BODY, Body, Content, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{Page, PendingCall, Record, RecordPage, RecordType};

const PENDING: Answer =
    json_answer(202, of::<PendingCall>, "a person is asked, or the call continues")
        .headers(&["Location", "Idempotency-Replayed"]);
const SAVED: Answer = json_answer(200, of::<Record>, "the record as it is now").headers(&["ETag"]);
const MADE: Answer =
    json_answer(201, of::<Record>, "the record, which is new").headers(&["ETag", "Location"]);

/// All of them.
pub(super) const RECORDS: &[Route<Shared>] = &[
    Route::get("/api/v1/records", || get(records::types), Engine(Act::Call))
        .says("listRecordTypes", "The types of records that the caller may read, by name")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<RecordType>>, "a page of types")])
        .refusals(&[&[400, 404]]),
    Route::get("/api/v1/records/{type}", || get(records::list), Engine(Act::Call))
        .says("listRecords", "The records of a type that a query takes")
        .parameters(&[
            "recordType", "recordQuery", "limit", "skip", "cursor", "recordSort", "withTotal",
        ])
        .answers(&[json_answer(200, of::<RecordPage>, "a page of records"), PENDING])
        .refusals(&[&[400, 404, 422, 502], WRITE]),
    Route::post("/api/v1/records/{type}", || post(records::insert), Engine(Act::Call))
        .says("insertRecord", "Makes a record")
        .parameters(&["recordType", "idempotencyKey"])
        .body(Body::Json(of::<Record>))
        .answers(&[MADE, PENDING])
        .refusals(&[BODY, &[404, 409, 410, 502], WRITE]),
    Route::get("/api/v1/records/{type}/{id}", || get(records::show), Engine(Act::Call))
        .says("showRecord", "One record")
        .parameters(&["recordType", "recordId"])
        .answers(&[json_answer(200, of::<Record>, "the record").headers(&["ETag"]), PENDING])
        .refusals(&[&[400, 404, 422, 502], WRITE]),
    Route::put("/api/v1/records/{type}/{id}", || put(records::put), Engine(Act::Call))
        .says("putRecord", "Makes a record with this id, or replaces it")
        .parameters(&["recordType", "recordId", "ifMatch", "ifNoneMatch", "idempotencyKey"])
        .body(Body::Json(of::<Record>))
        .answers(&[SAVED, MADE, PENDING])
        .refusals(&[BODY, &[404, 409, 410, 412, 502], WRITE]),
    Route::patch("/api/v1/records/{type}/{id}", || patch(records::patch), Engine(Act::Call))
        .says("patchRecord", "Changes a part of a record: null removes a field (RFC 7396)")
        .parameters(&["recordType", "recordId", "ifMatch", "idempotencyKey"])
        .body(Body::Json(of::<Record>))
        .answers(&[SAVED, PENDING])
        .refusals(&[BODY, &[404, 409, 410, 412, 502], WRITE]),
    Route::delete("/api/v1/records/{type}/{id}", || delete(records::remove), Engine(Act::Call))
        .says("removeRecord", "Deletes a record that no other one refers to")
        .parameters(&["recordType", "recordId", "ifMatch", "idempotencyKey"])
        .answers(&[answer(204, Content::None, "it is gone"), PENDING])
        .refusals(&[&[400, 404, 409, 410, 412, 502], WRITE]),
];
