//! What answers have in common: how they end, documents that are made once and kept, and how many
//! wait to be read. What a single answer says is its handler's.

pub mod documents;
pub mod newline;
pub mod underway;
