//! A2A over gRPC: messages in their frames, and blocking calls and streams, each over a connection
//! of its own, by HTTP/2 without TLS. A cut call gives what had arrived: a server may be killed
//! meanwhile.

use super::NoAnswer;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use h2::RecvStream;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use wire::a2a::GRPC_SERVICE;
use wire::a2a::proto::schema::Shape;
use wire::a2a::proto::status::{HEADER_STATUS, Status};
use wire::a2a::proto::{Operation, to_json, write};

/// How deep messages nest at most.
const DEPTH_MAX: usize = 100;

/// The operation of this name; panics if there is no such.
pub fn operation(method: &str) -> Operation {
    Operation::named(method).unwrap_or_else(|| panic!("no operation `{method}`"))
}

pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_be_bytes();
    [&[0][..], &length, message].concat()
}

/// The messages that came whole, and what is behind them: a part of a frame, or a compressed one.
pub fn unframed(mut bytes: &[u8]) -> (Vec<Vec<u8>>, &[u8]) {
    let mut messages = Vec::new();
    while let Some(([0, length @ ..], rest)) = bytes.split_first_chunk::<5>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((message, rest)) = rest.split_at_checked(length) else { break };
        messages.push(message.to_vec());
        bytes = rest;
    }
    (messages, bytes)
}

/// A message as JSON.
pub fn read_as(shape: &Shape, message: &[u8]) -> Value {
    let read = to_json(shape, message, DEPTH_MAX);
    Value::Object(read.unwrap_or_else(|error| panic!("no such message: {error:?}")))
}

/// The status that headers or trailers say.
pub fn status(headers: &HeaderMap) -> Status {
    let status = Status::of_headers(|name| headers.get(name).and_then(|value| value.to_str().ok()));
    status.unwrap_or_else(|error| panic!("no status in {headers:?}: {error:?}"))
}

/// How much of an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Its head: a stream that begins does not end.
    Begun,
    /// All of it.
    Ended,
}

/// A call of the service.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The name of the operation.
    pub method: &'a str,
    /// Headers beside those that every call has.
    pub headers: &'a [(&'a str, &'a str)],
    /// The request as JSON.
    pub params: &'a Value,
    /// How much of the answer is waited for.
    pub until: Until,
}

/// What came of an answer.
#[derive(Debug)]
pub struct GrpcAnswer {
    /// The headers before the first message.
    pub head: HeaderMap,
    /// The messages that came whole.
    pub messages: Vec<Value>,
    /// How the call ended; nothing where it has not, or its connection ended first.
    pub status: Option<Status>,
}

/// Calls once, over a connection of its own, and waits at most this long.
pub fn called(
    address: SocketAddr,
    call: &Call<'_>,
    limit: Duration,
) -> Result<GrpcAnswer, NoAnswer> {
    running(Builder::new_current_thread()).block_on(async {
        let answer = timeout(limit, answered(address, call)).await;
        answer.unwrap_or(Err(NoAnswer::Late(limit)))
    })
}

fn running(mut builder: Builder) -> Runtime {
    let runtime = builder.enable_all().build();
    runtime.unwrap_or_else(|error| panic!("no runtime: {error}"))
}

/// A stream that has begun. Dropping it closes its connection.
#[derive(Debug)]
pub struct Open {
    operation: Operation,
    body: RecvStream,
    bytes: Vec<u8>,
    limit: Duration,
    /// With a thread of its own: the server may ask meanwhile whether anyone is there.
    runtime: Runtime,
}

impl Open {
    /// Calls, and waits at most this long for the first message.
    pub fn begin(address: SocketAddr, call: &Call<'_>, limit: Duration) -> Result<Self, NoAnswer> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1);
        let runtime = running(builder);
        let begun = runtime.block_on(async {
            let first = async {
                let (_, mut body) = begun(address, call).await?;
                let mut bytes: Vec<u8> = Vec::new();
                while unframed(&bytes).0.is_empty() {
                    let Some(piece) = piece(&mut body).await? else {
                        let why = "the stream ended before its first message".to_owned();
                        return Err(NoAnswer::Malformed(why));
                    };
                    bytes.extend_from_slice(&piece);
                }
                Ok((body, bytes))
            };
            timeout(limit, first).await.unwrap_or(Err(NoAnswer::Late(limit)))
        });
        let (body, bytes) = begun?;
        Ok(Self { operation: operation(call.method), body, bytes, limit, runtime })
    }

