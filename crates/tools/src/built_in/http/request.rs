//! `http::request`: one HTTP request to a listed host. GET and HEAD read; all others write and are
//! sent once, with the call's id as their idempotency key.

use super::arguments::{Asked, Wanted};
use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use kernel::values::datum::BlobRef;
use outbound::addresses::HttpSettings;
use outbound::answer::{self, Answer, Effect};
use outbound::client::{ClientOptions, GuardedClient};
use outbound::trace::traced;

/// The tool.
pub(super) struct Request {
    outbound: GuardedClient,
}

impl Request {
    /// The tool, for these hosts.
    pub(super) fn new(settings: HttpSettings) -> Self {
        Self { outbound: GuardedClient::new(settings, ClientOptions::default()) }
    }
}

impl TypedTool for Request {
    type Args = Asked;
    type Out = Answer;
    const NAME: &'static str = "http::request";
    const TITLE: &'static str = "HTTP request";
    const DESCRIPTION: &'static str = "Sends one HTTP request to a host listed in `[tools.http] \
        allow`. GET and HEAD read, other methods write. Redirects are not followed. An answer of \
        400 or above is an error.";
    const REACH: Reach = Reach::Writes;

    fn check(&self, _caller: &Caller, asked: &Asked) -> Result<(), ToolError> {
        Wanted::read(asked, self.outbound.settings()).map(drop)
    }

    fn reach(&self, asked: &Asked) -> (Reach, bool) {
        if asked.reads() { (Reach::Reads, true) } else { (Reach::Writes, false) }
    }

    fn stored(answer: &Answer) -> Option<BlobRef> {
        answer.stored.clone()
    }

    async fn call(&self, _caller: &Caller, asked: Asked, call: &Call) -> Result<Answer, ToolError> {
        let mut wanted = Wanted::read(&asked, self.outbound.settings())?;
        traced(&mut wanted.headers, call.context.trace);
        let body = wanted.body();
        let request = self
            .outbound
            .client()?
            .request(wanted.method, wanted.url)
            .headers(wanted.headers)
            .header("idempotency-key", call.id.to_string());
        let request = match body {
            Some(body) => request.body(body),
            None => request,
        };
        let effect = if asked.reads() { Effect::Reads } else { Effect::Writes };
        match request.send().await {
            Ok(response) => answer::read(response, effect, call).await,
            Err(error) => Err(answer::unanswered(error, effect)),
        }
    }
}
