//! What all MCP requests share: the engine's doors, the shelves, the secret, the sessions.

use crate::doors::Shared;
use kernel::shelf::Shelf;
use std::sync::Arc;

/// The MCP door of one server.
pub(crate) struct Door {
    /// The engine and who may come in.
    pub(crate) doors: Shared,
    /// Prompts and resources; the first one that holds something answers for it.
    pub(crate) shelves: Vec<Arc<dyn Shelf>>,
}
