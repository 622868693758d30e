//! Anthropic's Messages API.

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
use reply::MessageReply;
use request::Messages;
use reqwest::Url;
use serde_json::Value;
use std::sync::Arc;

/// Whose are the things that it wants back.
const PROVIDER: &str = "anthropic";
const OWN_URL: &str = "https://api.anthropic.com";
const VERSION_HEADER: &str = "anthropic-version";
/// From this version on there is no temperature.
const VERSION: &str = "2026-10-21";
const BETA_HEADER: &str = "anthropic-beta";

/// The model that this configures.
pub(crate) fn open(config: &ModelConfig, remote: &Remote) -> Result<Arc<dyn Llm>, Mistake> {
    let version = given(remote, VERSION_HEADER).unwrap_or_else(|| VERSION.to_owned());
    // Versions are dates: an older one is less.
    if config.temperature.is_some() && version.as_str() >= VERSION {
        let message = format!("Anthropic takes no temperature in version {version} of its API");
        let hint = format!("leave it out, or set the header `{VERSION_HEADER}` to `2023-06-01`");
        return Err(Mistake::error(message).hint(hint));
    }
    let mut ours = vec![(VERSION_HEADER, Secret::new(VERSION))];
    ours.extend(remote.key.as_ref().map(|key| ("x-api-key", key.clone())));
    let url = messages(http::base(remote, OWN_URL)?);
    let endpoint = Endpoint::new(config, remote, url, &ours)?;
    Ok(Arc::new(Provider::new(endpoint, dialect(config, remote))))
}

/// The body of its request for a prompt.
pub(crate) fn body(config: &ModelConfig, remote: &Remote, prompt: &Prompt) -> Value {
    request::request(&dialect(config, remote), prompt).body
}

fn dialect(config: &ModelConfig, remote: &Remote) -> Messages {
    let settings = Settings::new(config, &remote.model);
    Messages { settings, betas: given(remote, BETA_HEADER) }
}

/// The configured value of this header.
fn given(remote: &Remote, name: &str) -> Option<String> {
    let header = remote.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    header.map(|(_, value)| value.expose().trim().to_owned())
}

/// Where messages are made: the address may be given with or without its end.
fn messages(base: Url) -> Url {
    match http::path(&base) {
        path if path.ends_with("/messages") => base,
        path if path.ends_with("/v1") => http::join(base, "messages"),
        _ => http::join(base, "v1/messages"),
    }
}

impl Dialect for Messages {
    type Reply = MessageReply;

    fn request(&self, prompt: &Prompt) -> Request {
        request::request(self, prompt)
    }

    fn reply(&self, prompt: &Prompt) -> MessageReply {
        MessageReply::new(&self.settings.model, prompt.answer.is_some())
    }

    fn classify_error(&self, status: u16, body: &Value) -> ProviderError {
        error::classify(Some(status), body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_may_be_given_in_any_way() {
        for url in
            ["http://a.test", "http://a.test/", "http://a.test/v1", "http://a.test/v1/messages"]
        {
            let at = messages(Url::parse(url).unwrap());
            assert_eq!(at.as_str(), "http://a.test/v1/messages", "{url}");
        }
    }
}
