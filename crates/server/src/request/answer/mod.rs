//! What answers have in common: how they end, and documents that are made once and kept. What a
//! single answer says is its handler's.

pub(crate) mod documents;
pub(crate) mod newline;
