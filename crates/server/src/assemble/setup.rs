//! What a server is built from: the project, the data folder, keys, and what code adds beside the
//! built-in tools.

use a2a::ChooseSkill;
use axum::Router;
use edge::gateway::Lookup;
use engine::Model;
use kernel::contracts::shelf::Shelf;
use kernel::contracts::{Policy, Tool};
use project::folder::Project;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use stores::{FatalHandler, StoreLocation};

/// What a server is built from.
pub struct Setup {
    pub project: Project,
    /// The folder that holds the data.
    pub data: PathBuf,
    /// Whether that folder gets a new database where it has lost its own, instead of a refusal.
    pub renew: bool,
    /// Whether a database is taken that has lost acknowledged writes, instead of a refusal.
    pub after_loss: bool,
    /// Where the server listens: the bound address, so that port 0 is the real one here. On a pipe
    /// it is port 0.
    pub address: SocketAddr,
    /// `WAYPOST_ADMIN_KEY`; an empty one is none.
    pub admin_key: Option<String>,
    /// `WAYPOST_API_KEY`: the credential of a client on standard input and output.
    pub api_key: Option<String>,
    /// Whether everybody needs a credential, also where only this machine reaches the server.
    pub never_local: bool,
    /// `WAYPOST_SECRET_KEY`; without one the data folder has its own.
    pub secret_key: Option<String>,
    /// What code adds beside the built-in tools.
    pub extra: Extra,
    /// Whether nothing is offered but what code adds: no built-in tools, and no plans, sessions
    /// and blobs as prompts and resources.
    pub only_extra: bool,
    /// The variables that upstreams may name.
    pub variables: Lookup,
    /// Our own binary, which watches over the processes of upstreams; without one they are started
    /// directly.
    pub supervisor: Option<PathBuf>,
    /// Whether nothing outside is reached: no upstreams, no models of providers, no sinks and no
    /// collector. Plans that name tools of upstreams can still be read. Only the process itself
    /// calls such a server, so on loopback no credential is needed.
    pub isolated: bool,
    /// Ends the process: after a failed sync, or when the data folder is not ours alone any more.
    pub fatal: FatalHandler,
}

impl Setup {
    /// A server without keys, extras and variables: `Setup { admin_key, ..Setup::new(..) }`.
    pub fn new(project: Project, data: PathBuf, address: SocketAddr, fatal: FatalHandler) -> Self {
        Self {
            project,
            data,
            renew: false,
            after_loss: false,
            address,
            admin_key: None,
            api_key: None,
            never_local: false,
            secret_key: None,
            extra: Extra::default(),
            only_extra: false,
            variables: Arc::new(|_: &str| None),
            supervisor: None,
            isolated: false,
            fatal,
        }
    }

    /// Where the store is, and what opening it may do.
    pub(super) fn store_location(&self) -> StoreLocation {
        match (self.renew, self.after_loss) {
            (true, _) => StoreLocation::RenewedFolder(self.data.clone()),
            (false, true) => StoreLocation::FolderAfterLoss(self.data.clone()),
            (false, false) => StoreLocation::Folder(self.data.clone()),
        }
    }
}

/// What code adds to what is built in.
#[derive(Default)]
pub struct Extra {
    /// More tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// More prompts and resources.
    pub shelves: Vec<Arc<dyn Shelf>>,
    /// More routes, in the same frame as ours: strangers do not get through to them.
    pub routes: Router,
    /// More models, by the names that agents know them by.
    pub models: Vec<(String, Model)>,
    /// Which skill a message of A2A is for that names none.
    pub choose_skill: Option<ChooseSkill>,
    /// Who may do what. Without one, everyone may do everything in local mode, and the built-in
    /// roles decide otherwise.
    pub policy: Option<Arc<dyn Policy>>,
}
