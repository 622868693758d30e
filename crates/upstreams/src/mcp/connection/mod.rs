//! One connection to an MCP server over its life: what is listed and listed again, and the task
//! that connects again.

pub(crate) mod attend;
pub(crate) mod supervisor;
