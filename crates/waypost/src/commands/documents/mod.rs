//! Commands that write documents: completions, manual pages.

pub(crate) mod completions;
pub(crate) mod man;
