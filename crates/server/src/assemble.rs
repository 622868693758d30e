//! Builds everything: settings and a data folder become a store, an engine and its doors. The one
//! place where parts meet; constructors receive, nothing is looked up.

use crate::agents;
use crate::auth::{Entrance, REALM};
use crate::config::{Config, ServerConfig};
use crate::doors::{Doors, Shared};
use crate::gateway::{Gateway, GatewayParts, Lookup, left_out, stored_entries};
use crate::mcp::door::Door;
use crate::mcp::own::Own;
use crate::project::{Project, told};
use crate::public_url::PublicUrl;
use crate::routes::router;
use crate::secret::{SecretError, secret_key};
use crate::upstreams::{Entry, Ourselves, Upstreams, absolute};
use crate::vault::FileVault;
use crate::zones::SystemZones;
use axum::Router;
use engine::clock::{SystemClock, SystemEntropy, TokioSpawn};
use engine::refusal::Refusal;
use engine::schema::JsonSchemas;
use engine::{AgentFile, AllowAll, Engine, Model, Models, PlanFile, Price, ToolSource};
use kernel::agent::Agent;
use kernel::call::Caller;
use kernel::contracts::{Clock, Definitions, Entropy, Spawn, Tool};
use kernel::ids::{AgentName, RealmId};
use kernel::limits::Limits;
use kernel::llm::Usage;
use kernel::plan::mistake::Mistake;
use kernel::shelf::Shelf;
use llms::config::ModelConfig;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stores::{Fatal, Hold, Holder, OpenError, Opened, Place};
use tools::HttpSettings;
use tools::remote::{LoginPlaces, RemoteParts, UpstreamConfig, Vault};

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
    /// Whether nothing is offered but what code brings: no built-in tools, and no plans, sessions
    /// and blobs as prompts and resources.
    pub only_extra: bool,
    /// The variables that upstreams may name.
    pub variables: Lookup,
    /// Our own binary, which watches over the processes of upstreams; without one they are started
    /// directly.
    pub supervisor: Option<PathBuf>,
    /// Whether no upstream is started: plans that name their tools can be read, and that is all.
    pub alone: bool,
    /// Ends the process after a failed sync.
    pub fatal: Fatal,
}

