//! The models that pipelines bring themselves: `llm` with a `type` and `params`. `stub` is a
//! rule-based model, with our rules where none are named; the others are providers.

use super::ModelContext;
use super::entry::{PROVIDERS, Provider, rules_text};
use super::keys::TEMPERATURE_MAX;
use crate::layer::Location;
use crate::settings::Text;
use crate::upstream_entries::expand::{self, expanded};
use demo::rules::stub_rules;
use kernel::definition::pipeline::{Pipeline, PipelineLlm};
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::values::secret::Secret;
use llms::config::{ModelConfig, ModelKind, Remote};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Another word for a rule-based model.
const STUB: &str = "stub";

/// A parameter and its other spellings.
type Names = &'static [&'static str];

const RULES: Names = &["rules"];
const MODEL: Names = &["model"];
const ENDPOINT: Names = &["endpoint", "baseUrl", "base_url"];
const KEY: Names = &["apiKey", "api_key"];
const TEMPERATURE: Names = &["temperature"];
const MAX_TOKENS: Names = &["maxTokens", "max_tokens"];
const TIMEOUT: Names = &["timeoutMs", "timeout_ms"];

/// Whether no one outside is asked: it is rule-based, or a model of the project.
pub fn is_alone(llm: &PipelineLlm) -> bool {
    match llm {
        PipelineLlm::Named(_) => true,
        PipelineLlm::Own { kind, .. } => matches!(provider(kind), Some(None)),
    }
}

/// The models that these pipelines bring, each in its file, with everything looked up, or all that
/// is wrong.
pub fn of_pipelines(
    pipelines: &[(String, Pipeline)],
    around: &ModelContext<'_>,
) -> Result<Vec<ModelConfig>, Vec<Mistake>> {
    let mut configs = Vec::new();
    let mut mistakes = Vec::new();
    for (file, pipeline) in pipelines {
        let PipelineLlm::Own { name, kind, params } = &pipeline.llm else { continue };
        let place = Location::whole(file);
        let mut reading = Params { params, place, around, mistakes: &mut mistakes };
        let (kind, more) = match provider(kind) {
            Some(None) => (reading.rules(), CommonParams::default()),
            Some(Some(provider)) => (reading.remote(provider), reading.more()),
            None => {
                reading.refuse(unknown(kind));
                continue;
            }
        };
        let Some(kind) = kind else { continue };
        configs.push(ModelConfig {
            name: name.to_string(),
            kind,
            max_tokens: more.max_tokens,
            temperature: more.temperature,
            timeout_ms: more.timeout_ms,
            price: None,
            origin: file.clone(),
        });
    }
    if mistakes.is_empty() { Ok(configs) } else { Err(mistakes) }
}

/// Who is behind a type: no one where it is rule-based; nothing where there is no such type.
fn provider(kind: &str) -> Option<Option<Provider>> {
    let word = if kind == STUB { "rules" } else { kind };
    PROVIDERS.iter().find(|(name, _)| *name == word).map(|(_, provider)| *provider)
}

fn unknown(kind: &str) -> Mistake {
    let known = || std::iter::once(STUB).chain(PROVIDERS.iter().map(|(name, _)| *name));
    let hint = meant(kind, known()).unwrap_or_else(|| {
        let quoted: Vec<String> = known().map(|name| format!("`{name}`")).collect();
        format!("it is one of {}", quoted.join(", "))
    });
    Mistake::error(format!("there is no `llm` of type `{kind}`")).hint(hint)
}

/// What may be said of any provider's model.
#[derive(Default)]
struct CommonParams {
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    timeout_ms: Option<u64>,
}

/// Reads the `params` of one pipeline's `llm`.
struct Params<'a> {
    params: &'a Map<String, Value>,
    place: Location,
    around: &'a ModelContext<'a>,
    mistakes: &'a mut Vec<Mistake>,
}

