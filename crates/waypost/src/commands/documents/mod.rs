//! Commands that write documents: completions, manual pages, the reference.

pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod docs_reference;
