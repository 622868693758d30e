//! One turn with a provider in any dialect: sends the request and parses the response as it
//! arrives. An incomplete stream is an error, never a short answer. Dropping the future closes the
//! connection.

use crate::dialect::{Dialect, Fault, Flow, Reply};
use crate::http::{self, Endpoint};
use crate::provider_error;
use futures::FutureExt;
use futures::future::BoxFuture;
use kernel::conversation::llm::{DeltaSink, Llm, LlmError, LlmErrorKind, Prompt, Turn};
use outbound::answer::{self, ReadError};
use outbound::sse::SseReader;
use reqwest::Response;
use serde_json::Value;

/// How much of one answer is read.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How much of it one event may be: some providers send a whole call in one.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
const EVENTS: &str = "text/event-stream";

/// A model behind a provider.
pub(crate) struct Provider<D> {
    endpoint: Endpoint,
    dialect: D,
}

impl<D: Dialect> Provider<D> {
    /// The model at this address, spoken to in this dialect.
    pub(crate) fn new(endpoint: Endpoint, dialect: D) -> Self {
        Self { endpoint, dialect }
    }

    async fn ask(&self, prompt: &Prompt, sink: &dyn DeltaSink) -> Result<Turn, LlmError> {
        let request = self.dialect.request(prompt);
        let posted = self.endpoint.post(request.headers, prompt.trace, &request.body);
        let response = posted.await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(self.endpoint.redirected(status, response.headers()));
        }
        if !status.is_success() {
            return Err(self.error_response(response, prompt).await);
        }
        let reply = self.dialect.reply(prompt);
        match answer::media_type(response.headers()).as_str() {
            EVENTS => self.stream(response, reply, sink).await,
            // Some servers answer as a whole whatever they are asked for.
            kind if kind.ends_with("json") => self.whole(response, reply, sink).await,
            "" => Err(self.unreadable("answered without saying what it is")),
            kind => Err(self.unreadable(&format!("answered with `{kind}`"))),
        }
    }

    async fn error_response(&self, mut response: Response, prompt: &Prompt) -> LlmError {
        let status = response.status();
        let wait_ms = provider_error::wait_ms(response.headers(), prompt.now);
        let body = http::error_body(&mut response).await;
        let mut reported = self.dialect.classify_error(status.as_u16(), &body);
        reported.wait_ms = wait_ms.or(reported.wait_ms);
        self.endpoint.provider_error(Some(status), &reported)
    }

    async fn stream(
        &self,
        mut response: Response,
        mut reply: D::Reply,
        sink: &dyn DeltaSink,
    ) -> Result<Turn, LlmError> {
        let mut events = SseReader::new(EVENT_BYTES_MAX);
        let mut read = 0;
        let mut flow = Flow::More;
        while flow == Flow::More {
            let part = response.chunk().await.map_err(|error| self.endpoint.broken(error))?;
            let Some(part) = part else {
                break;
            };
            read += part.len();
            if read > ANSWER_BYTES_MAX {
                return Err(self.too_large());
            }
            events.push(&part);
            while flow == Flow::More {
                let event = events.next_event();
                let event = event.map_err(|error| self.unreadable(&error.to_string()))?;
                let Some(event) = event else {
                    break;
                };
                flow = reply.event(&event, sink).map_err(|fault| self.fault(fault))?;
            }
        }
        // If the end of the body is here already, the connection can be used again.
        let _ = response.chunk().now_or_never();
        reply.finish().map_err(|fault| self.fault(fault))
    }

    async fn whole(
        &self,
        mut response: Response,
        mut reply: D::Reply,
        sink: &dyn DeltaSink,
    ) -> Result<Turn, LlmError> {
        let body = answer::collect(&mut response, ANSWER_BYTES_MAX).await;
        let body = body.map_err(|unread| match unread {
            ReadError::TooLarge => self.too_large(),
            ReadError::Lost(error) => self.endpoint.broken(error),
        })?;
        let body: Value = serde_json::from_slice(&body)
            .map_err(|error| self.unreadable(&format!("answered with broken JSON: {error}")))?;
        reply.whole(&body, sink).map_err(|fault| self.fault(fault))?;
        reply.finish().map_err(|fault| self.fault(fault))
    }

    fn fault(&self, fault: Fault) -> LlmError {
        match fault {
            Fault::Provider(reported) => self.endpoint.provider_error(None, &reported),
            Fault::Unreadable(why) => self.unreadable(&self.endpoint.told(&why)),
            Fault::Cut => self
                .endpoint
                .error(LlmErrorKind::Unreachable, "ended its answer before it was whole")
                .hint("try again"),
        }
    }

    fn unreadable(&self, what: &str) -> LlmError {
        self.endpoint.error(LlmErrorKind::Unreadable, what)
    }

    fn too_large(&self) -> LlmError {
        self.unreadable(&format!("answered with more than {ANSWER_BYTES_MAX} bytes"))
    }
}

impl<D: Dialect> Llm for Provider<D> {
    fn turn<'a>(
        &'a self,
        prompt: &'a Prompt,
        sink: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<Turn, LlmError>> {
        Box::pin(async move {
            let turn = self.ask(prompt, sink).await;
            if let Err(error) = &turn {
                tracing::debug!(kind = error.kind.name(), error = %error, "a turn failed");
            }
            turn
        })
    }
}
