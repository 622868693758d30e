//! `tools/call`: a call that ends at once, becomes a run, or needs something from the client, and
//! its result as MCP writes it. `input_required` serves prompts as well. All other methods are in
//! `methods`.

pub(crate) mod elicit;
pub(crate) mod input_required;
pub(crate) mod result;
pub(crate) mod active_call;
pub(crate) mod run_input;
pub(crate) mod pending_run;
pub(crate) mod call;
