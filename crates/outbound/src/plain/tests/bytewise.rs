//! Both ends of one connection in memory: ours asks, the other answers the bytes that the test
//! says.

use super::super::exchange::{ExchangeError, ExchangeOutcome, PlainRequest, Wire};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use std::future::poll_fn;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::yield_now;

/// More than goes over a connection of these tests at once.
const ROOM_BYTES: usize = 64 * 1024;

/// A connection that holds so many bytes, and its other end.
pub(super) async fn connected(bytes: usize) -> (Wire<DuplexStream>, DuplexStream) {
    let (near, far) = duplex(bytes);
    (Wire::open(near, None).await.unwrap(), far)
}

/// A request that posts this body.
pub(super) fn posted(body: Bytes) -> PlainRequest {
    Request::post("/mcp").body(Full::new(body)).unwrap()
}

/// The same with a body of so many bytes.
pub(super) fn posted_bytes(bytes: usize) -> PlainRequest {
    posted(Bytes::from(vec![b'x'; bytes]))
}

/// An answer that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) data: Vec<u8>,
}

/// Asks over this connection, and reads the answer to its end; else how it failed, and why.
pub(super) async fn asked(
    wire: &mut Wire<DuplexStream>,
    sent: PlainRequest,
) -> Result<Whole, String> {
    let head = match wire.exchange(sent).await {
        ExchangeOutcome::Answered(head) => head,
        ExchangeOutcome::Unsent(_, why) => return Err(format!("unsent: {why}")),
        ExchangeOutcome::Unanswered(unanswered) => return Err(told(unanswered)),
    };
    let mut data = Vec::new();
    while let Some(piece) = poll_fn(|context| wire.poll_piece(context)).await.map_err(told)? {
        data.extend_from_slice(&piece);
    }
    let headers = head.headers.iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
    Ok(Whole { status: head.status.as_u16(), headers: headers.collect(), data })
}

fn told(unanswered: ExchangeError) -> String {
    match unanswered {
        ExchangeError::Unreachable(why) => format!("unreachable: {why}"),
        ExchangeError::Lost(why) => format!("lost: {why}"),
        ExchangeError::Garbled(why) => format!("garbled: {why}"),
    }
}

/// Reads a request's head, and whatever else is there with it.
pub(super) async fn heard(stream: &mut DuplexStream) {
    let mut heard = Vec::new();
    while !heard.windows(4).any(|four| four == b"\r\n\r\n") {
        // The other side may have gone.
        if stream.read_buf(&mut heard).await.unwrap() == 0 {
            return;
        }
    }
}

/// The other side: it reads a request's head and answers in these pieces.
async fn answered(stream: &mut DuplexStream, pieces: &[&[u8]]) {
    heard(stream).await;
    for piece in pieces {
        // The other side may have read enough.
        if stream.write_all(piece).await.is_err() {
            return;
        }
        yield_now().await;
    }
}

/// Asks over a connection whose other side answers in these pieces and hangs up.
pub(super) async fn exchanged(pieces: &[&[u8]]) -> Result<Whole, String> {
    let (mut wire, mut far) = connected(ROOM_BYTES).await;
    let (read, ()) = tokio::join!(asked(&mut wire, posted_bytes(0)), async move {
        answered(&mut far, pieces).await;
    });
    read
}

/// Whether a connection can be used again after an answer, if its other side stays.
pub(super) async fn is_kept_after(answer: &[u8]) -> bool {
    let (mut wire, mut far) = connected(ROOM_BYTES).await;
    let pieces = [answer];
    let (read, ()) = tokio::join!(asked(&mut wire, posted_bytes(0)), answered(&mut far, &pieces));
    read.unwrap();
    wire.is_reusable()
}
