//! `tools/call`: a call that ends at once, becomes a run, or needs something from the client.

pub(crate) mod elicit;
pub(crate) mod wanting;
pub(crate) mod result;
pub(crate) mod calling;
pub(crate) mod asked;
pub(crate) mod call;
