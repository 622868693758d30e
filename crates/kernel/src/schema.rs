//! JSON Schema as a contract: the kernel says what must fit, the engine brings the validator.

use serde_json::Value;
use std::sync::Arc;

/// One place where a value does not fit, or a schema is not one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// JSON Pointer to the faulty value, `/items/0`; empty for the whole.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

/// Compiles schemas (2020-12 unless `$schema` says otherwise; no network) and checks values.
pub trait Schemas: Send + Sync {
    /// Whether this is a schema.
    fn compile(&self, schema: &Arc<Value>) -> Result<(), Misfit>;
    /// Whether the value fits; at most a handful of misfits are told.
    fn check(&self, schema: &Arc<Value>, value: &Value) -> Result<(), Vec<Misfit>>;
}

/// Misfits as one sentence.
pub fn sentence(misfits: &[Misfit]) -> String {
    let told: Vec<String> = misfits
        .iter()
        .map(|misfit| match misfit.pointer.as_str() {
            "" => misfit.message.clone(),
            pointer => format!("at `{pointer}`: {}", misfit.message),
        })
        .collect();
    told.join("; ")
}
