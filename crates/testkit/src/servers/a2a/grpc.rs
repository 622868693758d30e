//! The agent over gRPC, by HTTP/2 at the same port. A call is passed to the agent as the same
//! request of JSON-RPC, and its answer is written back. Messages are read and written by the
//! product's table, which has tests of its own against the official definition.

use super::AgentServer;
use crate::http::Message;
use crate::http::grpc::framed;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use serde_json::{Value, json};
use std::net::TcpStream;
use wire::a2a::error::A2aError;
use wire::a2a::proto::status::Status;
use wire::a2a::proto::{Operation, to_json, write};

/// How a connection of HTTP/2 begins, up to where it differs from one of HTTP/1.1.
pub(super) const PREFACE: [u8; 3] = *b"PRI";
/// Before each message: a flag, and its length.
const PREFIX_BYTES: usize = 5;
const DEPTH_MAX: usize = 100;

/// Serves one connection until it ends.
pub(super) fn serve(server: &AgentServer, stream: TcpStream) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
    runtime.block_on(async {
        let taken = stream.set_nonblocking(true);
        let taken = taken.and_then(|()| tokio::net::TcpStream::from_std(stream));
        let stream = taken.unwrap_or_else(|error| panic!("no connection: {error}"));
        let Ok(mut connection) = h2::server::handshake(stream).await else { return };
        while let Some(Ok((request, respond))) = connection.accept().await {
            tokio::spawn(answer(server.clone(), request, respond));
        }
    });
}

async fn answer(
    server: AgentServer,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) {
    let (head, mut body) = request.into_parts();
    let mut bytes = Vec::new();
    while let Some(Ok(piece)) = body.data().await {
        let _ = body.flow_control().release_capacity(piece.len());
        bytes.extend_from_slice(&piece);
    }
    let method = head.uri.path().rsplit('/').next().unwrap_or_default();
    let Some(operation) = Operation::named(method) else {
        return ended(&mut respond, &Status::named("UNIMPLEMENTED", "no such method"));
    };
    let message = bytes.get(PREFIX_BYTES..).unwrap_or_default();
    let params = to_json(operation.request(), message, DEPTH_MAX).unwrap_or_default();
    let called = json!({"jsonrpc": "2.0", "id": "call", "method": method, "params": params});
    let told = server.desk().answer(&as_message(&head.headers, &called));
    match told {
        None => respond.send_reset(Reason::INTERNAL_ERROR),
        Some(told) if told.status == 503 => {
            ended(&mut respond, &Status::named("UNAVAILABLE", "busy"));
        }
        Some(told) => match told.body.get("error") {
            Some(error) => ended(&mut respond, &Status::of(&A2aError::of_rpc(error))),
            None => succeeded(&mut respond, &write(operation.answer(), &told.body["result"])),
        },
    }
}

/// The call as the agent takes requests.
fn as_message(headers: &HeaderMap, called: &Value) -> Message {
    let headers = headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    Message {
        first_line: "POST /grpc HTTP/2".to_owned(),
        headers: headers.collect(),
        body: called.to_string(),
        bytes: Vec::new(),
        closes: false,
    }
}

fn succeeded(respond: &mut SendResponse<Bytes>, message: &[u8]) {
    // Who has gone by now does not want to know.
    let Ok(mut sending) = respond.send_response(response(HeaderMap::new()), false) else { return };
    let _ = sending.send_data(framed(message).into(), false);
    let _ = sending.send_trailers(headers(&Status::default()));
}

/// A status where a message was expected.
fn ended(respond: &mut SendResponse<Bytes>, status: &Status) {
    let _ = respond.send_response(response(headers(status)), true);
}

fn headers(status: &Status) -> HeaderMap {
    let pairs = status.headers().into_iter().map(|(name, value)| {
        let value = HeaderValue::try_from(value);
        let value = value.unwrap_or_else(|error| panic!("{name}: {error}"));
        (HeaderName::from_static(name), value)
    });
    pairs.collect()
}

fn response(headers: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.headers_mut() = headers;
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", kind);
    response
}
