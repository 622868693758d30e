//! The models that pipelines bring themselves: `llm` with a `type` and `params`. `stub` is a
//! rule-based model, with our rules where none are named; the others are providers.

use super::Around;
use super::entry::{PROVIDERS, Provider, rules_text};
use crate::layer::Place;
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

/// The most freedom that providers know.
const TEMPERATURE_MAX: f64 = 2.0;

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
    around: &Around<'_>,
) -> Result<Vec<ModelConfig>, Vec<Mistake>> {
    let (mut configs, mut mistakes) = (Vec::new(), Vec::new());
    for (file, pipeline) in pipelines {
        let PipelineLlm::Own { name, kind, params } = &pipeline.llm else { continue };
        let place = Place::whole(file);
        let mut reading = Params { params, place, around, mistakes: &mut mistakes };
        let (kind, more) = match provider(kind) {
            Some(None) => (reading.rules(), More::default()),
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
struct More {
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    timeout_ms: Option<u64>,
}

/// Reads the `params` of one pipeline's `llm`.
struct Params<'a> {
    params: &'a Map<String, Value>,
    place: Place,
    around: &'a Around<'a>,
    mistakes: &'a mut Vec<Mistake>,
}

impl<'a> Params<'a> {
    /// A rule-based model: with the rules in a file of the project, those that stand here, or ours.
    fn rules(&mut self) -> Option<ModelKind> {
        self.no_others(&[RULES]);
        let here = PathBuf::from(format!("{}, `rules`", self.place.file));
        match self.get(RULES) {
            None => {
                Some(ModelKind::Rules { text: stub_rules().to_owned(), file: PathBuf::from(STUB) })
            }
            Some((_, Value::String(text))) if text.contains('\n') => {
                Some(ModelKind::Rules { text: text.clone(), file: here })
            }
            Some((_, Value::String(path))) => self.rules_of_file(path),
            // JSON is YAML.
            Some((_, rules @ Value::Object(_))) => {
                Some(ModelKind::Rules { text: rules.to_string(), file: here })
            }
            Some((name, _)) => {
                let hint = "it is the path of a file of rules, or the rules themselves";
                let what = format!("`{name}` of `llm` cannot be read");
                self.refuse(Mistake::error(what).hint(hint));
                None
            }
        }
    }

    fn rules_of_file(&mut self, path: &str) -> Option<ModelKind> {
        let path = self.expanded(path)?;
        match rules_text(&path, self.around) {
            Ok(text) => Some(ModelKind::Rules { text, file: PathBuf::from(path) }),
            Err(why) => {
                let what = format!("the rules `{path}` of `llm` cannot be read: {why}");
                let hint = "the path begins at the project's folder";
                self.refuse(Mistake::error(what).hint(hint));
                None
            }
        }
    }

    fn remote(&mut self, provider: Provider) -> Option<ModelKind> {
        self.no_others(&[MODEL, ENDPOINT, KEY, TEMPERATURE, MAX_TOKENS, TIMEOUT]);
        let model = self.text(MODEL);
        let (endpoint, key) = (self.text(ENDPOINT), self.text(KEY));
        let Some(model) = model else {
            if self.get(MODEL).is_none() {
                let hint = "it is the provider's own name for it";
                self.refuse(Mistake::error("`model` of `llm` is missing").hint(hint));
            }
            return None;
        };
        let key = match (self.get(KEY), &endpoint) {
            (Some(_), _) => key,
            // A provider's own key is for its own address: no one else is sent it.
            (None, None) => (self.around.variables)(provider.variable()),
            (None, Some(_)) => None,
        };
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        Some(provider.kind(Remote {
            model,
            base_url: endpoint.filter(|url| !url.is_empty()),
            key: key.map(Secret::new),
            headers: Vec::new(),
        }))
    }

    fn more(&mut self) -> More {
        let most = self.whole(MAX_TOKENS);
        More {
            max_tokens: most.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            temperature: self.temperature(),
            timeout_ms: self.whole(TIMEOUT),
        }
    }

    fn temperature(&mut self) -> Option<f64> {
        let (name, value) = self.get(TEMPERATURE)?;
        let number = value.as_f64().filter(|number| (0.0..=TEMPERATURE_MAX).contains(number));
        if number.is_none() {
            let what = format!("`{name}` of `llm` cannot be `{value}`");
            let hint = "write a number from 0 to 2, or leave it out";
            self.refuse(Mistake::error(what).hint(hint));
        }
        number
    }

    fn whole(&mut self, names: Names) -> Option<u64> {
        let (name, value) = self.get(names)?;
        let number = value.as_u64().filter(|number| *number > 0);
        if number.is_none() {
            let what = format!("`{name}` of `llm` must be a whole number from 1 on");
            self.refuse(Mistake::error(what));
        }
        number
    }

    /// A text, with its variables looked up. It may be a secret: it is not shown.
    fn text(&mut self, names: Names) -> Option<String> {
        let (name, value) = self.get(names)?;
        match value {
            Value::String(text) => self.expanded(text),
            _ => {
                self.refuse(Mistake::error(format!("`{name}` of `llm` must be a text")));
                None
            }
        }
    }

    fn expanded(&mut self, text: &str) -> Option<String> {
        let texts = expand::Around { folder: self.around.folder, variables: self.around.variables };
        let text = Text { text: text.to_owned(), place: self.place.clone() };
        match expanded(&text, &texts) {
            Ok(text) => Some(text),
            Err(mistake) => {
                self.mistakes.push(mistake);
                None
            }
        }
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
            self.mistakes.push(self.place.mistake(mistake.hint(hint)));
        }
    }

    fn refuse(&mut self, mistake: Mistake) {
        self.mistakes.push(self.place.mistake(mistake));
    }
}

#[cfg(test)]
mod tests;
