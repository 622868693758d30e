//! One model as the settings write it, and what is opened for it. Nothing is looked up before it is
//! asked for, and a key is never shown.

use super::ModelContext;
use super::keys::ModelKeys;
use crate::layer::Location;
use crate::settings::{Located, Named, Text, meaning};
use crate::upstream_entries::Variables;
use crate::upstream_entries::expand::{self, expanded};
use crate::upstream_entries::sendable::headers_of;
use kernel::definition::plan::mistake::Mistake;
use kernel::values::secret::Secret;
use llms::config::{ModelConfig, ModelKind, Price, Remote};
use std::fs;
use std::path::PathBuf;

/// A model as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// Its name: what agents say in `llmConfigRef`.
    pub name: String,
    /// Where it is written.
    pub place: Location,
    way: ModelSource,
    max_tokens: Option<u32>,
    /// A number, as a text.
    temperature: Option<String>,
    timeout_ms: Option<u64>,
    price: Option<Price>,
}

/// What the model is and where.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ModelSource {
    Rules(Text),
    Remote {
        provider: Provider,
        model: Text,
        base_url: Option<Text>,
        key: Option<Text>,
        headers: Named,
    },
}

/// Who answers behind a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    OpenAi,
    Anthropic,
    Gemini,
}

impl Provider {
    /// The variable that a key is in where the entry names none.
    fn variable(self) -> &'static str {
        match self {
            Provider::OpenAi => "OPENAI_API_KEY",
            Provider::Anthropic => "ANTHROPIC_API_KEY",
            Provider::Gemini => "GOOGLE_API_KEY",
        }
    }

    /// The model that it serves. Its own key is for its own address: no one else is sent it.
    pub(super) fn kind(self, mut remote: Remote, variables: &Variables<'_>) -> ModelKind {
        if remote.key.is_none() && remote.base_url.is_none() {
            remote.key = variables(self.variable()).map(Secret::new);
        }
        let key = remote.key.map(|key| Secret::new(key.expose().trim()));
        remote.key = key.filter(|key| !key.expose().is_empty());
        remote.base_url = remote.base_url.filter(|url| !url.is_empty());
        match self {
            Provider::OpenAi => ModelKind::OpenAi(remote),
            Provider::Anthropic => ModelKind::Anthropic(remote),
            Provider::Gemini => ModelKind::Gemini(remote),
        }
    }
}

/// What `provider` may say; nothing is rules.
pub(super) const PROVIDERS: &[(&str, Option<Provider>)] = &[
    ("rules", None),
    ("openai", Some(Provider::OpenAi)),
    ("anthropic", Some(Provider::Anthropic)),
    ("gemini", Some(Provider::Gemini)),
];

/// Words for servers that speak as OpenAI does.
const LIKE_OPENAI: &[&str] = &["ollama", "vllm", "llama.cpp", "llamacpp", "lmstudio", "litellm"];

/// Keys that mean nothing to rules.
const NOT_FOR_RULES: &[&str] =
    &["model", "base_url", "api_key", "headers", "max_tokens", "temperature", "price"];

impl ModelEntry {
    /// The entry that these keys make. A mistake without a place is one of the whole entry.
    pub fn new(name: &Text, keys: Located<ModelKeys>) -> Result<Self, Mistake> {
        let place = name.place.clone();
        let name = name.text.clone();
        place.check_name(&name, "a model", "`_`, `-`, `.`, `:` and `/`")?;
        let ModelKeys { max_tokens, timeout_ms, price, .. } = keys.value;
        let temperature = keys.value.temperature.clone();
        let way = way(keys)?;
        Ok(Self { name, place, way, max_tokens, temperature, timeout_ms, price })
    }

    /// Whether it is rule-based, and needs no one outside.
    pub fn is_rules(&self) -> bool {
        matches!(self.way, ModelSource::Rules(_))
    }

