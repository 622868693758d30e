//! What people type and read at a terminal: input, output, progress, differences between texts,
//! agents as YAML. Data goes to standard output, all else to standard error.

pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod input;
pub(crate) mod unified;
pub(crate) mod yaml;
