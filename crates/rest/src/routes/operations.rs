//! Routes of blobs, backups, health and metrics.

use super::ADMINISTER;
use crate::blobs;
use crate::operations::backup;
use crate::operations::health;
use axum::routing::{get, post};
use edge::acts::{
    ActTarget, HEALTH,
    Right::{Endpoint, Engine},
};
use edge::openapi::{BODY, Body, Content, READ, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{BackupAnswer, BackupBody, Health};

const METRICS_TYPE: &str = "application/openmetrics-text";

/// What is kept, as a whole or piece by piece.
pub(super) const STORED: &[Route<Shared>] = &[
    Route::get("/api/v1/blobs/{hash}", || get(blobs::show), Engine(Act::Read))
        .says("showBlob", "A large value")
        .parameters(&["blobHash"])
        .answers(&[answer(200, Content::AnyJson, "the value")])
        .refusals(&[&[400, 404], READ]),
    Route::post("/api/v1/backup", || post(backup::write), ADMINISTER)
        .says(
            "writeBackup",
            "Writes a backup into a folder of the server's machine; for administrators",
        )
        .body(Body::Json(of::<BackupBody>))
        .answers(&[json_answer(200, of::<BackupAnswer>, "what is in the backup")])
        .refusals(&[&[401, 409], BODY, WRITE]),
];

/// Health and metrics.
pub(super) const OPERATIONS: &[Route<Shared>] = &[
    Route::get("/livez", || get(health::livez), HEALTH)
        .says("live", "Whether the process answers")
        .parameters(&["challenge"])
        .answers(&[json_answer(200, of::<Health>, "it does")]),
    Route::get("/readyz", || get(health::readyz), HEALTH)
        .says("ready", "Whether work can be taken")
        .answers(&[json_answer(200, of::<Health>, "it can")])
        .refusals(&[&[503]]),
    Route::get("/health", || get(health::health), HEALTH)
        .says("health", "Whether the process answers, as clients of pipelines ask it")
        .answers(&[json_answer(200, of::<Health>, "`UP`")]),
    Route::get("/metrics", || get(health::metrics), Endpoint(Act::Read, ActTarget::Server))
        .says("metrics", "Counters and gauges as OpenMetrics")
        .answers(&[answer(200, Content::Text(METRICS_TYPE), "the metrics")])
        .refusals(&[&[500]]),
];
