//! Sends a batch of spans: one POST of protobuf, and the classification of its response. No error
//! contains a header.

use crate::config::Destination;
use crate::otlp::Response as Answer;
use futures::future::BoxFuture;
use kernel::contracts::Clock;
use outbound::client::{ClientOptions, LazyClient};
use outbound::retry_after;
use outbound::words::reasons;
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use std::sync::Arc;
use std::time::Duration;

const PROTOBUF: &str = "application/x-protobuf";
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const IDLE_MAX: Duration = Duration::from_secs(90);
/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Takes written spans.
pub(crate) trait Wire: Send + Sync {
    /// Sends them once; gives how many of them were not taken.
    fn post(&self, body: Vec<u8>) -> BoxFuture<'_, Result<u64, SendError>>;
}

/// Why spans were not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendError {
    /// In words.
    pub(crate) why: String,
    /// Whether the same may do better a moment later.
    pub(crate) again: bool,
    /// How long the other side wants us to wait.
    pub(crate) wait_ms: Option<u64>,
}

/// A collector behind HTTP.
pub(crate) struct Http {
    client: LazyClient,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
    clock: Arc<dyn Clock>,
}

impl Http {
    pub(crate) fn new(destination: &Destination, clock: Arc<dyn Clock>) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in &destination.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(value.expose())) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
        let timeout = Duration::from_millis(destination.timeout_ms);
        let options = ClientOptions::default().connect_within(CONNECT_WITHIN).idle_max(IDLE_MAX);
        let client = LazyClient::new(options.certified().only(&destination.url));
        Self { client, url: destination.url.clone(), headers, timeout, clock }
    }

    async fn sent(&self, body: Vec<u8>) -> Result<u64, SendError> {
        let client = self.client.get().map_err(|why| {
            let why = format!("there is no HTTP client: {why}");
            SendError { why, again: false, wait_ms: None }
        })?;
        let request = client.post(self.url.clone()).headers(self.headers.clone());
        let answer = request.timeout(self.timeout).body(body).send().await;
        let mut answer = answer.map_err(|error| {
            let why = reasons(&error.without_url());
            SendError { why, again: true, wait_ms: None }
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(rejected(&read(&mut answer).await));
        }
        let wait_ms = retry_after::wait_ms(answer.headers(), self.clock.now());
        Err(SendError { why: format!("it answered {status}"), again: may_pass(status), wait_ms })
    }
}

impl Wire for Http {
    fn post(&self, body: Vec<u8>) -> BoxFuture<'_, Result<u64, SendError>> {
        Box::pin(self.sent(body))
    }
}

/// As OTLP has it; everything else is the same the next time.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

async fn read(answer: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(part)) = answer.chunk().await {
        body.extend_from_slice(&part);
        if body.len() > ANSWER_BYTES_MAX {
            return Vec::new();
        }
    }
    body
}

/// How many spans a collector says that it did not take. One that says nothing took all.
fn rejected(body: &[u8]) -> u64 {
    let partial = Answer::decode(body).ok().and_then(|answer| answer.partial_success);
    partial.map_or(0, |partial| partial.rejected_spans.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::PartialSuccess;

    #[test]
    fn transient_statuses_are_retryable() {
        let passing: Vec<u16> = [400, 401, 404, 408, 429, 500, 502, 503, 504]
            .into_iter()
            .filter(|status| may_pass(StatusCode::from_u16(*status).unwrap()))
            .collect();
        assert_eq!(passing, [429, 502, 503, 504]);
    }

    #[test]
    fn rejected_spans_are_counted() {
        let partial = |rejected_spans| {
            let partial = PartialSuccess { rejected_spans, error_message: "why".to_owned() };
            Answer { partial_success: Some(partial) }.encode_to_vec()
        };
        assert_eq!(rejected(&partial(3)), 3);
        assert_eq!(rejected(&partial(-1)), 0);
        assert_eq!((rejected(b""), rejected(b"{}")), (0, 0));
    }
}