impl<'a> Params<'a> {
    /// A rule-based model: with the rules in a file of the project, those that stand here, or ours.
    fn rules(&mut self) -> Option<ModelKind> {
        self.no_others(&[RULES]);
        let here = PathBuf::from(format!("{}, `rules`", self.place.file));
        let (text, file) = match self.get(RULES) {
            None => (stub_rules().to_owned(), PathBuf::from(STUB)),
            Some((_, Value::String(text))) if text.contains('\n') => (text.clone(), here),
            Some((_, Value::String(path))) => {
                let path = self.expanded(path)?;
                let text = rules_text(&path, self.around).map_err(|why| {
                    let what = format!("the rules `{path}` of `llm` cannot be read: {why}");
                    Mistake::error(what).hint("the path begins at the project's folder")
                });
                (self.or_mistake(text)?, PathBuf::from(path))
            }
            // JSON is YAML.
            Some((_, rules @ Value::Object(_))) => (rules.to_string(), here),
            Some((name, _)) => {
                let hint = "it is the path of a file of rules, or the rules themselves";
                let what = format!("`{name}` of `llm` cannot be read");
                self.refuse(Mistake::error(what).hint(hint));
                return None;
            }
        };
        Some(ModelKind::Rules { text, file })
    }

    fn remote(&mut self, provider: Provider) -> Option<ModelKind> {
        self.no_others(&[MODEL, ENDPOINT, KEY, TEMPERATURE, MAX_TOKENS, TIMEOUT]);
        let model = self.text(MODEL);
        let base_url = self.text(ENDPOINT);
        let key = self.text(KEY).map(Secret::new);
        if self.get(MODEL).is_none() {
            let hint = "it is the provider's own name for it";
            self.refuse(Mistake::error("`model` of `llm` is missing").hint(hint));
        }
        let remote = Remote { model: model?, base_url, key, headers: Vec::new() };
        Some(provider.kind(remote, self.around.variables))
    }

    fn more(&mut self) -> CommonParams {
        let most = self.whole_number(MAX_TOKENS);
        CommonParams {
            max_tokens: most.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            temperature: self.temperature(),
            timeout_ms: self.whole_number(TIMEOUT),
        }
    }

    fn temperature(&mut self) -> Option<f64> {
        let (name, value) = self.get(TEMPERATURE)?;
        let number = value.as_f64().filter(|number| (0.0..=TEMPERATURE_MAX).contains(number));
        self.or_mistake(number.ok_or_else(|| {
            Mistake::error(format!("`{name}` of `llm` cannot be `{value}`"))
                .hint("write a number from 0 to 2, or leave it out")
        }))
    }

    fn whole_number(&mut self, names: Names) -> Option<u64> {
        let (name, value) = self.get(names)?;
        let what = format!("`{name}` of `llm` must be a whole number from 1 on");
        let number = value.as_u64().filter(|number| *number > 0);
        self.or_mistake(number.ok_or_else(|| Mistake::error(what)))
    }

    /// A text, with its variables looked up. It may be a secret: it is not shown.
    fn text(&mut self, names: Names) -> Option<String> {
        let (name, value) = self.get(names)?;
        let what = format!("`{name}` of `llm` must be a text");
        let text = self.or_mistake(value.as_str().ok_or_else(|| Mistake::error(what)))?;
        self.expanded(text)
    }

    fn expanded(&mut self, text: &str) -> Option<String> {
        let texts =
            expand::ExpandContext { folder: self.around.folder, variables: self.around.variables };
        let text = Text { text: text.to_owned(), place: self.place.clone() };
        self.or_mistake(expanded(&text, &texts))
    }

    /// The parameter under the first of its names that is there.
    fn get(&self, names: Names) -> Option<(&'static str, &'a Value)> {
        let params: &'a Map<String, Value> = self.params;
        names.iter().find_map(|name| Some((*name, params.get(*name)?)))
    }

    /// Notes each parameter that has none of these names.
    fn no_others(&mut self, known: &[Names]) {
        let names = || known.iter().flat_map(|names| names.iter().copied());
        let params = self.params;
        for stranger in params.keys().filter(|key| !names().any(|name| name == *key)) {
            let first = || known.iter().filter_map(|names| names.first().copied());
            let hint = meant(stranger, names()).unwrap_or_else(|| {
                format!("known here: {}", first().collect::<Vec<&str>>().join(", "))
            });
            let mistake = Mistake::error(format!("unknown parameter `{stranger}` of `llm`"));
            self.refuse(mistake.hint(hint));
        }
    }

    /// The value that was read; a mistake is recorded.
    fn or_mistake<T>(&mut self, read: Result<T, Mistake>) -> Option<T> {
        read.map_err(|mistake| self.refuse(mistake)).ok()
    }

    fn refuse(&mut self, mistake: Mistake) {
        self.mistakes.push(self.place.mistake(mistake));
    }
}

#[cfg(test)]
mod tests;
