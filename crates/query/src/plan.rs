//! What a caller is told about a query before it runs.

use crate::tree::Query;

/// How a query is run, and which references are embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryPlan {
    pub mode: Mode,
    pub expand_paths: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Records are found.
    Filter,
    /// Records are found, and others embedded in them.
    Aggregation,
}

impl Mode {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Filter => "FILTER",
            Mode::Aggregation => "AGGREGATION",
        }
    }
}

/// The plan of a query.
pub fn plan(query: &Query) -> QueryPlan {
    let mode = if query.expands.is_empty() { Mode::Filter } else { Mode::Aggregation };
    let expand_paths = query.expands.iter().map(|expand| expand.path.to_string()).collect();
    QueryPlan { mode, expand_paths }
}
