//! Reading JSON bodies. Too large, too slow, too deep, malformed and wrong-typed bodies have errors
//! of their own, each with the place of the fault, and before anything is stored. All bodies
//! together have one budget of bytes.

use crate::problem::{Failure, Result};
use crate::request::server_state::{EndpointState, ServerState};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use http_body_util::BodyExt;
use kernel::tool::schema::Misfit;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a client may take to send a body.
const BODY_WAIT_MS: u64 = 30_000;
/// How long a client may send nothing more of a body that it began.
const BODY_STALL_MS: u64 = 10_000;
/// A body is collected in pieces of this size: one that grew in place would be copied again and
/// again, and one made of what was read would keep the buffers of its connection.
const PIECE_BYTES: usize = 64 * 1024;

/// A body that is required: a JSON object of this shape.
pub struct JsonBody<T>(pub T);

/// A body that may be absent.
pub struct OptionalBody<T>(pub T);

/// A body as it came, for handlers that learn its shape later. Its bytes count against the budget
/// of all bodies until they are dropped, so a handler drops them before it waits for a run.
pub struct RawBody(pub Bytes);

impl<S: EndpointState, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let server = state.server();
        let bytes = read(server, request.into_body()).await?;
        parse(&bytes, server.limits().body_depth_max).map(Self)
    }
}

impl<S: EndpointState, T: DeserializeOwned + Default> FromRequest<S> for OptionalBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let server = state.server();
        let bytes = read(server, request.into_body()).await?;
        parse_maybe(&bytes, server.limits().body_depth_max).map(Self)
    }
}

impl<S: EndpointState> FromRequest<S> for RawBody {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        read(state.server(), request.into_body()).await.map(Self)
    }
}

/// Reads a body to its end, within the limits. Its bytes count against the budget of all bodies as
/// long as they are there.
pub async fn read(server: &ServerState, body: Body) -> Result<Bytes> {
    read_within(server, body, server.limits().body_bytes_max).await
}

/// The same of a body that has at most so many bytes.
pub async fn read_within(server: &ServerState, body: Body, bytes_max: usize) -> Result<Bytes> {
    // What says that it is too large is not read at all.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    let mut reading = pin!(read_all(server, body, bytes_max));
    // Most bodies came with their head: these need no timer.
    match futures::poll!(reading.as_mut()) {
        Poll::Ready(read) => read,
        Poll::Pending => {
            let clock = server.engine.clock().as_ref();
            engine::timeout(clock, BODY_WAIT_MS, reading).await.unwrap_or_else(|| {
                Err(too_slow(format!("the body did not come within {BODY_WAIT_MS} ms")))
            })
        }
    }
}

async fn read_all(server: &ServerState, mut body: Body, bytes_max: usize) -> Result<Bytes> {
    let mut held = BodyBuffer::default();
    while let Some(more) = next(server, &mut body).await? {
        if held.len + more.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        held.add(more, &server.bodies)?;
    }
    Ok(held.whole())
}

/// The next bytes of a body; none at its end.
async fn next(server: &ServerState, body: &mut Body) -> Result<Option<Bytes>> {
    loop {
        let mut coming = body.frame();
        let frame = match futures::poll!(&mut coming) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let clock = server.engine.clock().as_ref();
                engine::timeout(clock, BODY_STALL_MS, coming).await.ok_or_else(|| {
                    too_slow(format!("nothing more of the body came for {BODY_STALL_MS} ms"))
                })?
            }
        };
        match frame {
            None => return Ok(None),
            // Trailers say nothing that is asked for.
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(_) => continue,
            },
            Some(Err(error)) => {
                let message = format!("the body broke off: {error}");
                return Err(Failure::bad_request("body_broken", message));
            }
        }
    }
}

/// A body as far as it has come, with its part of the budget.
#[derive(Default)]
struct BodyBuffer {
    len: usize,
    /// All of it, as long as it is in one piece.
    first: Bytes,
    /// All of it, once there was more.
    pieces: Vec<Vec<u8>>,
    part: Option<OwnedSemaphorePermit>,
}

impl BodyBuffer {
    fn add(&mut self, more: Bytes, budget: &Arc<Semaphore>) -> Result<()> {
        let count = u32::try_from(more.len()).map_err(|_| no_room())?;
        let part = budget.clone().try_acquire_many_owned(count).map_err(|_| no_room())?;
        match &mut self.part {
            Some(held) => held.merge(part),
            None => self.part = Some(part),
        }
        if self.len == 0 {
            self.first = more;
        } else {
            let first = std::mem::take(&mut self.first);
            self.copy(&first);
            self.copy(&more);
        }
        self.len += count as usize;
        Ok(())
    }

