//! The models that agents may name: `[models.<name>]` of our settings, those whose provider's key
//! is in the environment, and those that pipelines bring themselves. Keys and files are looked up
//! only when a server starts, so settings can be read, shown and checked without them.

mod keys;
mod entry;
mod of_pipelines;

use crate::upstream_entries::Variables;
use kernel::conversation::llm::missing_key;
use kernel::definition::plan::mistake::{Mistake, meant};
use llms::config::ModelConfig;
use std::collections::BTreeMap;
use std::path::Path;

pub use entry::ModelEntry;
pub use keys::ModelKeys;
pub use of_pipelines::{is_alone, of_pipelines};

/// What is around the settings when models are opened.
pub struct ModelContext<'a> {
    /// The project's folder, where rules are looked for.
    pub folder: &'a Path,
    /// Texts that a project has instead of files, by path: the demo is in no folder.
    pub texts: &'a BTreeMap<String, String>,
    /// The variables that keys and headers may name.
    pub variables: &'a Variables<'a>,
    /// The size of a file of rules.
    pub bytes_max: usize,
}

/// All models with everything looked up, by name, or all that is wrong. What is configured
/// overrides what is there because of a key.
pub fn configs(
    entries: &[ModelEntry],
    around: &ModelContext<'_>,
) -> Result<Vec<ModelConfig>, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let config = |entry: &ModelEntry| entry.config(around).map_err(|why| mistakes.push(why)).ok();
    let mut configs: Vec<ModelConfig> = entries.iter().filter_map(config).collect();
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let by_key = llms::default_models(&|name: &str| (around.variables)(name));
    configs.extend(by_key.into_iter().filter(|model| !has(entries, &model.name)));
    configs.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(configs)
}

/// What to do about a model that is not there.
pub fn instead(word: &str, names: &[String]) -> String {
    if let Some(hint) = missing_key(word) {
        return hint;
    }
    if names.is_empty() {
        return "there are no models: add `[models.<name>]` to waypost.toml, or set \
                `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GOOGLE_API_KEY`"
            .to_owned();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    meant(word, names.iter().map(String::as_str))
        .unwrap_or_else(|| format!("the models are {}", quoted.join(", ")))
}

fn has(entries: &[ModelEntry], name: &str) -> bool {
    entries.iter().any(|entry| entry.name == name)
}

#[cfg(test)]
mod tests;
