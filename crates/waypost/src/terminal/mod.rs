//! What people type and read at a terminal: input, output, tables, progress, what agents say,
//! differences between texts, agents as YAML. Data goes to standard output, all else to standard
//! error.

pub(crate) mod screen;
pub(crate) mod output;
pub(crate) mod table;
pub(crate) mod prose;
pub(crate) mod progress;
pub(crate) mod input;
pub(crate) mod paste;
pub(crate) mod keys;
pub(crate) mod editor;
pub(crate) mod lines;
pub(crate) mod unified;
pub(crate) mod yaml;
