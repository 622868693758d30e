//! Reading JSON bodies. Too large, too slow, too deep, malformed and wrong-typed are told apart,
//! each with the place of the fault, and before anything is stored.

use crate::doors::{Doors, Shared};
use crate::error::Failure;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use engine::refusal::{Refusal, RefusalKind};
use http_body_util::LengthLimitError;
use kernel::schema::Misfit;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};
use std::error::Error;
use std::pin::pin;
use std::task::Poll;

/// How long a client may take to send a body.
const BODY_WAIT_MS: u64 = 30_000;

/// A body that must be there: a JSON object of this shape.
pub(crate) struct Posted<T>(pub(crate) T);

/// A body that may be absent.
pub(crate) struct Maybe<T>(pub(crate) T);

/// A body as it came, for handlers that learn its shape later.
pub(crate) struct Raw(pub(crate) Bytes);

impl<T: DeserializeOwned> FromRequest<Shared> for Posted<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, doors: &Shared) -> Result<Self, Failure> {
        let bytes = read(doors, request.into_body()).await?;
        parse(&bytes, doors.limits().body_depth_max).map(Self)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<Shared> for Maybe<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, doors: &Shared) -> Result<Self, Failure> {
        let bytes = read(doors, request.into_body()).await?;
        parse_maybe(&bytes, doors.limits().body_depth_max).map(Self)
    }
}

impl FromRequest<Shared> for Raw {
    type Rejection = Failure;

    async fn from_request(request: Request, doors: &Shared) -> Result<Self, Failure> {
        read(doors, request.into_body()).await.map(Self)
    }
}

/// Reads a body to its end, within the limits.
pub(crate) async fn read(doors: &Doors, body: Body) -> Result<Bytes, Failure> {
    let bytes_max = doors.limits().body_bytes_max;
    // What says that it is too large is not read at all.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    let mut reading = pin!(axum::body::to_bytes(body, bytes_max));
    // Most bodies came with their head: these need no timer.
    let read = match futures::poll!(reading.as_mut()) {
        Poll::Ready(read) => Some(read),
        Poll::Pending => {
            engine::timeout(doors.engine.clock().as_ref(), BODY_WAIT_MS, reading).await
        }
    };
    match read {
        Some(Ok(bytes)) => Ok(bytes),
        Some(Err(error)) if is_too_large(&error) => Err(too_large(bytes_max)),
        Some(Err(error)) => {
            Err(Failure::bad_request("body_broken", format!("the body broke off: {error}")))
        }
        None => Err(too_slow()),
    }
}

/// Reads a JSON object of this shape, or nothing.
pub(crate) fn parse_maybe<T: DeserializeOwned + Default>(
    bytes: &[u8],
    depth_max: usize,
) -> Result<T, Failure> {
    if bytes.trim_ascii().is_empty() { Ok(T::default()) } else { parse(bytes, depth_max) }
}

/// Reads a JSON object of this shape.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8], depth_max: usize) -> Result<T, Failure> {
    let is_object = bytes.trim_ascii_start().first() == Some(&b'{');
    if is_object && is_deeper(bytes, depth_max) {
        let message = format!("the body nests deeper than {depth_max} levels");
        return Err(Failure::bad_request("too_deep", message).hint("flatten it"));
    }
    if !is_object {
        return Err(no_object(bytes));
    }
    match serde_json::from_slice(bytes) {
        Ok(body) => Ok(body),
        Err(error) if error.classify() == Category::Data => Err(wrong_shape::<T>(bytes, &error)),
        Err(error) => Err(malformed(&error)),
    }
}