    /// What to open, with everything looked up.
    pub fn config(&self, around: &ModelContext<'_>) -> Result<ModelConfig, Mistake> {
        let texts = expand::ExpandContext { folder: around.folder, variables: around.variables };
        let kind = match &self.way {
            ModelSource::Rules(rules) => self.rules(rules, around, &texts)?,
            ModelSource::Remote { provider, model, base_url, key, headers } => {
                let key = key.as_ref().map(|key| expanded(key, &texts)).transpose()?;
                let remote = Remote {
                    base_url: base_url.as_ref().map(|url| expanded(url, &texts)).transpose()?,
                    model: expanded(model, &texts)?,
                    key: key.map(Secret::new),
                    headers: headers_of(headers, &texts)?,
                };
                provider.kind(remote, around.variables)
            }
        };
        Ok(ModelConfig {
            name: self.name.clone(),
            kind,
            max_tokens: self.max_tokens,
            // It was read as a number before.
            temperature: self.temperature.as_ref().and_then(|text| text.parse().ok()),
            timeout_ms: self.timeout_ms,
            price: self.price,
            origin: self.place.to_string(),
        })
    }

    fn rules(
        &self,
        rules: &Text,
        around: &ModelContext<'_>,
        texts: &expand::ExpandContext<'_>,
    ) -> Result<ModelKind, Mistake> {
        let path = expanded(rules, texts)?;
        let refused = |why: String| {
            let what = format!("the rules `{path}` of `{}` cannot be read: {why}", self.name);
            let hint = "the path begins at the project's folder";
            rules.mistake(Mistake::error(what).hint(hint))
        };
        let text = rules_text(&path, around).map_err(refused)?;
        Ok(ModelKind::Rules { text, file: PathBuf::from(path) })
    }
}

/// The text of a project's file of rules, or why there is none.
pub(super) fn rules_text(path: &str, around: &ModelContext<'_>) -> Result<String, String> {
    if let Some(text) = around.texts.get(path) {
        return Ok(text.clone());
    }
    let file = around.folder.join(path);
    let bytes = fs::metadata(&file).map_err(|error| error.to_string())?.len();
    if bytes > around.bytes_max as u64 {
        return Err(format!("{bytes} bytes are more than {}", around.bytes_max));
    }
    fs::read_to_string(&file).map_err(|error| error.to_string())
}

fn way(
    Located { keys: there, value: keys, .. }: Located<ModelKeys>,
) -> Result<ModelSource, Mistake> {
    match provider(&keys)? {
        None => {
            let is_idle = |key: &&Text| NOT_FOR_RULES.contains(&key.text.as_str());
            if let Some(key) = there.iter().find(is_idle) {
                let what = format!("`{}` has no place beside `provider = \"rules\"`", key.text);
                return Err(key.mistake(Mistake::error(what).hint("leave it out")));
            }
            let missing = || {
                Mistake::error("`rules` is missing")
                    .hint("it is the path of a file of rules, such as \"rules/calendar.yaml\"")
            };
            keys.rules.map(ModelSource::Rules).ok_or_else(missing)
        }
        Some(provider) => {
            if let Some(rules) = &keys.rules {
                let what = "`rules` goes with `provider = \"rules\"`";
                return Err(rules.mistake(Mistake::error(what).hint("leave one of both out")));
            }
            let missing = || {
                let hint = "it is the provider's own name for it";
                Mistake::error("`model` is missing").hint(hint)
            };
            Ok(ModelSource::Remote {
                provider,
                model: keys.model.ok_or_else(missing)?,
                base_url: keys.base_url,
                key: keys.api_key,
                headers: keys.headers,
            })
        }
    }
}

/// The provider; nothing where it is rules.
fn provider(keys: &ModelKeys) -> Result<Option<Provider>, Mistake> {
    let all = "it is `rules`, `openai`, `anthropic` or `gemini`";
    let Some(said) = &keys.provider else {
        return match &keys.rules {
            Some(_) => Ok(None),
            None => Err(Mistake::error("`provider` is missing").hint(all)),
        };
    };
    let word = said.text.as_str();
    let what = "is no provider of models";
    let provider = match LIKE_OPENAI.contains(&word.to_ascii_lowercase().as_str()) {
        true => Err(Mistake::error(format!("`{word}` {what}"))
            .hint("it speaks as OpenAI does: write `provider = \"openai\"` and its `base_url`")),
        false => meaning(word, PROVIDERS, what, all),
    };
    provider.map_err(|mistake| said.mistake(mistake))
}
