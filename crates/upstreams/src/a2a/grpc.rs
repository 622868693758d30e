//! A2A operations over gRPC. Parameters and answers are converted from and to the JSON of the other
//! bindings. Our credentials are redacted from answers.

use super::exchange::{AgentChannel, Reply, Request};
use crate::cut;
use bytes::Bytes;
use kernel::tool::call::ToolError;
use outbound::answer::Effect;
use outbound::grpc::{self, Answer, StreamError};
use outbound::redaction::Redactor;
use outbound::trace::traced;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Number, Value};
use wire::a2a::proto::status::{HEADER_DETAILS, Status};
use wire::a2a::proto::{Operation, to_json, write};

/// How deep an answer nests at most, as in JSON.
const DEPTH_MAX: usize = 128;
/// How much an error says of a connection that broke.
const TOLD_CHARS_MAX: usize = 1_000;

enum Read {
    /// Its message, if it has one, up to the status.
    Message(Option<Bytes>),
    /// It is not as gRPC has it.
    Malformed(&'static str),
}

impl AgentChannel {
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
        let ended = ended(answer.ending(), shown.hidden());
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
                Err(StreamError::Malformed(why)) => return Ok(Read::Malformed(why)),
                Err(StreamError::TooLarge) => return Err(self.too_large(bytes_max, effect)),
                Err(StreamError::Lost(error)) => return Err(self.unanswered(error, effect)),
                Err(StreamError::CutOff) => return Err(self.lost("the answer has no end", effect)),
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
fn without_secrets(mut error: ToolError, hidden: &Redactor) -> ToolError {
    error.fault.message = cut(&hidden.told(&error.fault.message), TOLD_CHARS_MAX);
    error
}

/// How the call ended. Details that cannot be read are left out: the status itself counts.
fn ended(ending: Option<&HeaderMap>, hidden: &Redactor) -> Status {
    let header = |name: &str| ending?.get(name)?.to_str().ok();
    let whole = Status::of_headers(header);
    let bare = |_| Status::of_headers(|name| header(name).filter(|_| name != HEADER_DETAILS));
    let mut status = whole.or_else(bare).unwrap_or_else(|_| Status::named("UNKNOWN", ""));
    status.message = hidden.told(&status.message);
    status.details.iter_mut().for_each(|detail| hidden.mask(detail));
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use reqwest::header::HeaderName;
    use testkit::fuzz::hunt::Hunt;
    use testkit::fuzz::mangle::scratch;
    use testkit::sim::rng::Rng;
    use wire::a2a::error::{A2aError, ErrorKind};
    use wire::a2a::proto::status::{HEADER_MESSAGE, HEADER_STATUS};

    /// How many inputs the test command looks at.
    const ENDINGS: u64 = 20_000;
    /// What the agent was shown, and repeats.
    const SECRET: &str = "s3cr3t-token";
    /// Numbers of a status: right ones, and what is none.
    const CODES: &[&str] = &["0", "+0", "-0", "00", " 0", "", "0x0", "17", "99999999999999999999"];

    /// The values of trailers, one on each line: the status, its message and its details.
    fn lines(rng: &mut Rng) -> Vec<u8> {
        let kinds: Vec<ErrorKind> = ErrorKind::all().collect();
        let kind = rng.pick(&kinds).copied().unwrap_or(ErrorKind::Internal);
        let error = A2aError::new(kind, format!("no: {SECRET} is 100 % wrong, \u{e4}"));
        let status = Status::of(&error.violation("message.parts", SECRET));
        let headers = status.headers().into_iter();
        let mut values: Vec<Vec<u8>> = headers.map(|(_, value)| value.into_bytes()).collect();
        if rng.chance(20) {
            let code = rng.pick(CODES).copied().unwrap_or_default();
            values[0] = code.as_bytes().to_vec();
        }
        if rng.chance(50) {
            // Inside of the base64: most changes outside make it none.
            let mut details = STANDARD_NO_PAD.decode(&values[2]).unwrap();
            let other = details.clone();
            for _ in 0..=rng.below(3) {
                scratch(rng, &mut details, &other);
            }
            values[2] = STANDARD_NO_PAD.encode(details).into_bytes();
        }
        let mut bytes = values.join(&b'\n');
        if rng.chance(50) {
            let other = bytes.clone();
            scratch(rng, &mut bytes, &other);
        }
        bytes
    }

    fn trailers(lines: &[u8]) -> HeaderMap {
        let names = [HEADER_STATUS, HEADER_MESSAGE, HEADER_DETAILS];
        let pairs = names.into_iter().zip(lines.split(|byte| *byte == b'\n'));
        let pairs = pairs.filter_map(|(name, value)| {
            Some((HeaderName::from_static(name), HeaderValue::from_bytes(value).ok()?))
        });
        pairs.collect()
    }

    /// A mistake in the status parsed from these trailers.
    fn wrong(headers: &HeaderMap, status: &Status, bare: &Status) -> Option<&'static str> {
        let sent = |name: &str| headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
        let code = sent(HEADER_STATUS);
        let is_zero = !code.is_empty() && code.iter().all(|byte| *byte == b'0');
        let shown = format!("{status:?} {:?}", status.error());
        [
            (status.code == 0 && !is_zero, "something else than zero is success"),
            (status.code != 0 && is_zero, "zero is no success"),
            (shown.contains(SECRET), "a secret is shown"),
            (status.message.len() > 3 * sent(HEADER_MESSAGE).len(), "the message grew"),
            (status.details.len() > sent(HEADER_DETAILS).len(), "there are more details than sent"),
            ((status.code, &status.message) != (bare.code, &bare.message), "details count"),
        ]
        .into_iter()
        .find_map(|(is_wrong, why)| is_wrong.then_some(why))
    }

    #[test]
    fn random_trailers_give_a_status_without_secrets() {
        let hidden = Redactor::default().credentials([SECRET]);
        let mut succeeded = 0_u64;
        let mut detailed = 0_u64;
        let looked = Hunt::new("grpc trailers", ENDINGS).run(lines, |lines: &Vec<u8>| {
            let headers = trailers(lines);
            let status = ended(Some(&headers), &hidden);
            let mut without = headers.clone();
            without.remove(HEADER_DETAILS);
            let bare = ended(Some(&without), &hidden);
            succeeded += u64::from(status.code == 0);
            detailed += u64::from(!status.details.is_empty());
            match wrong(&headers, &status, &bare) {
                Some(why) => Err(format!("{why}: {status:?}")),
                None => Ok(()),
            }
        });
        let is_met = succeeded > 0 && (1..looked).contains(&detailed);
        assert!(looked < 1_000 || is_met, "{succeeded}, {detailed} of {looked}");
        assert_eq!(ended(None, &hidden).name(), "UNKNOWN");
    }
}
