//! What answers have in common: how they end, documents that are made once and kept, and how many
//! wait to be read. What a single answer says is its handler's.

pub(crate) mod documents;
pub(crate) mod newline;
pub(crate) mod underway;
