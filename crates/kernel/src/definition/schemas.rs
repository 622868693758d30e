//! JSON Schemas of the files that people write: plans, agents, pipelines. Editors complete and
//! check by them, and the reference of keys is made from them. What a file may say is decided by
//! its reader; the tests of the readers hold these schemas to the same keys.

/// The schema of a plan's file.
pub const PLAN: &str = include_str!("schemas/plan.json");
/// The schema of an agent's file.
pub const AGENT: &str = include_str!("schemas/agent.json");
/// The schema of a pipeline's file.
pub const PIPELINE: &str = include_str!("schemas/pipeline.json");

/// For the tests of readers.
#[cfg(test)]
pub(crate) mod described {
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// A schema as JSON.
    pub(crate) fn schema(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    /// The keys that a map may have by its schema.
    pub(crate) fn keys(schema: &Value) -> BTreeSet<&str> {
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    /// The words that a text can be by its schema.
    pub(crate) fn words(schema: &Value) -> Vec<&str> {
        schema["enum"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
    }
}