    fn copy(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.pieces.last_mut().filter(|piece| piece.len() < PIECE_BYTES) {
                Some(piece) => {
                    let (fits, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - piece.len()));
                    piece.extend_from_slice(fits);
                    bytes = rest;
                }
                None => self.pieces.push(Vec::with_capacity(PIECE_BYTES)),
            }
        }
    }

    /// The whole body; its part of the budget is free when the last of it is dropped.
    fn whole(self) -> Bytes {
        let bytes = match self.pieces.is_empty() {
            true => self.first,
            false => Bytes::from(self.pieces.concat()),
        };
        match self.part {
            Some(part) => Bytes::from_owner(BudgetedBytes { bytes, _part: part }),
            None => bytes,
        }
    }
}

/// Bytes with their part of the budget.
struct BudgetedBytes {
    bytes: Bytes,
    _part: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a JSON object of this shape, or nothing.
pub fn parse_maybe<T: DeserializeOwned + Default>(bytes: &[u8], depth_max: usize) -> Result<T> {
    if bytes.trim_ascii().is_empty() { Ok(T::default()) } else { parse(bytes, depth_max) }
}

/// Reads a JSON object of this shape.
pub fn parse<T: DeserializeOwned>(bytes: &[u8], depth_max: usize) -> Result<T> {
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
pub fn is_deeper(bytes: &[u8], depth_max: usize) -> bool {
    // Most bodies have so few brackets that they cannot: to count those takes a fraction of the
    // time.
    let opens = |byte: &&u8| matches!(byte, b'{' | b'[');
    if bytes.iter().filter(opens).count() <= depth_max {
        return false;
    }
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
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
    Failure::wrong_shape(told).errors(vec![misfit])
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

fn too_large(bytes_max: usize) -> Failure {
    let message = format!("the body has more than {bytes_max} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
        .hint("send less, or raise `body_bytes_max` in `[limits]`")
}

fn too_slow(message: String) -> Failure {
    Failure::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", message).hint("send it again")
}

/// All bodies together are as large as they may be.
fn no_room() -> Failure {
    let message = "the requests that are being read hold all bytes that bodies may have together";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "bodies_busy", message)
        .hint("send it again in a moment, or raise `bodies_bytes_max` in `[limits]`")
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

    /// A body that comes in these pieces, while so many bytes are free.
    fn collected(pieces: &[&[u8]], budget: &Arc<Semaphore>) -> Result<Bytes, (u16, &'static str)> {
        let mut held = BodyBuffer::default();
        for piece in pieces {
            let added = held.add(Bytes::copy_from_slice(piece), budget);
            added.map_err(|failure| (failure.status().as_u16(), failure.code()))?;
        }
        Ok(held.whole())
    }

    #[test]
    fn all_bodies_share_one_budget() {
        let budget = Arc::new(Semaphore::new(8));
        let first = collected(&[b"abc", b"de"], &budget).unwrap();
        assert_eq!((&first[..], budget.available_permits()), (b"abcde".as_slice(), 3));
        assert_eq!(collected(&[b"fg", b"hi"], &budget), Err((503, "bodies_busy")));
        assert_eq!(budget.available_permits(), 3, "a body that is refused holds nothing");
        let second = collected(&[b"fgh"], &budget).unwrap();
        assert_eq!((&second[..], budget.available_permits()), (b"fgh".as_slice(), 0));
        let part = first.slice(1..2);
        drop(first);
        assert_eq!(budget.available_permits(), 0, "a part of it is still there");
        drop((part, second));
        assert_eq!(budget.available_permits(), 8);
        assert_eq!(collected(&[], &budget), Ok(Bytes::new()));
    }

    #[test]
    fn a_body_is_the_same_however_it_comes() {
        let budget = Arc::new(Semaphore::new(1024 * 1024));
        let all: Vec<u8> = (0..3 * PIECE_BYTES).map(|at| (at % 251) as u8).collect();
        for size in [1_000, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 4 * PIECE_BYTES] {
            let pieces: Vec<&[u8]> = all.chunks(size).collect();
            assert!(collected(&pieces, &budget).unwrap() == all, "in pieces of {size}");
        }
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

    #[test]
    fn only_brackets_that_are_open_at_once_are_deep() {
        for (text, deeper) in [
            ("", false),
            ("[[1]]", false),
            ("[{\"a\": [1]}]", true),
            ("[[1], [1], {}, {}]", false),
            ("[\"[[[\"]", false),
            ("[\"\\\"[[[\"]", false),
            ("[\"\\\\\", [[1]]]", true),
        ] {
            assert_eq!(is_deeper(text.as_bytes(), 2), deeper, "{text}");
        }
    }
}
