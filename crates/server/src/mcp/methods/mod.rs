//! The other methods: the handshake, prompts, resources, completion, tasks and subscriptions.

pub(crate) mod tasks;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod complete;
pub(crate) mod hello;
pub(crate) mod listen;
