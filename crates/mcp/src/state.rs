//! What all MCP requests share: the state of the server, the shelves, the secret, the sessions.

use super::cache::Lists;
use super::seal::Seal;
use super::sessions::Sessions;
use edge::request::server_state::{ServerState, Shared};
use kernel::contracts::Spawn;
use kernel::contracts::policy::Resource;
use kernel::contracts::shelf::Shelf;
use kernel::tool::call::Caller;
use outbound::seal::Keyring;
use std::sync::Arc;

/// The MCP endpoint of one server.
pub struct McpState {
    /// The engine and who may come in.
    pub(crate) server: Shared,
    /// What code brings; asked before the upstreams.
    first: Vec<Arc<dyn Shelf>>,
    /// Ours; asked last.
    own: Arc<dyn Shelf>,
    /// Seals what a client carries for us.
    pub(crate) seal: Seal,
    /// Lists that are written already.
    pub(crate) lists: Lists,
    /// The sessions of the versions with a handshake.
    pub(crate) sessions: Sessions,
    pub(crate) spawn: Arc<dyn Spawn>,
    /// Whether requests are taken that the stateless version would refuse: `[mcp] lenient`.
    pub(crate) lenient: bool,
}

impl McpState {
    /// The endpoint of what code brings and what is ours, which seals with these secrets.
    pub fn new(
        server: Shared,
        first: Vec<Arc<dyn Shelf>>,
        own: Arc<dyn Shelf>,
        keys: &Keyring,
        spawn: Arc<dyn Spawn>,
        lenient: bool,
    ) -> Self {
        Self {
            server,
            first,
            own,
            seal: Seal::new(keys),
            lists: Lists::default(),
            sessions: Sessions::default(),
            spawn,
            lenient,
        }
    }

    /// All prompts and resources that this caller may look for; the first shelf that holds
    /// something answers for it. Those of upstreams that it may not read are not there for it; what
    /// is ours, the engine asks about one by one. Ours is the last: it has the longest lists, and a
    /// client that ignores cursors should see the others.
    pub(crate) fn shelves(&self, caller: &Caller) -> Vec<Arc<dyn Shelf>> {
        let ServerState { engine, gateway, .. } = &*self.server;
        let running = gateway.running(&caller.realm);
        let upstreams = engine
            .admin()
            .readable(caller, running, |upstream| Resource::Upstream(upstream.name()));
        let mut shelves = self.first.clone();
        shelves.extend(upstreams.iter().map(|upstream| upstream.shelf()));
        shelves.push(self.own.clone());
        shelves
    }

    /// The same in the order in which we look for a resource: ours for URIs that are written as
    /// ours are, then those who list it, then those whose families it may be of, then those who
    /// take what they do not list. So no server can put itself before us, or before who lists what
    /// it only claims; and none of them need be there for what is ours.
    pub(crate) fn shelves_for(&self, caller: &Caller, uri: &str) -> Vec<Arc<dyn Shelf>> {
        let mut shelves = self.shelves(caller);
        if self.own.lists(caller, uri) {
            shelves.rotate_right(1);
            // What is written as ours, and is not there, is no one else's.
            shelves.retain(|shelf| !shelf.takes_unlisted(caller, uri));
        }
        shelves.sort_by_cached_key(|shelf| {
            (!shelf.lists(caller, uri), shelf.takes_unlisted(caller, uri))
        });
        shelves
    }
}
