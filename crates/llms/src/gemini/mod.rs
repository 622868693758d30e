//! Gemini's `generateContent` API.

mod request;
mod error;
mod reply;

use crate::config::{ModelConfig, Remote};
use crate::dialect::{Dialect, Request, Settings};
use crate::http::{self, Endpoint};
use crate::provider::Provider;
use crate::provider_error::ProviderError;
use kernel::conversation::llm::{Llm, Prompt};
use kernel::definition::plan::mistake::Mistake;
use kernel::values::secret::Secret;
use reply::ContentReply;
use reqwest::Url;
use serde_json::Value;
use std::sync::Arc;

/// Whose are the things that it wants back.
const PROVIDER: &str = "gemini";
const OWN_URL: &str = "https://generativelanguage.googleapis.com";
/// New models and fields come here first.
const VERSION: &str = "v1beta";

struct Content(Settings);

/// The model that this configures.
pub(crate) fn open(config: &ModelConfig, remote: &Remote) -> Result<Arc<dyn Llm>, Mistake> {
    let settings = settings(config, remote);
    let key = remote.key.as_ref().map(|key| ("x-goog-api-key", key.clone()));
    let ours: Vec<(&'static str, Secret)> = key.into_iter().collect();
    let url = stream(http::base(remote, OWN_URL)?, &settings.model);
    let endpoint = Endpoint::new(config, remote, url, &ours)?;
    Ok(Arc::new(Provider::new(endpoint, Content(settings))))
}

/// The body of its request for a prompt.
pub(crate) fn body(config: &ModelConfig, remote: &Remote, prompt: &Prompt) -> Value {
    request::body(&settings(config, remote), prompt)
}

fn settings(config: &ModelConfig, remote: &Remote) -> Settings {
    Settings::new(config, remote.model.strip_prefix("models/").unwrap_or(&remote.model))
}

/// Where content is made. An address without a version gets ours.
fn stream(base: Url, model: &str) -> Url {
    let versioned = if http::path(&base).is_empty() { http::join(base, VERSION) } else { base };
    // A tuned model brings its collection along.
    let place = if model.contains('/') { model.to_owned() } else { format!("models/{model}") };
    let mut url = http::join(versioned, &format!("{place}:streamGenerateContent"));
    url.query_pairs_mut().append_pair("alt", "sse");
    url
}

impl Dialect for Content {
    type Reply = ContentReply;

    fn request(&self, prompt: &Prompt) -> Request {
        Request::new(request::body(&self.0, prompt))
    }

    fn reply(&self, prompt: &Prompt) -> ContentReply {
        ContentReply::new(&self.0.model, prompt.answer.is_some())
    }

    fn classify_error(&self, status: u16, body: &Value) -> ProviderError {
        error::classify(Some(status), body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_part_of_the_address() {
        let at = |url: &str, model: &str| stream(Url::parse(url).unwrap(), model).to_string();
        let own = "https://generativelanguage.googleapis.com/v1beta";
        let expected = format!("{own}/models/gemini-3.8-flash:streamGenerateContent?alt=sse");
        assert_eq!(at(OWN_URL, "gemini-3.8-flash"), expected);
        let expected = "http://a.test/v1/tunedModels/x:streamGenerateContent?alt=sse";
        assert_eq!(at("http://a.test/v1/", "tunedModels/x"), expected);
        let odd = at("http://a.test", "a?b#c d");
        assert_eq!(odd, "http://a.test/v1beta/models/a%3Fb%23c%20d:streamGenerateContent?alt=sse");
    }
}
