//! What all MCP requests share: the engine's doors, the shelves, the secret, the sessions.

use super::cache::Lists;
use super::seal::Seal;
use super::sessions::Sessions;
use crate::doors::Shared;
use kernel::contracts::Spawn;
use kernel::shelf::Shelf;
use std::sync::Arc;

/// The MCP door of one server.
pub(crate) struct Door {
    /// The engine and who may come in.
    pub(crate) doors: Shared,
    /// Prompts and resources; the first one that holds something answers for it.
    pub(crate) shelves: Vec<Arc<dyn Shelf>>,
    /// Seals what a client carries for us.
    pub(crate) seal: Seal,
    /// Lists that are written already.
    pub(crate) lists: Lists,
    /// The sessions of the versions with a handshake.
    pub(crate) sessions: Sessions,
    /// Tasks.
    pub(crate) spawn: Arc<dyn Spawn>,
    /// Whether requests are taken that the stateless version would refuse: `[mcp] lenient`.
    pub(crate) lenient: bool,
}

impl Door {
    /// A door before these shelves, which seals with this key.
    pub(crate) fn new(
        doors: Shared,
        shelves: Vec<Arc<dyn Shelf>>,
        key: [u8; 32],
        spawn: Arc<dyn Spawn>,
    ) -> Self {
        Self {
            doors,
            shelves,
            seal: Seal::new(key),
            lists: Lists::default(),
            sessions: Sessions::default(),
            spawn,
            lenient: false,
        }
    }

    /// The same, lenient or not.
    #[must_use]
    pub(crate) fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }
}
