//! `/api/v1/blobs`: large values of the caller's realm, by the hash of their content.

use crate::doors::Shared;
use crate::error::Failure;
use crate::params::{Named, short};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;
use engine::refusal::Refusal;
use kernel::ids::ContentHash;

/// `GET /blobs/{hash}`.
pub(crate) async fn show(
    State(doors): State<Shared>,
    Named(hash): Named,
) -> Result<impl IntoResponse, Failure> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if hash.len() != 64 || !hash.bytes().all(hex) {
        return Err(Refusal::not_found("blob", short(&hash))
            .hint("a blob is named by the 64 hexadecimal digits after `blob://`")
            .into());
    }
    let bytes = doors.engine.blob(doors.caller(), &ContentHash::from(hash)).await?;
    // All that is stored is JSON text today, and what is named by its content never changes.
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "private, max-age=31536000, immutable"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, bytes))
}
