//! gRPC calls over HTTP/2: length-prefixed messages out and in, and the status in the trailers.
//! Nothing is compressed. Messages and statuses are interpreted by the caller.

use crate::client::Client;
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use reqwest::{Body, StatusCode, Url};

/// Before each message: whether it is compressed, and its length in four bytes.
const PREFIX_BYTES: usize = 5;
/// The media type of requests and answers; answers may name the form of messages behind it.
const MEDIA_TYPE: &str = "application/grpc";
const ACCEPTED: &str = "grpc-accept-encoding";
/// How long the caller waits: up to eight digits and a unit.
const TIMEOUT: &str = "grpc-timeout";
const TIMEOUT_MAX: u64 = 99_999_999;
/// How a call ended.
const STATUS: &str = "grpc-status";

pub struct Call {
    /// The method: its service is the first part of the path.
    pub url: Url,
    /// Headers beside those of gRPC itself.
    pub headers: HeaderMap,
    pub message: Vec<u8>,
    /// How long the other side may take: the deadline that is sent.
    pub within_ms: u64,
    /// How many bytes the whole answer may have.
    pub bytes_max: usize,
}

/// Why there is no more of an answer.
#[derive(Debug)]
pub enum StreamError {
    /// It has more bytes than it may.
    TooLarge,
    Lost(reqwest::Error),
    /// It ends in the middle of a message, or without a status.
    CutOff,
    /// Not a gRPC message, with the reason.
    Malformed(&'static str),
}

/// An answer whose messages are still to be read.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Body,
    trailers: HeaderMap,
    messages: Messages,
}

/// Sends a call once, over a client of HTTP/2, and gives its answer as soon as the head of it is
/// there. Dropping the answer ends the call.
pub async fn call(client: &Client, call: Call) -> Result<Answer, reqwest::Error> {
    let Call { url, mut headers, message, within_ms, bytes_max } = call;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(ACCEPTED, HeaderValue::from_static("identity"));
    // Digits and a letter, which every header can hold.
    if let Ok(timeout) = HeaderValue::try_from(timeout(within_ms)) {
        headers.insert(TIMEOUT, timeout);
    }
    let response = client.post(url).headers(headers).body(framed(&message)).send().await?;
    let (head, body) = Response::<Body>::from(response).into_parts();
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body,
        trailers: HeaderMap::new(),
        messages: Messages { held: BytesMut::new(), bytes_left: bytes_max },
    })
}

impl Answer {
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether it is an answer of gRPC at all, and not one of something on the way.
    pub fn is_grpc(&self) -> bool {
        let kind = self.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let is_typed = self.status == StatusCode::OK && kind.starts_with(MEDIA_TYPE.as_bytes());
        is_typed || self.headers.contains_key(STATUS)
    }

    /// The next message; none at the end of a call that has its status.
    pub async fn message(&mut self) -> Result<Option<Bytes>, StreamError> {
        loop {
            if let Some(message) = self.messages.first()? {
                return Ok(Some(message));
            }
            let Some(frame) = self.body.frame().await else { break };
            match frame.map_err(StreamError::Lost)?.into_data() {
                Ok(piece) => self.messages.add(&piece)?,
                Err(other) => self.trailers = other.into_trailers().unwrap_or_default(),
            }
        }
        match self.messages.held.is_empty() && self.ending().is_some() {
            true => Ok(None),
            false => Err(StreamError::CutOff),
        }
    }

    /// The headers that say how the call ended, once they came: the first ones where it failed
    /// before anything was sent.
    pub fn ending(&self) -> Option<&HeaderMap> {
        [&self.trailers, &self.headers].into_iter().find(|headers| headers.contains_key(STATUS))
    }
}

/// Decoder of a body's messages.
#[derive(Debug)]
struct Messages {
    /// Bytes that are not decoded yet.
    held: BytesMut,
    /// How many bytes may still come.
    bytes_left: usize,
}

impl Messages {
    fn add(&mut self, piece: &[u8]) -> Result<(), StreamError> {
        self.bytes_left = self.bytes_left.checked_sub(piece.len()).ok_or(StreamError::TooLarge)?;
        self.held.extend_from_slice(piece);
        Ok(())
    }

    /// The first message, if all of it is there.
    fn first(&mut self) -> Result<Option<Bytes>, StreamError> {
        let Some((prefix, rest)) = self.held.split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let [flag, length @ ..] = *prefix;
        match flag {
            0 => {}
            1 => return Err(StreamError::Malformed("a message is compressed")),
            _ => return Err(StreamError::Malformed("a message begins with neither 0 nor 1")),
        }
        let length = u32::from_be_bytes(length) as usize;
        let missing = length.saturating_sub(rest.len());
        if missing > self.bytes_left {
            return Err(StreamError::TooLarge);
        }
        if missing > 0 {
            return Ok(None);
        }
        self.held.advance(PREFIX_BYTES);
        Ok(Some(self.held.split_to(length).freeze()))
    }
}

/// A message as it goes out.
fn framed(message: &[u8]) -> Vec<u8> {
    // A length that does not fit would be of a request of four gigabytes.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes()[..], message].concat()
}

fn timeout(ms: u64) -> String {
    match ms <= TIMEOUT_MAX {
        true => format!("{ms}m"),
        false => format!("{}S", (ms / 1_000).min(TIMEOUT_MAX)),
    }
}

#[cfg(test)]
mod tests;
