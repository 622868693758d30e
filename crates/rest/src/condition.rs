//! What a request says of the version that is stored: `If-Match`, `If-None-Match`, and the `ETag`
//! of an answer.

use axum::http::header::{ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use edge::problem::{Failure, Result};
use edge::request::params::short;
use engine::refusal::{Refusal, RefusalCode};

/// What must be true of what is stored.
pub(super) enum Condition {
    None,
    Absent,
    Any,
    Version(u64),
}

impl Condition {
    /// What these headers ask for.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self> {
        let text =
            |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        match (text(IF_MATCH), text(IF_NONE_MATCH)) {
            (None, None) => Ok(Condition::None),
            (Some("*"), None) => Ok(Condition::Any),
            (None, Some("*")) => Ok(Condition::Absent),
            (Some(tag), None) => version(tag).map(Condition::Version).ok_or_else(|| {
                Failure::bad_request("bad_if_match", "`If-Match` is no `ETag` of this server")
                    .hint("send the `ETag` that `GET` gives as it is, or `*`")
            }),
            (_, Some(_)) => Err(Failure::bad_request(
                "bad_if_none_match",
                "`If-None-Match` can only be `*` here, and without `If-Match`",
            )),
        }
    }

    /// The version that must be the newest. What is stored is looked up only where that matters.
    pub(super) async fn expected<E: Into<Failure>>(
        self,
        noun: &str,
        name: &str,
        stored: impl Future<Output = Result<Option<u64>, E>>,
    ) -> Result<Option<u64>> {
        match self {
            Condition::None => Ok(None),
            Condition::Absent => Ok(Some(0)),
            Condition::Version(version) => Ok(Some(version)),
            Condition::Any => match stored.await {
                Ok(Some(version)) => Ok(Some(version)),
                Ok(None) => Err(stale(format!("{noun} `{}` is not stored", short(name)))),
                Err(error) => Err(error.into()),
            },
        }
    }
}

fn version(tag: &str) -> Option<u64> {
    tag.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}

/// What is stored is not what the request says of it.
pub(super) fn stale(message: String) -> Failure {
    let refusal = Refusal::new(RefusalCode::VersionConflict, message);
    not_stored(refusal.hint("read it again and send its `ETag`"))
}

/// Why something is not stored: another version than the request says is a condition that fails.
pub(super) fn not_stored(refusal: Refusal) -> Failure {
    match refusal.code {
        RefusalCode::VersionConflict => {
            Failure::with_status(StatusCode::PRECONDITION_FAILED, refusal)
        }
        _ => refusal.into(),
    }
}

/// The answer with its version, if it has one.
pub(super) fn tagged(mut response: Response, version: Option<u64>) -> Response {
    let Some(version) = version else { return response };
    // A number in quotes is plain ASCII; nothing in it can be refused.
    let tag = HeaderValue::try_from(format!("\"{version}\""));
    response.headers_mut().insert(ETAG, tag.unwrap_or(HeaderValue::from_static("\"\"")));
    response
}
