//! Builds everything: settings and a data folder become a store, an engine and its doors. The one
//! place where parts meet; constructors receive, nothing is looked up.

use crate::auth::{Entrance, REALM};
use crate::config::Config;
use crate::doors::{Doors, Shared};
use crate::mcp::door::Door;
use crate::mcp::own::Own;
use crate::project::{Project, told};
use crate::routes::router;
use crate::secret::{SecretError, secret_key};
use axum::Router;
use engine::clock::{SystemClock, SystemEntropy, TokioSpawn};
use engine::refusal::Refusal;
use engine::schema::JsonSchemas;
use engine::{AllowAll, Engine, ToolSource};
use kernel::contracts::{Clock, Spawn, Tool};
use kernel::ids::RealmId;
use kernel::plan::mistake::Mistake;
use kernel::shelf::Shelf;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use stores::{Fatal, Holder, OpenError, Opened, Place};

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
    /// `WAYPOST_SECRET_KEY`; without one the data folder has its own.
    pub secret_key: Option<String>,
    /// What code brings beside the built-in tools.
    pub extra: Extra,
    /// Ends the process after a failed sync.
    pub fatal: Fatal,
}

impl Setup {
    /// A server without keys and extras: `Setup { admin_key, ..Setup::new(..) }`.
    pub fn new(project: Project, data: PathBuf, address: SocketAddr, fatal: Fatal) -> Self {
        Self {
            project,
            data,
            address,
            admin_key: None,
            secret_key: None,
            extra: Extra::default(),
            fatal,
        }
    }
}

/// What code brings beside what is built in.
#[derive(Default)]
pub struct Extra {
    /// More tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// More prompts and resources.
    pub shelves: Vec<Arc<dyn Shelf>>,
}

/// A server that is ready to serve.
pub struct Assembled {
    /// All doors; tests call it in process.
    pub router: Router,
    /// What is behind them.
    pub engine: Engine,
    /// What in the project's plans and in the rules for tools has no effect.
    pub warnings: Vec<Mistake>,
    pub(crate) doors: Shared,
    pub(crate) door: Arc<Door>,
    pub(crate) spawn: Arc<dyn Spawn>,
}

/// Why a server could not be built.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Two tools have one name, or one cannot be used.
    #[error("{}", told(.0))]
    Tools(Vec<Mistake>),
    /// The secret key cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The project's plans are wrong.
    #[error("{}", told(.0))]
    Plans(Vec<Mistake>),
    /// What is stored cannot be used.
    #[error("{0}")]
    Stored(String),
}

impl AssembleError {
    /// Who holds the data folder, where that is why.
    pub fn holder(&self) -> Option<&Holder> {
        let AssembleError::Store(OpenError::Held { holder, .. }) = self else { return None };
        Some(holder)
    }
}

/// Builds a server on the current tokio runtime and lets it go on with what it left undone.
pub async fn assemble(setup: Setup) -> Result<Assembled, AssembleError> {
    let Setup { project, data, address, admin_key, secret_key: given_key, extra, fatal } = setup;
    let Config { server, limits, tools: rules, http, mcp, session_ttls } = project.config;
    let limits = Arc::new(limits);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let spawn: Arc<dyn Spawn> = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
    let opened = stores::open(
        &Place::Folder(data.clone()),
        stores::Parts {
            spawn: spawn.clone(),
            clock: clock.clone(),
            limits: limits.clone(),
            fatal,
            vfs: None,
        },
    )?;
    let Opened { store, definitions, blobs } = opened;
    // After the store: it makes the folder and holds it alone.
    let key = secret_key(&data, given_key.as_deref())?;
    let engine = Engine::start(engine::Parts {
        store,
        definitions,
        blobs,
        tools: vec![
            ToolSource::new("the built-in tools", tools::builtin(http)),
            ToolSource::new("the host program", extra.tools),
        ],
        rules,
        awaited: Vec::new(),
        policy: Arc::new(AllowAll),
        schemas: Arc::new(JsonSchemas::default()),
        clock,
        entropy: Arc::new(SystemEntropy),
        spawn: spawn.clone(),
        limits,
        session_ttls,
    })
    .map_err(AssembleError::Tools)?;
    let realm = RealmId::from(REALM);
    let mut warnings = engine.load_plans(&realm, project.plans).map_err(AssembleError::Plans)?;
    engine.load_stored_plans(&realm).await.map_err(stored)?;
    warnings.extend(engine.idle_rules(&realm));
    engine.keep_recovering();
    let entrance = Entrance::new(address, &server, admin_key.as_deref());
    let doors = Arc::new(Doors::new(engine.clone(), entrance));
    // Ours last: it has the longest lists, and a client that ignores cursors should see the others.
    let mut shelves = extra.shelves;
    shelves.push(Arc::new(Own::new(engine.clone())));
    let door = Door::new(doors.clone(), shelves, key, spawn.clone()).lenient(mcp.lenient);
    let door = Arc::new(door);
    let router = router(doors.clone(), door.clone());
    Ok(Assembled { router, engine, warnings, doors, door, spawn })
}

fn stored(refusal: Refusal) -> AssembleError {
    let hint = refusal.hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
    AssembleError::Stored(format!("{}{hint}", refusal.message))
}
