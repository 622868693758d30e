//! An operation over gRPC. Its parameters are those of JSON, written by the shape of its request,
//! and its answer is read into the same JSON that other bindings have. What we show of ourselves is
//! taken out of it.

use super::exchange::{Reply, Request, Way};
use crate::cut;
use bytes::Bytes;
use kernel::tool::call::ToolError;
use outbound::answer::Effect;
use outbound::grpc::{self, Answer, Broken};
use outbound::redaction::Hidden;
use outbound::trace::traced;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Number, Value};
use wire::a2a::proto::status::{HEADER_DETAILS, Status};
use wire::a2a::proto::{Operation, to_json, write};

/// How deep an answer nests at most, as in JSON.
const DEPTH_MAX: usize = 128;
/// How much an error says of a connection that broke.
const TOLD_CHARS_MAX: usize = 1_000;

/// What was read of an answer.
enum Read {
    /// Its message, if it has one, up to the status.
    Message(Option<Bytes>),
    /// It is not as gRPC has it.
    Malformed(&'static str),
}

impl Way {
    /// Sends a call once and reads its answer, however it ended.
    pub(super) async fn call(
        &self,
        request: Request<'_>,
        operation: Operation,
        within_ms: u64,
    ) -> Result<Reply, ToolError> {
        let Request { url, headers, body, effect, bytes_max, trace, .. } = request;
        if let Some(number) = body.and_then(inexact) {
            let why = format!("agent `{}`: gRPC cannot carry {number} exactly", self.name);
            let refused = ToolError::not_sent("InputValidationError", why);
            return Err(refused.hint("its numbers are doubles; send this one as a text"));
        }
        let headers = headers.into_iter();
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        let shown = self.shown().await?;
        let (url, mut headers) = shown.added(&url, &headers.collect::<HeaderMap>());
        traced(&mut headers, trace);
        let message = write(operation.request(), &body);
        let call = grpc::Call { url, headers, message, within_ms, bytes_max };
        let hide = |error: ToolError| without_secrets(error, shown.hidden());
        let answer = grpc::call(self.http2.client()?, call).await;
        let mut answer = answer.map_err(|error| hide(self.unanswered(error, effect)))?;
        let mut reply = Reply {
            status: answer.status().as_u16(),
            body: Value::Null,
            told: String::new(),
            ended: None,
        };
        if !answer.is_grpc() {
            self.refused_token(reply.status == 401);
            return Ok(reply);
        }
        let read = self.single(&mut answer, effect, bytes_max).await.map_err(hide)?;
        let message = match read {
            Read::Message(message) => message,
            Read::Malformed(why) => return Ok(Reply { told: why.to_owned(), ..reply }),
        };
        let ended = ended(&answer, shown.hidden());
        self.refused_token(ended.name() == "UNAUTHENTICATED");
        reply.ended = Some(ended);
        match message.map(|message| to_json(operation.answer(), &message, DEPTH_MAX)) {
            Some(Ok(members)) => reply.body = Value::Object(members),
            Some(Err(why)) => reply.told = shown.hidden().told(&why.to_string()),
            None => {}
        }
        shown.hidden().mask(&mut reply.body);
        Ok(reply)
    }

    /// The next call asks for another token, if this one `is_refused`.
    fn refused_token(&self, is_refused: bool) {
        if let (true, Some(tokens)) = (is_refused, &self.tokens) {
            tokens.forget();
        }
    }

    /// The one message of an answer, read to its end.
    async fn single(
        &self,
        answer: &mut Answer,
        effect: Effect,
        bytes_max: usize,
    ) -> Result<Read, ToolError> {
        let mut message = None;
        loop {
            match answer.message().await {
                Ok(None) => return Ok(Read::Message(message)),
                Ok(next) if message.is_none() => message = next,
                Ok(Some(_)) => return Ok(Read::Malformed("several messages came, and not one")),
                Err(Broken::Malformed(why)) => return Ok(Read::Malformed(why)),
                Err(Broken::TooLarge) => return Err(self.too_large(bytes_max, effect)),
                Err(Broken::Lost(error)) => return Err(self.unanswered(error, effect)),
                Err(Broken::CutOff) => return Err(self.lost("the answer has no end", effect)),
            }
        }
    }
}

/// A whole number that would arrive as another one: all numbers are doubles there.
fn inexact(value: &Value) -> Option<&Number> {
    match value {
        Value::Number(number) => {
            let whole = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64())?;
            (whole as f64 as u128 != u128::from(whole)).then_some(number)
        }
        Value::Array(items) => items.iter().find_map(inexact),
        Value::Object(members) => members.values().find_map(inexact),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

/// The same error, which may quote the other side: a connection of HTTP/2 is closed with words.
fn without_secrets(mut error: ToolError, hidden: &Hidden) -> ToolError {
    error.fault.message = cut(&hidden.told(&error.fault.message), TOLD_CHARS_MAX);
    error
}

/// How the call ended. Details that cannot be read are left out: the status itself counts.
fn ended(answer: &Answer, hidden: &Hidden) -> Status {
    let header = |name: &str| answer.ending()?.get(name)?.to_str().ok();
    let whole = Status::of_headers(header);
    let bare = |_| Status::of_headers(|name| header(name).filter(|_| name != HEADER_DETAILS));
    let mut status = whole.or_else(bare).unwrap_or_else(|_| Status::named("UNKNOWN", ""));
    status.message = hidden.told(&status.message);
    status.details.iter_mut().for_each(|detail| hidden.mask(detail));
    status
}
