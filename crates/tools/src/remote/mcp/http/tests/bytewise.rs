//! Both ends of one connection in memory: ours asks, the other answers the bytes that the test
//! says.

use super::super::exchange::{Exchanged, Wire};
use super::super::head::{Request, Shared};
use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use std::future::poll_fn;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::yield_now;

/// More than goes over a connection of these tests at once.
const ROOM_BYTES: usize = 64 * 1024;

/// A request that is posted.
pub(super) struct Posted {
    method: Method,
    shared: Shared,
    own: HeaderMap,
    body: Bytes,
}

impl Posted {
    /// One with a body of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let body = Bytes::from(vec![b'x'; bytes]);
        Self { method: Method::POST, shared: Shared::default(), own: HeaderMap::new(), body }
    }

    /// As it is written.
    pub(super) fn request(&self) -> Request<'_> {
        let Self { method, shared, own, body } = self;
        Request { method, target: "/mcp", shared, own, bearer: None, body }
    }
}

/// An answer that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) data: Vec<u8>,
}

impl Whole {
    /// One of these parts.
    pub(super) fn new(status: StatusCode, headers: &HeaderMap, data: &[u8]) -> Self {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
        Self { status: status.as_u16(), headers: headers.collect(), data: data.to_vec() }
    }
}

/// Asks over this connection, and reads the answer to its end.
pub(super) async fn asked(wire: &mut Wire<DuplexStream>, posted: &Posted) -> Result<Whole, String> {
    let head = match wire.exchange(&posted.request()).await {
        Exchanged::Answered(head) => head,
        Exchanged::Unsent(why) => return Err(format!("unsent: {why}")),
        Exchanged::Lost(why) => return Err(why),
    };
    let mut data = Vec::new();
    while let Some(piece) = poll_fn(|context| wire.poll_piece(context)).await? {
        data.extend_from_slice(&piece);
    }
    Ok(Whole::new(head.status, &head.headers, &data))
}

/// Reads a request's head, and whatever else is there with it.
pub(super) async fn heard(stream: &mut DuplexStream) {
    let mut heard = Vec::new();
    while !heard.windows(4).any(|four| four == b"\r\n\r\n") {
        // Whoever asks may have gone.
        if stream.read_buf(&mut heard).await.unwrap() == 0 {
            return;
        }
    }
}

/// The other side: it reads a request's head, answers in these pieces, and hangs up.
pub(super) async fn answered(mut stream: DuplexStream, pieces: &[&[u8]]) {
    heard(&mut stream).await;
    for piece in pieces {
        // Whoever asked may have read enough.
        if stream.write_all(piece).await.is_err() {
            return;
        }
        yield_now().await;
    }
}

/// Asks over a connection whose other side answers in these pieces and hangs up; also whether the
/// connection could be used again as far as the answer is concerned.
pub(super) async fn exchanged(pieces: &[&[u8]]) -> (Result<Whole, String>, bool) {
    let (near, far) = duplex(ROOM_BYTES);
    let mut wire = Wire::new(near, None);
    let posted = Posted::new(0);
    let (read, ()) = tokio::join!(asked(&mut wire, &posted), answered(far, pieces));
    let is_reusable = read.is_ok() && wire.is_reusable();
    (read, is_reusable)
}
