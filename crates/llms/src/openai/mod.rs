//! Chat completions as OpenAI has them, which many servers speak: Ollama, vLLM, llama.cpp and most
//! gateways. What only some of them do is taken as it comes; what only OpenAI wants is sent only to
//! OpenAI.

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
use reply::ChatReply;
use request::Chat;
use reqwest::Url;
use serde_json::Value;
use std::sync::Arc;

/// Whose are the things that it wants back.
const PROVIDER: &str = "openai";
const OWN_URL: &str = "https://api.openai.com/v1";
/// Hosts that want `max_completion_tokens`; the others know `max_tokens`.
const OWN_HOSTS: &[&str] = &["openai.com", "azure.com"];
const COMPLETIONS: &str = "chat/completions";

/// The model that this configures.
pub(crate) fn open(config: &ModelConfig, remote: &Remote) -> Result<Arc<dyn Llm>, Mistake> {
    let base = http::base(remote, OWN_URL)?;
    let chat = chat(config, remote, &base);
    let key = remote.key.as_ref().map(|key| Secret::new(format!("Bearer {}", key.expose().trim())));
    let ours: Vec<(&'static str, Secret)> =
        key.into_iter().map(|key| ("authorization", key)).collect();
    let endpoint = Endpoint::new(config, remote, completions(base), &ours)?;
    Ok(Arc::new(Provider::new(endpoint, chat)))
}

/// The body of its request for a prompt.
pub(crate) fn body(
    config: &ModelConfig,
    remote: &Remote,
    prompt: &Prompt,
) -> Result<Value, Mistake> {
    let base = http::base(remote, OWN_URL)?;
    Ok(request::body(&chat(config, remote, &base), prompt))
}

fn chat(config: &ModelConfig, remote: &Remote, base: &Url) -> Chat {
    Chat { settings: Settings::new(config, &remote.model), own: is_own(base) }
}

/// Where completions are made: the address may be given with or without its end.
fn completions(base: Url) -> Url {
    match http::path(&base) {
        "" => http::join(base, &format!("v1/{COMPLETIONS}")),
        path if path.ends_with(COMPLETIONS) => base,
        _ => http::join(base, COMPLETIONS),
    }
}

fn is_own(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    OWN_HOSTS.iter().any(|own| host == *own || host.ends_with(&format!(".{own}")))
}

impl Dialect for Chat {
    type Reply = ChatReply;

    fn request(&self, prompt: &Prompt) -> Request {
        Request::new(request::body(self, prompt))
    }

    fn reply(&self, prompt: &Prompt) -> ChatReply {
        ChatReply::new(&self.settings.model, prompt.answer.is_some())
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
        let at = |url: &str| completions(Url::parse(url).unwrap()).to_string();
        let local = "http://localhost:11434/v1/chat/completions";
        assert_eq!(at("http://localhost:11434"), local);
        assert_eq!(at("http://localhost:11434/"), local);
        assert_eq!(at("http://localhost:11434/v1"), local);
        assert_eq!(at("http://localhost:11434/v1/chat/completions"), local);
        let azure = "https://a.openai.azure.com/openai/deployments/d?api-version=1";
        let expected =
            "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=1";
        assert_eq!(at(azure), expected);
    }

    #[test]
    fn only_openais_own_host_gets_openai_features() {
        let own = |url: &str| is_own(&Url::parse(url).unwrap());
        assert!(own(OWN_URL) && own("https://a.openai.azure.com/openai/v1"));
        assert!(!own("http://localhost:8000/v1") && !own("https://notopenai.com/v1"));
    }
}
