//! `/api/v1/backup`: a backup of the data folder, on the server's own machine.

use axum::Json;
use axum::http::StatusCode;
use edge::problem::{Failure, Result};
use edge::request::auth::Visitor;
use edge::request::body::JsonBody;
use edge::request::server_state::{Administrator, for_whole_server};
use engine::refusal::{Refusal, RefusalCode};
use futures::future::{Either, select};
use kernel::contracts::StoreError;
use kernel::contracts::backup::BackupError;
use std::path::PathBuf;
use std::pin::pin;
use wire::rest;

/// `POST /backup`: answered when the backup is durable, however long that takes. It is given up
/// when the client goes away, and when the server stops. It holds the server's secret and what is
/// in all realms, so that who administers one of them may not write it.
pub(crate) async fn write(
    Administrator { server, .. }: Administrator,
    visitor: Visitor,
    JsonBody(body): JsonBody<rest::BackupBody>,
) -> Result<Json<rest::BackupAnswer>> {
    for_whole_server(&server, &visitor, "a backup")?;
    let into = PathBuf::from(body.dir);
    let mut closing = server.closing();
    let made = match select(pin!(server.backup.write(into)), pin!(closing.begun())).await {
        Either::Left((made, _)) => made.map_err(refused)?,
        Either::Right(((), _)) => return Err(Refusal::from(StoreError::Closed).into()),
    };
    tracing::info!(folder = made.dir, files = made.files, "a backup was written");
    Ok(Json(made))
}

fn refused(error: BackupError) -> Failure {
    let message = error.to_string();
    match error {
        BackupError::Folder(_) => {
            Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "backup_folder", message).at("/dir")
        }
        BackupError::UnderWay => Failure::new(StatusCode::CONFLICT, "backup_under_way", message),
        BackupError::Full(_) => Refusal::new(RefusalCode::DiskFull, message).into(),
        BackupError::Unsound(_) => Refusal::new(RefusalCode::Unreadable, message).into(),
        BackupError::Failed(_) => {
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "backup_failed", message)
        }
    }
}