/// Whether brackets outside of strings nest deeper than this; cheaper than parsing, and safe for
/// what is no JSON at all.
pub(crate) fn is_deeper(bytes: &[u8], depth_max: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > depth_max {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// A body of another type, or none. A list would otherwise be taken for an object's values.
fn no_object(bytes: &[u8]) -> Failure {
    if bytes.trim_ascii().is_empty() {
        return Failure::bad_request("no_body", "the request has no body").hint("send JSON");
    }
    match serde_json::from_slice::<IgnoredAny>(bytes) {
        Ok(_) => Failure::wrong_value("", "the body must be a JSON object"),
        Err(error) => malformed(&error),
    }
}

fn malformed(error: &serde_json::Error) -> Failure {
    Failure::bad_request("malformed_json", format!("the body is not JSON: {error}")).hint(format!(
        "look at line {}, column {}",
        error.line(),
        error.column()
    ))
}

/// Parses once more, this time keeping track of where it is: only refused bodies pay for that.
fn wrong_shape<T: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> Failure {
    let deserializer = &mut serde_json::Deserializer::from_slice(bytes);
    let traced: Result<T, _> = serde_path_to_error::deserialize(deserializer);
    let (pointer, message) = match traced {
        Err(traced) => (pointer(traced.path()), traced.inner().to_string()),
        Ok(_) => (String::new(), error.to_string()),
    };
    let misfit = Misfit { pointer, message: message.clone() };
    let told = format!("the body has the wrong shape: {message}");
    Refusal::new(RefusalKind::WrongShape, "wrong_shape", told).errors(vec![misfit]).into()
}

fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<LengthLimitError>() {
            return true;
        }
        source = cause.source();
    }
    false
}

fn too_large(bytes_max: usize) -> Failure {
    let message = format!("the body has more than {bytes_max} bytes");
    let refusal = Refusal::new(RefusalKind::TooLarge, "body_too_large", message)
        .hint("send less, or raise `body_bytes_max` in `[limits]`");
    refusal.into()
}

fn too_slow() -> Failure {
    let message = format!("the body did not come within {BODY_WAIT_MS} ms");
    let refusal = Refusal::new(RefusalKind::BadRequest, "body_too_slow", message);
    Failure::with_status(StatusCode::REQUEST_TIMEOUT, refusal).hint("send it again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shape {
        name: String,
        #[serde(default)]
        rows: Vec<Row>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Row {
        n: u8,
    }

    fn refused(text: &str) -> (u16, &'static str, String) {
        let failure = parse::<Shape>(text.as_bytes(), 4).unwrap_err();
        (failure.status().as_u16(), failure.code(), failure.message().to_owned())
    }

    #[test]
    fn faults_are_told_apart() {
        for (text, status, code) in [
            ("", 400, "no_body"),
            ("  \n", 400, "no_body"),
            ("{", 400, "malformed_json"),
            ("{\"name\": }", 400, "malformed_json"),
            ("{\"name\": \"a\"} x", 400, "malformed_json"),
            ("nope", 400, "malformed_json"),
            ("[]", 422, "wrong_shape"),
            ("[\"a\"]", 422, "wrong_shape"),
            ("7", 422, "wrong_shape"),
            ("{}", 422, "wrong_shape"),
            ("{\"name\": 7}", 422, "wrong_shape"),
            ("{\"name\": \"a\", \"nmae\": 1}", 422, "wrong_shape"),
            ("{\"name\": [[[[1]]]]}", 400, "too_deep"),
        ] {
            let told = refused(text);
            assert_eq!((told.0, told.1), (status, code), "{text}: {}", told.2);
        }
        let fits = parse::<Shape>(b" {\"name\": \"[[[[[[\\\"{{{{{\"}", 4).unwrap();
        assert_eq!(fits.name, "[[[[[[\"{{{{{");
    }

    #[test]
    fn a_wrong_value_is_pointed_at() {
        let text = "{\"name\": \"a\", \"rows\": [{\"n\": 1}, {\"n\": \"x\"}]}";
        let error = serde_json::from_str::<Shape>(text).unwrap_err();
        let deserializer = &mut serde_json::Deserializer::from_str(text);
        let traced = serde_path_to_error::deserialize::<_, Shape>(deserializer).unwrap_err();
        assert_eq!(pointer(traced.path()), "/rows/1/n");
        assert_eq!(error.classify(), Category::Data);
    }
}
