//! Reads which model decides cases that no handler takes.

use super::Form;
use crate::definition::pipeline::PipelineLlm;
use crate::definition::plan::read::Spot;
use serde_json::{Map, Value};

pub(super) const TYPES: &[&str] = &["stub", "rules", "openai", "anthropic", "gemini", NAMED];

/// The type of a model that the project has.
const NAMED: &str = "model";

impl Form<'_> {
    /// `own` is the name of a model that the pipeline brings itself.
    pub(super) fn llm(&mut self, spot: &Spot<'_>, own: &str) -> Option<PipelineLlm> {
        let field = self.reader.need(spot, "llm")?;
        if !self.reader.object(&field, "`llm`", &["type", "params"]) {
            return None;
        }
        let kind = self.reader.need(&field, "type")?;
        let word = self.reader.text(&kind)?;
        if word == NAMED {
            let name = self.param(&field, "name", "`model`")?;
            return Some(PipelineLlm::Named(name.into()));
        }
        if !TYPES.contains(&word) {
            self.unknown_type(&kind, "llm", TYPES);
            return None;
        }
        let params = self.llm_params(&field)?;
        Some(PipelineLlm::Own { name: own.into(), kind: word.to_owned(), params })
    }

    /// Which ones are valid is known where models are opened.
    fn llm_params(&mut self, spot: &Spot<'_>) -> Option<Map<String, Value>> {
        let Some(params) = spot.field("params") else { return Some(Map::new()) };
        match params.node.to_value() {
            Value::Object(fields) => Some(fields),
            _ => {
                self.reader.wrong(&params, "a map of params");
                None
            }
        }
    }
}
