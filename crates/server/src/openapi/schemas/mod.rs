//! The bodies of `wire` as JSON Schemas, each written once, under the name of its type and with an
//! example. Tests hold every example against its schema and against the type itself.

mod problem;
mod runs;
mod asks;
mod catalog;
mod agents;
mod pipelines;
mod upstreams;
mod sinks;
mod streams;
mod backup;
mod seed001;
mod seed004;

use serde_json::{Map, Value};

/// A name and its schema.
type Named = (&'static str, Value);

/// All of them, by name.
pub(super) fn all() -> Map<String, Value> {
    let groups: [Vec<Named>; 12] = [
        problem::schemas(),
        runs::schemas(),
        asks::schemas(),
        catalog::schemas(),
        agents::schemas(),
        pipelines::schemas(),
        upstreams::schemas(),
        sinks::schemas(),
        streams::schemas(),
        backup::schemas(),
        seed001::schemas(),
        seed004::schemas(),
    ];
    groups.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

#[cfg(test)]
mod tests;
