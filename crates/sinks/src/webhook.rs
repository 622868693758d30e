//! Webhook sink: each event is posted with a Standard Webhooks signature. A receiver whose answer
//! was slow or lost gets the event again under the same id.

use crate::sign::Signer;
use futures::future::{BoxFuture, select};
use kernel::contracts::Clock;
use kernel::contracts::cloud::CloudEvent;
use kernel::contracts::sink::{DeliveryReceipt, EventSink, SinkError};
use kernel::definition::plan::mistake::Mistake;
use kernel::values::secret::Secret;
use outbound::addresses::web_url;
use outbound::client::{ClientOptions, LazyClient};
use outbound::retry_after::wait_ms;
use outbound::words::{place, reasons};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode, Url};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How long an answer may take where nothing is said: the least that the specification advises.
const TIMEOUT_MS_DEFAULT: u64 = 15_000;
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How many sessions are posted at the same time.
const LANES: usize = 16;
/// How much of an answer is read, and how much of it is quoted.
const ANSWER_BYTES_MAX: usize = 4 * 1024;
const TOLD_CHARS_MAX: usize = 200;
/// How long the rest of an answer is waited for whose status says that the event is taken.
const REST_MS: u64 = 500;
/// Statuses of 400 and above that speak of the receiver as a whole, or of this moment: where it is,
/// who may come in, how much it can do. The others up to 499 speak of the event.
const OF_THE_RECEIVER: [u16; 11] = [401, 403, 404, 405, 407, 408, 410, 421, 425, 426, 429];

/// Someone who is posted events.
pub(crate) struct Webhook {
    client: LazyClient,
    url: Url,
    signer: Signer,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    /// Its name in messages.
    place: String,
}

impl Webhook {
    /// A webhook at this URL, or all that is wrong with what is said of it.
    pub(crate) fn new(
        name: &str,
        url: &str,
        secret: &Secret,
        timeout_ms: Option<u64>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Vec<Mistake>> {
        let read = web_url("it", url).map_err(|why| {
            Mistake::error(format!("sink `{name}` has a URL that cannot be used: {why}"))
                .hint("write it as `https://example.com/events`")
        });
        let signer = Signer::read(secret).map_err(|why| {
            Mistake::error(format!("sink `{name}` {why}")).hint(
                "write `whsec_` and the base64 of 24 random bytes or more, \
                 for instance of `openssl rand -base64 32`",
            )
        });
        match (read, signer) {
            (Ok(url), Ok(signer)) => Ok(Self {
                client: LazyClient::new(options().only(&url)),
                place: format!("the webhook at {}", place(&url)),
                url,
                signer,
                timeout: Duration::from_millis(timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT)),
                clock,
            }),
            (url, signer) => Err(url.err().into_iter().chain(signer.err()).collect()),
        }
    }

    async fn post(&self, event: &CloudEvent) -> Result<DeliveryReceipt, SinkError> {
        let client = self.client.get().map_err(|why| {
            self.error(format!("cannot be talked to: there is no HTTP client: {why}"))
        })?;
        let now = self.clock.now();
        let body = event.to_json();
        let seconds = now.0.div_euclid(1_000);
        let request = client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/cloudevents+json")
            .header("webhook-id", event.id.as_str())
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", self.signer.sign(&event.id, seconds, &body))
            .timeout(self.timeout);
        let sent = request.body(body).send().await;
        let mut answer = sent.map_err(|error| self.unanswered(error))?;
        let status = answer.status();
        let wait_ms = wait_ms(answer.headers(), now);
        if status.is_success() {
            // A connection whose answer is read can be used again. One that does not come to its
            // end holds up no one: the event is taken.
            let rest = self.clock.sleep_until(self.clock.now().plus_ms(REST_MS));
            select(pin!(words(&mut answer)), rest).await;
            return Ok(DeliveryReceipt { status: Some(status.as_u16()) });
        }
        let words = words(&mut answer).await;
        Err(SinkError { retry_after_ms: wait_ms, ..self.refused(status, &words) })
    }

    fn refused(&self, status: StatusCode, words: &str) -> SinkError {
        let what = match words {
            _ if status.is_redirection() => {
                format!("answered {status} and points elsewhere, which is not followed")
            }
            "" => format!("answered {status}"),
            // A page for people says nothing that helps here.
            page if page.starts_with('<') => format!("answered {status} with a page"),
            words => format!("answered {status}: {words}"),
        };
        // So Standard Webhooks says it: the endpoint is to be left alone.
        let is_gone = status == StatusCode::GONE;
        let is_refusal = status.is_client_error() && !OF_THE_RECEIVER.contains(&status.as_u16());
        SinkError { status: Some(status.as_u16()), is_gone, is_refusal, ..self.error(what) }
    }

    fn unanswered(&self, error: reqwest::Error) -> SinkError {
        let unreachable = error.is_connect() || error.is_builder();
        if error.is_timeout() && !unreachable {
            return self.error(format!("did not answer within {} ms", self.timeout.as_millis()));
        }
        let why = reasons(&error.without_url());
        self.error(if unreachable {
            format!("cannot be reached: {why}")
        } else {
            format!("gave no answer that can be read: {why}")
        })
    }

    fn error(&self, what: String) -> SinkError {
        SinkError::new(format!("{} {what}", self.place))
    }
}

impl EventSink for Webhook {
    fn kind(&self) -> &str {
        "webhook"
    }

    fn deliver<'a>(
        &'a self,
        events: &'a [CloudEvent],
    ) -> BoxFuture<'a, Result<DeliveryReceipt, SinkError>> {
        Box::pin(async move {
            let mut handed = DeliveryReceipt::default();
            for event in events {
                handed = self.post(event).await?;
            }
            Ok(handed)
        })
    }

    fn lanes(&self) -> usize {
        LANES
    }
}

fn options() -> ClientOptions {
    ClientOptions::default().connect_within(CONNECT_WITHIN).idle_max(IDLE_MAX).certified()
}

/// The beginning of what an answer says, on one line.
async fn words(answer: &mut Response) -> String {
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES_MAX
        && let Ok(Some(part)) = answer.chunk().await
    {
        body.extend_from_slice(&part);
    }
    let spaced = |letter: char| if letter.is_control() { ' ' } else { letter };
    let text: String = String::from_utf8_lossy(&body).chars().map(spaced).collect();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(TOLD_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
