//! Default models of providers whose API key is set.

use crate::config::{ModelConfig, ModelKind, Remote};
use kernel::values::secret::Secret;

/// It has a `none` for its thoughts, and without them chat completions lets it call tools.
const OPENAI_MODEL: &str = "gpt-6.1-terra";
const ANTHROPIC_MODEL: &str = "claude-sonnet-5-5";
const GEMINI_MODEL: &str = "gemini-3.8-flash";

/// One model for each provider whose key is set: `openai`, `anthropic`, `gemini`. `lookup` finds a
/// variable; an empty one is none.
pub fn default_models(lookup: &dyn Fn(&str) -> Option<String>) -> Vec<ModelConfig> {
    let find = |variable: &str| {
        let value = lookup(variable)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let remote = |variable: &str, model: &str, base_url: Option<String>| {
        let key = Some(Secret::new(find(variable)?));
        Some(Remote { model: model.to_owned(), base_url, key, headers: Vec::new() })
    };
    let openai = remote("OPENAI_API_KEY", OPENAI_MODEL, find("OPENAI_BASE_URL"));
    let anthropic = remote("ANTHROPIC_API_KEY", ANTHROPIC_MODEL, None);
    let gemini = remote("GOOGLE_API_KEY", GEMINI_MODEL, None);
    let models = [
        ("openai", "OPENAI_API_KEY", openai.map(ModelKind::OpenAi)),
        ("anthropic", "ANTHROPIC_API_KEY", anthropic.map(ModelKind::Anthropic)),
        ("gemini", "GOOGLE_API_KEY", gemini.map(ModelKind::Gemini)),
    ];
    let configs = models.into_iter().filter_map(|(name, origin, kind)| {
        Some(ModelConfig {
            name: name.to_owned(),
            kind: kind?,
            max_tokens: None,
            temperature: None,
            timeout_ms: None,
            price: None,
            origin: origin.to_owned(),
        })
    });
    configs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price;

    fn models(variables: &[(&str, &str)]) -> Vec<ModelConfig> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        default_models(&lookup)
    }

    #[test]
    fn default_models_follow_from_key_variables() {
        for (name, variable) in kernel::conversation::llm::MODELS_BY_KEY {
            let found = models(&[(variable, "a")]);
            let found: Vec<&str> = found.iter().map(|model| model.name.as_str()).collect();
            assert_eq!(found, [name]);
        }
    }

    #[test]
    fn a_key_enables_its_default_model() {
        assert_eq!(models(&[("OPENAI_API_KEY", " "), ("PATH", "x")]), []);
        let all = models(&[
            ("OPENAI_API_KEY", "a"),
            ("OPENAI_BASE_URL", "http://localhost:11434"),
            ("ANTHROPIC_API_KEY", "b"),
            ("GOOGLE_API_KEY", "c"),
        ]);
        let names: Vec<&str> = all.iter().map(|config| config.name.as_str()).collect();
        assert_eq!(names, ["openai", "anthropic", "gemini"]);
        let ModelKind::OpenAi(remote) = &all[0].kind else { panic!("{:?}", all[0].kind) };
        assert_eq!(remote.base_url.as_deref(), Some("http://localhost:11434"));
        assert!(all.iter().all(|config| price::of(config).is_some()), "what a default costs");
        assert!(!format!("{all:?}").contains("\"a\""), "a key is never shown");
    }
}