    /// All its messages and how it ended, once it has.
    pub fn ended(self) -> Result<(Vec<Value>, Status), NoAnswer> {
        let Self { operation, mut body, mut bytes, limit, runtime } = self;
        let trailers = runtime.block_on(async {
            let read = async {
                while let Some(piece) = piece(&mut body).await? {
                    bytes.extend_from_slice(&piece);
                }
                body.trailers().await.map_err(broken)
            };
            timeout(limit, read).await.unwrap_or(Err(NoAnswer::Late(limit)))
        });
        let trailers = trailers?;
        let trailers = trailers.ok_or_else(|| NoAnswer::Malformed("no trailers".to_owned()))?;
        Ok((read_all(operation, &bytes), status(&trailers)))
    }
}

/// The next piece of an answer; none at its end.
async fn piece(body: &mut RecvStream) -> Result<Option<Bytes>, NoAnswer> {
    let Some(piece) = body.data().await else { return Ok(None) };
    let piece = piece.map_err(broken)?;
    body.flow_control().release_capacity(piece.len()).map_err(broken)?;
    Ok(Some(piece))
}

/// The messages that came whole.
fn read_all(operation: Operation, bytes: &[u8]) -> Vec<Value> {
    let (messages, _cut_off) = unframed(bytes);
    messages.iter().map(|message| read_as(operation.answer(), message)).collect()
}

/// Sends a call, and waits for the head of its answer.
async fn begun(address: SocketAddr, call: &Call<'_>) -> Result<(HeaderMap, RecvStream), NoAnswer> {
    let operation = operation(call.method);
    let stream = TcpStream::connect(address).await.map_err(NoAnswer::Unreachable)?;
    let (sender, connection) = h2::client::handshake(stream).await.map_err(broken)?;
    tokio::spawn(connection);
    let mut sender = sender.ready().await.map_err(broken)?;
    let request = request(address, call);
    let (answer, mut sending) = sender.send_request(request, false).map_err(broken)?;
    sending
        .send_data(framed(&write(operation.request(), call.params)).into(), true)
        .map_err(broken)?;
    let answer = answer.await.map_err(broken)?;
    if answer.status() != StatusCode::OK {
        return Err(NoAnswer::Malformed(format!("no call of gRPC: {answer:?}")));
    }
    let (head, body) = answer.into_parts();
    Ok((head.headers, body))
}

async fn answered(address: SocketAddr, call: &Call<'_>) -> Result<GrpcAnswer, NoAnswer> {
    let (head, mut body) = begun(address, call).await?;
    let mut ended = head.contains_key(HEADER_STATUS).then(|| status(&head));
    let mut bytes = Vec::new();
    if call.until == Until::Ended {
        // An error is the end of a server that was killed, or of a request that it need not read.
        while let Ok(Some(piece)) = piece(&mut body).await {
            bytes.extend_from_slice(&piece);
        }
        let trailers = body.trailers().await.ok().flatten();
        ended = ended.or_else(|| trailers.as_ref().map(status));
    }
    Ok(GrpcAnswer { head, messages: read_all(operation(call.method), &bytes), status: ended })
}

fn request(address: SocketAddr, call: &Call<'_>) -> Request<()> {
    let uri = format!("http://{address}{GRPC_SERVICE}/{}", call.method);
    let mut request = Request::builder().method(Method::POST).uri(uri);
    request = request.header("content-type", "application/grpc").header("te", "trailers");
    for (name, value) in call.headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap_or_else(|error| panic!("no request: {error}"))
}

fn broken(error: h2::Error) -> NoAnswer {
    NoAnswer::Broken(io::Error::other(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_was_cut_off_is_no_message() {
        let two = [framed(b"one"), framed(b"")].concat();
        assert_eq!(unframed(&two), (vec![b"one".to_vec(), Vec::new()], &b""[..]));
        for length in 1..framed(b"one").len() {
            let cut = &framed(b"one")[..length];
            let bytes = [&two[..], cut].concat();
            assert_eq!(unframed(&bytes), (vec![b"one".to_vec(), Vec::new()], cut), "{length}");
        }
        let compressed = [1, 0, 0, 0, 0];
        assert_eq!(unframed(&compressed), (Vec::new(), &compressed[..]));
    }
}
