//! `tools/call`: a call that ends at once, becomes a run, or needs something from the client, and
//! its result as MCP writes it. `wanting` serves prompts as well. All other methods are in
//! `methods`.

pub(crate) mod elicit;
pub(crate) mod wanting;
pub(crate) mod result;
pub(crate) mod calling;
pub(crate) mod wanted;
pub(crate) mod asked;
pub(crate) mod call;