impl Setup {
    /// A server without keys, extras and variables: `Setup { admin_key, ..Setup::new(..) }`.
    pub fn new(project: Project, data: PathBuf, address: SocketAddr, fatal: Fatal) -> Self {
        Self {
            project,
            data,
            address,
            admin_key: None,
            secret_key: None,
            extra: Extra::default(),
            only_extra: false,
            variables: Arc::new(|_: &str| None),
            supervisor: None,
            alone: false,
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
    /// More doors, in the same frame as ours: strangers do not get through to them.
    pub routes: Router,
    /// More models, by the names that agents know them by.
    pub models: Vec<(String, Model)>,
}

/// A shelf with nothing on it.
struct Bare;

impl Shelf for Bare {}

/// A server that is ready to serve.
pub struct Assembled {
    /// All doors; tests call it in process.
    pub router: Router,
    /// What is behind them.
    pub engine: Engine,
    /// What in the project's plans, agents and rules for tools has no effect.
    pub warnings: Vec<Mistake>,
    pub(crate) doors: Shared,
    pub(crate) door: Arc<Door>,
    pub(crate) spawn: Arc<dyn Spawn>,
}

impl Assembled {
    /// What ends it in good order, also for whoever serves it no more.
    pub fn stopper(&self) -> Stopper {
        Stopper { doors: self.doors.clone() }
    }
}

/// Ends a server in good order.
#[derive(Clone)]
pub struct Stopper {
    doors: Shared,
}

impl Stopper {
    /// Ends the engine, and then the upstreams, which its last calls may still need.
    pub async fn stop(&self) {
        self.doors.engine.stop().await;
        self.doors.gateway.stop().await;
    }
}

/// Why a server could not be built.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// What is said of upstreams is wrong.
    #[error("{}", told(.0))]
    Upstreams(Vec<Mistake>),
    /// A model cannot be used.
    #[error("{}", told(.0))]
    Models(Vec<Mistake>),
    /// Two tools have one name, or one cannot be used.
    #[error("{}", told(.0))]
    Tools(Vec<Mistake>),
    /// The secret key cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The project's agents are wrong.
    #[error("{}", told(.0))]
    Agents(Vec<Mistake>),
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

/// The vault of a data folder that no server uses now. Nobody else can use the folder while it is
/// held: two who renew the same login take it from each other.
pub struct HeldVault {
    /// What logins brought.
    pub vault: Arc<dyn Vault>,
    _hold: Hold,
}

impl HeldVault {
    /// Takes the folder for as long as this lives, or says who has it; none where nobody ever
    /// logged in. `given` is `WAYPOST_SECRET_KEY`.
    pub fn take(data: &Path, given: Option<&str>) -> Result<Option<Self>, AssembleError> {
        if !FileVault::is_there(data) {
            return Ok(None);
        }
        let hold = stores::hold(data, SystemClock.now())?;
        let key = secret_key(data, given)?;
        let vault = Arc::new(FileVault::new(data, key, Arc::new(SystemEntropy)));
        Ok(Some(Self { vault, _hold: hold }))
    }
}

/// Builds a server on the current tokio runtime and lets it go on with what it left undone.
pub async fn assemble(setup: Setup) -> Result<Assembled, AssembleError> {
    let Behind { upstreams, configs, models } = behind(&setup)?;
    let Setup { project, data, address, admin_key, secret_key: given_key, extra, .. } = setup;
    let (variables, supervisor, fatal) = (setup.variables, setup.supervisor, setup.fatal);
    let Config { server, limits, tools: rules, http, mcp, agents, session_ttls, .. } =
        project.config;
    let limits = Arc::new(limits);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    let spawn: Arc<dyn Spawn> = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
    let Opened { store, definitions, blobs } =
        stores::open(&Place::Folder(data.clone()), store_parts(&spawn, &clock, &limits, fatal))?;
    // After the store: it makes the folder and holds it alone.
    let key = secret_key(&data, given_key.as_deref())?;
    let realm = RealmId::from(REALM);
    let is_configured = |name: &str| upstreams.entries().iter().any(|entry| entry.name == name);
    let (providers, mut warnings) =
        stored_entries(definitions.as_ref(), &realm, is_configured).await.map_err(stored)?;
    warnings.extend(project.clients.warnings);
    let remote = RemoteParts {
        spawn: spawn.clone(),
        clock: clock.clone(),
        entropy: entropy.clone(),
        limits: limits.clone(),
        supervisor,
        vault: Arc::new(FileVault::new(&data, key, entropy.clone())),
        login: login_places(address, &server),
    };
    let engine = Engine::start(engine::Parts {
        store,
        definitions: definitions.clone(),
        blobs,
        tools: vec![
            ToolSource::new("the built-in tools", builtin(setup.only_extra, http)),
            ToolSource::new("the host program", extra.tools),
        ],
        rules,
        awaited: awaited(&upstreams, &providers),
        models: with_extra(models, extra.models),
        policy: Arc::new(AllowAll),
        schemas: Arc::new(JsonSchemas::default()),
        clock,
        zones: Arc::new(SystemZones),
        entropy,
        spawn: spawn.clone(),
        limits,
        session_ttls,
    })
    .map_err(AssembleError::Tools)?;
    let default = agents.default.clone();
    let brought = Brought { agents: project.agents, plans: project.plans, default };
    warnings.extend(load(&engine, definitions.as_ref(), brought).await?);
    engine.keep_recovering();
    let folder = absolute(&project.folder);
    let parts = GatewayParts { engine: engine.clone(), definitions, remote, variables, folder };
    let gateway = Gateway::start(parts, upstreams.entries(), configs);
    warnings.extend(begin_stored(&gateway, &providers).await);
    gateway.watch_arrivals();
    let entrance = Entrance::new(address, &server, admin_key.as_deref());
    let doors = Doors::new(engine.clone(), entrance, gateway);
    let doors = Arc::new(doors.talking_to(agents.default));
    let shelves = (extra.shelves, own_shelf(setup.only_extra, &engine));
    let door = Door::new(doors.clone(), shelves, key, spawn.clone());
    let door = Arc::new(door.lenient(mcp.lenient));
    let router = router(doors.clone(), door.clone(), extra.routes);
    Ok(Assembled { router, engine, warnings, doors, door, spawn })
}

fn store_parts(
    spawn: &Arc<dyn Spawn>,
    clock: &Arc<dyn Clock>,
    limits: &Arc<Limits>,
    fatal: Fatal,
) -> stores::Parts {
    stores::Parts {
        spawn: spawn.clone(),
        clock: clock.clone(),
        limits: limits.clone(),
        fatal,
        vfs: None,
    }
}

/// Where logins come back to. On a pipe there is no door for them.
fn login_places(address: SocketAddr, server: &ServerConfig) -> Option<LoginPlaces> {
    let listens = address.port() != 0;
    let public = || server.public_url.clone().unwrap_or_else(|| PublicUrl::of_address(address));
    listens.then(|| public().places())
}

/// What is behind the server, by its files and variables.
struct Behind {
    upstreams: Upstreams,
    configs: Vec<UpstreamConfig>,
    models: Models,
}

/// The models of the project, and its upstreams, without those that lead back to this server.
fn behind(setup: &Setup) -> Result<Behind, AssembleError> {
    let variables = setup.variables.as_ref();
    let project = &setup.project;
    let mut upstreams = project.upstreams(variables).map_err(AssembleError::Upstreams)?;
    if setup.alone {
        let models = opened(project.models_of_rules().map_err(AssembleError::Models)?)?;
        return Ok(Behind { upstreams, configs: Vec::new(), models });
    }
    let models = opened(project.models(variables).map_err(AssembleError::Models)?)?;
    let configs = upstreams.configs(variables).map_err(AssembleError::Upstreams)?;
    let has_folder = !project.folder.as_os_str().is_empty();
    let ourselves = Ourselves {
        address: setup.address,
        port: project.config.server.port,
        hosts: project.config.server.names(),
        folder: has_folder.then(|| absolute(&project.folder)),
    };
    let (back, ahead): (Vec<UpstreamConfig>, Vec<UpstreamConfig>) =
        configs.into_iter().partition(|config| ourselves.are(config));
    let leads_back = |name: &str| back.iter().any(|config| config.name == name);
    for name in upstreams.leave_out(leads_back) {
        tracing::info!(upstream = name, "it is this server itself, and left out");
    }
    Ok(Behind { upstreams, configs: ahead, models })
}

/// The models that these configure; nobody is talked to yet.
fn opened(configs: Vec<ModelConfig>) -> Result<Models, AssembleError> {
    let (mut models, mut mistakes) = (Models::default(), Vec::new());
    for config in configs {
        match llms::open(&config) {
            Ok(llm) => {
                let price = llms::price::of(&config).map(|price| -> Price {
                    Arc::new(move |usage: &Usage| Some(llms::price::cost_micros(*usage, price)))
                });
                let model = Model { llm, timeout_ms: config.timeout_ms, price };
                models = models.with(config.name, model);
            }
            Err(found) => mistakes.extend(found),
        }
    }
    if mistakes.is_empty() { Ok(models) } else { Err(AssembleError::Models(mistakes)) }
}

/// What a project brings into the catalog.
struct Brought {
    agents: Vec<AgentFile>,
    plans: Vec<PlanFile>,
    /// The agent of requests that name none.
    default: Option<AgentName>,
}

/// Fills the catalog from the project's files and from the store, agents before the plans that name
/// them. Gives warnings.
async fn load(
    engine: &Engine,
    definitions: &dyn Definitions,
    brought: Brought,
) -> Result<Vec<Mistake>, AssembleError> {
    let realm = RealmId::from(REALM);
    let caller = Caller { realm: realm.clone(), subject: "local".into(), admin: false };
    let known = || -> Vec<Arc<Agent>> {
        engine.agents(&caller).into_iter().map(|known| known.agent).collect()
    };
    let models = engine.model_names();
    let mut warnings = agents::without_models(&brought.agents, &models, engine.limits());
    let found = engine.set_agents_from_files(&realm, brought.agents);
    warnings.extend(found.map_err(AssembleError::Agents)?);
    let definitions = definitions.list(&realm, agents::KIND).await;
    let definitions = definitions.map_err(|error| stored(error.into()))?;
    warnings.extend(agents::idle(&definitions, &known(), &models));
    engine.load_stored_agents(&realm).await.map_err(stored)?;
    warnings.extend(agents::no_default(brought.default.as_ref(), &known()));
    warnings.extend(engine.load_plans(&realm, brought.plans).map_err(AssembleError::Plans)?);
    engine.load_stored_plans(&realm).await.map_err(stored)?;
    warnings.extend(engine.idle_rules(&realm));
    Ok(warnings)
}

/// Our own tools, unless only what code brings is offered.
fn builtin(only_extra: bool, http: HttpSettings) -> Vec<Arc<dyn Tool>> {
    if only_extra { Vec::new() } else { tools::builtin(http) }
}

/// Our own prompts and resources, unless only what code brings is offered.
fn own_shelf(only_extra: bool, engine: &Engine) -> Arc<dyn Shelf> {
    if only_extra { Arc::new(Bare) } else { Arc::new(Own::new(engine.clone())) }
}

/// These models, and those that code brings.
fn with_extra(models: Models, extra: Vec<(String, Model)>) -> Models {
    extra.into_iter().fold(models, |models, (name, model)| models.with(name, model))
}

/// What stands before the names of tools that are still to come.
fn awaited(upstreams: &Upstreams, providers: &[Entry]) -> Vec<String> {
    let of_store = providers.iter().filter(|entry| !entry.is_disabled()).map(Entry::prefix);
    upstreams.prefixes().into_iter().chain(of_store).collect()
}

/// Starts the stored providers; what cannot be used is told and left out.
async fn begin_stored(gateway: &Gateway, providers: &[Entry]) -> Vec<Mistake> {
    let _changing = gateway.changing.lock().await;
    let mut warnings = Vec::new();
    for entry in providers {
        match gateway.config_of(entry) {
            Ok(config) => gateway.begin(entry, config).await,
            Err(mistake) => warnings.push(left_out(mistake)),
        }
    }
    warnings
}

fn stored(refusal: Refusal) -> AssembleError {
    let hint = refusal.hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
    AssembleError::Stored(format!("{}{hint}", refusal.message))
}
