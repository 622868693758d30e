//! Models behind the `Llm` contract: the dialects of the providers, and the rule-based model of
//! crate `demo`, which is only opened here. To add a provider, write its folder, its kind in
//! `config`, and its arms in `open` and `request_body`.

pub mod config;
mod defaults;
pub mod price;
mod provider_error;
mod http;
mod dialect;
mod shape;
mod draft;
mod transcript;
mod provider;
mod openai;
mod anthropic;
mod gemini;
#[cfg(test)]
mod conversations;

use config::{ModelConfig, ModelKind};
use demo::rules::Rules;
use kernel::conversation::llm::{Llm, Prompt};
use kernel::definition::plan::mistake::Mistake;
use serde_json::Value;
use std::sync::Arc;

pub use defaults::default_models;

/// The model that this configures, or all that is wrong with it. No one is talked to yet.
pub fn open(config: &ModelConfig) -> Result<Arc<dyn Llm>, Vec<Mistake>> {
    let opened = match &config.kind {
        // Its mistakes are in its own file.
        ModelKind::Rules { text, file } => {
            return Rules::read(text, file).map(|rules| Arc::new(rules) as Arc<dyn Llm>);
        }
        ModelKind::OpenAi(remote) => openai::open(config, remote),
        ModelKind::Anthropic(remote) => anthropic::open(config, remote),
        ModelKind::Gemini(remote) => gemini::open(config, remote),
    };
    opened.map_err(|mistake| {
        let file = Some(config.origin.clone()).filter(|origin| !origin.is_empty());
        vec![Mistake { file, ..mistake }]
    })
}

/// What would be sent for this prompt, for those who look for a fault. None where nothing is sent:
/// rules are asked in here, and a model whose address cannot be used is not asked at all.
pub fn request_body(config: &ModelConfig, prompt: &Prompt) -> Option<Value> {
    match &config.kind {
        ModelKind::Rules { .. } => None,
        ModelKind::OpenAi(remote) => openai::body(config, remote, prompt).ok(),
        ModelKind::Anthropic(remote) => Some(anthropic::body(config, remote, prompt)),
        ModelKind::Gemini(remote) => Some(gemini::body(config, remote, prompt)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Remote;
    use kernel::values::secret::Secret;

    fn config(kind: ModelKind) -> ModelConfig {
        ModelConfig {
            name: "main".to_owned(),
            kind,
            max_tokens: None,
            temperature: None,
            timeout_ms: None,
            price: None,
            origin: "waypost.toml:12".to_owned(),
        }
    }

    fn remote(base_url: &str, header: &str) -> Remote {
        Remote {
            model: "m".to_owned(),
            base_url: Some(base_url.to_owned()),
            key: Some(Secret::new("sk-hushhush")),
            headers: vec![("x-team".to_owned(), Secret::new(header))],
        }
    }

    fn wrong(kind: ModelKind) -> Option<String> {
        let mistakes = open(&config(kind)).err()?;
        Some(mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn an_unusable_model_is_reported_at_once_without_secrets() {
        let kinds: [fn(Remote) -> ModelKind; 3] =
            [ModelKind::OpenAi, ModelKind::Anthropic, ModelKind::Gemini];
        for kind in kinds {
            assert_eq!(wrong(kind(remote("http://a.test/v1", "x"))), None);
            for url in ["nowhere", "ftp://a.test/", ""] {
                let told = wrong(kind(remote(url, "x"))).unwrap();
                assert!(told.starts_with("waypost.toml:12: error: "), "{told}");
                assert!(told.contains("URL"), "{told}");
            }
            let told = wrong(kind(remote("http://a.test/v1", "hush\nhush"))).unwrap();
            assert!(told.contains("`x-team`") && !told.contains("hush"), "{told}");
        }
    }

    #[test]
    fn anthropic_takes_no_temperature_any_more() {
        let mut config = config(ModelKind::Anthropic(remote("http://a.test", "x")));
        config.temperature = Some(0.2);
        let told = open(&config).err().unwrap()[0].to_string();
        assert!(told.contains("temperature"), "{told}");
        let ModelKind::Anthropic(remote) = &mut config.kind else { unreachable!() };
        remote.headers = vec![("anthropic-version".to_owned(), Secret::new("2023-06-01"))];
        assert!(open(&config).is_ok());
    }
}
