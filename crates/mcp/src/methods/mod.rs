//! The methods beside `tools/call` and `tools/list`: the handshake, prompts, resources, completion,
//! tasks and subscriptions. `dispatch` chooses among them.

pub(crate) mod tasks;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod complete;
pub(crate) mod handshake;
pub(crate) mod listen;
