//! JSON Schema as a contract: the kernel says what must fit, the engine brings the validator. What
//! a schema costs is measured here (`weigh`), before anybody builds a validator of it: schemas come
//! from callers and from other servers, and a short one can keep a validator busy for ever.

mod size;
mod pattern;
mod index;
mod graph;
mod weight;

pub use weight::{Weight, weigh};

use serde_json::Value;
use std::fmt::Display;
use std::sync::Arc;

/// The size of a schema, in bytes.
const SCHEMA_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How many parts a schema has once its references are followed; what repeats in a pattern counts
/// as often.
const SCHEMA_PARTS_MAX: usize = 20_000;
/// How deep a schema nests, and how many references follow each other in it.
const SCHEMA_DEPTH_MAX: usize = 48;
/// How many ways there are to hold one value against a schema, members and items left aside.
const SCHEMA_WAYS_MAX: u64 = 10_000;
/// How many parts the schemas that come together may have, such as all forms of one plan.
pub const PARTS_AT_ONCE_MAX: usize = 50_000;
/// How many steps the checks that are made together may take, such as those of one plan's examples.
pub const STEPS_AT_ONCE_MAX: u64 = 10_000_000;
/// How often an engine may go back while it matches one text against a pattern that needs it; on
/// more it gives up. `Weight::is_within` counts on that.
pub const BACKTRACKS_MAX: usize = 5_000;

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
    /// Whether this is a schema, and one that can be used: how many parts it has, once its
    /// references are followed.
    fn compile(&self, schema: &Arc<Value>) -> Result<usize, Misfit>;
    /// Whether the value fits; at most a handful of misfits are reported. A schema that cannot be
    /// used, or not for a value like this, is a misfit.
    fn check(&self, schema: &Arc<Value>, value: &Value) -> Result<(), Vec<Misfit>>;
    /// About how many steps a check takes, for who makes many of them at once.
    fn steps(&self, schema: &Arc<Value>, value: &Value) -> u64;
}

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

/// A schema that is kept out: it does more than this.
fn refused(does_more: &str, max: impl Display) -> Misfit {
    let message = format!("the schema is too complex: {does_more} than {max}");
    Misfit { pointer: String::new(), message }
}

#[cfg(test)]
mod tests;
