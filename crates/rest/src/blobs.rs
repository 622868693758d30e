//! `/api/v1/blobs`: large values of the caller's realm, by the hash of their content. They are read
//! from the disk as fast as their client takes them.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::IntoResponse;
use edge::problem::Result;
use edge::request::params::{PathName, short};
use edge::request::server_state::Who;
use engine::refusal::Refusal;
use futures::TryStreamExt;
use kernel::contracts::OpenBlob;
use kernel::values::ids::ContentHash;

/// `GET /blobs/{hash}`.
pub(crate) async fn show(
    Who { server, caller }: Who,
    PathName(hash): PathName,
) -> Result<impl IntoResponse> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if hash.len() != 64 || !hash.bytes().all(hex) {
        return Err(Refusal::not_found("blob", short(&hash))
            .hint("a blob is named by the 64 hexadecimal digits after `blob://`")
            .into());
    }
    let hash = ContentHash::from(hash);
    let OpenBlob { bytes, pieces } = server.engine.sessions().open_blob(&caller, &hash).await?;
    // The status is sent already: a client sees that the answer is shorter than its length.
    let pieces = pieces.inspect_err(move |error| {
        tracing::error!(%hash, %error, "a blob could not be read to its end");
    });
    // All that is stored is JSON text today, and what is named by its content never changes.
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (CACHE_CONTROL, "private, max-age=31536000, immutable".to_owned()),
        (CONTENT_LENGTH, bytes.to_string()),
    ];
    Ok((headers, Body::from_stream(pieces)))
}
