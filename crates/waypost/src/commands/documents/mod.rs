//! Commands that write documents: completions, manual pages, schemas.

pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod schema;
