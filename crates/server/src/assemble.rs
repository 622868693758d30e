//! Builds everything: settings and a data folder become a store, an engine and its doors. The one
//! place where parts meet; constructors receive, nothing is looked up.

use crate::auth::{Entrance, REALM};
use crate::config::Config;
use crate::doors::{Doors, Shared};
use crate::project::{Project, told};
use crate::routes::router;
use axum::Router;
use engine::clock::{SystemClock, SystemEntropy, TokioSpawn};
use engine::refusal::Refusal;
use engine::schema::JsonSchemas;
use engine::{AllowAll, Engine};
use kernel::contracts::{Clock, Spawn};
use kernel::ids::RealmId;
use kernel::plan::mistake::Mistake;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use stores::{Fatal, OpenError, Opened, Place};

/// What a server is built from.
pub struct Setup {
    /// The project.
    pub project: Project,
    /// The folder that holds the data.
    pub data: PathBuf,
    /// Where the server listens: the bound address, so that port 0 is the real one here.
    pub address: SocketAddr,
    /// `WAYPOST_ADMIN_KEY`; an empty one is none.
    pub admin_key: Option<String>,
    /// Ends the process after a failed sync.
    pub fatal: Fatal,
}

/// A server that is ready to serve.
pub struct Assembled {
    /// All doors; tests call it in process.
    pub router: Router,
    /// What is behind them.
    pub engine: Engine,
    /// What in the project's plans has no effect.
    pub warnings: Vec<Mistake>,
    pub(crate) doors: Shared,
    pub(crate) spawn: Arc<dyn Spawn>,
}

/// Why a server could not be built.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The project's plans are wrong.
    #[error("{}", told(.0))]
    Plans(Vec<Mistake>),
    /// What is stored cannot be used.
    #[error("{0}")]
    Stored(String),
}

/// Builds a server on the current tokio runtime and lets it go on with what it left undone.
pub async fn assemble(setup: Setup) -> Result<Assembled, AssembleError> {
    let Setup { project, data, address, admin_key, fatal } = setup;
    let Config { server, limits, http, session_ttls } = project.config;
    let limits = Arc::new(limits);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let spawn: Arc<dyn Spawn> = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
    let opened = stores::open(
        &Place::Folder(data),
        stores::Parts {
            spawn: spawn.clone(),
            clock: clock.clone(),
            limits: limits.clone(),
            fatal,
            vfs: None,
        },
    )?;
    let Opened { store, definitions, blobs } = opened;
    let engine = Engine::start(engine::Parts {
        store,
        definitions,
        blobs,
        tools: tools::builtin(http),
        policy: Arc::new(AllowAll),
        schemas: Arc::new(JsonSchemas::default()),
        clock,
        entropy: Arc::new(SystemEntropy),
        spawn: spawn.clone(),
        limits,
        session_ttls,
    });
    let realm = RealmId::from(REALM);
    let warnings = engine.load_plans(&realm, project.plans).map_err(AssembleError::Plans)?;
    engine.load_stored_plans(&realm).await.map_err(stored)?;
    engine.keep_recovering();
    let entrance = Entrance::new(address, &server, admin_key.as_deref());
    let doors = Arc::new(Doors::new(engine.clone(), entrance));
    Ok(Assembled { router: router(doors.clone()), engine, warnings, doors, spawn })
}

fn stored(refusal: Refusal) -> AssembleError {
    let hint = refusal.hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
    AssembleError::Stored(format!("{}{hint}", refusal.message))
}
