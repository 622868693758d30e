//! Builds everything: settings and a data folder become a store, an engine and its doors. The one
//! place where parts meet; constructors receive, nothing is looked up.

pub(crate) mod zones;
pub(crate) mod sinks;
pub(crate) mod pipelines;
mod setup;
mod error;
pub(crate) mod policies;
mod access;
mod held;
mod behind;
mod beside;
mod load;
mod check;
pub(crate) mod reload;
pub(crate) mod watch;

use crate::assemble::sinks::{Outlets, Wanted, left_behind};
use crate::assemble::zones::SystemZones;
use crate::connections::{CONNECTIONS_MAX, connections_within};
use crate::gateway::{Gateway, GatewayParts, left_out, stored_entries};
use crate::mcp::door::Door;
use crate::mcp::own::Own;
use crate::ports::{self, OpenPort, OwnPort, PortError};
use crate::request::auth::{Entrance, Visitor};
use crate::request::cursors::Cursors;
use crate::request::doors::{Doors, Shared, SinkFacts};
use crate::routes::router;
use crate::secrets::chain::AuditKeys;
use crate::secrets::secret::keyring;
use crate::secrets::vault::{FileVault, System};
use access::{Admission, Asked, Known, admission, existing, mcp_address};
use axum::Router;
use behind::{Behind, behind};
use engine::catalog::schema::JsonSchemas;
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use engine::{AuditParts, AuditRules, Engine, Model, Models, SwitchedOff, ToolSource};
use error::{stored, wrong};
use identity::Identity;
use kernel::contracts::audit::Audit;
use kernel::contracts::shelf::Shelf;
use kernel::contracts::{Spawn, Tool, Vault};
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use kernel::values::ids::RealmId;
use load::{brought, load};
use outbound::seal::Keyring;
use project::config::{Config, ServerConfig};
use project::decisions::AuditConfig;
use project::public_url::PublicUrl;
use project::realm::default_realm;
use project::upstream_entries::{Entry, Upstreams};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use stores::{Fatal, Opened};
use telemetry::Telemetry;
use tools::BuiltInSettings;
use upstreams::{LoginPlaces, RemoteParts};

pub(crate) use behind::opened;
pub use check::{Checked, ToCheck, check_project};
pub use error::{AssembleError, ProjectPart};
pub use held::{HeldKeys, HeldVault};
pub use setup::{Extra, Setup};

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
    /// Who is at the other end of a pipe, where that is known.
    pub(crate) client: Option<Visitor>,
    /// The ports of pipelines that are open.
    pub(crate) ports: Vec<OpenPort>,
    /// How many connections are open at the same time.
    pub(crate) connections_max: usize,
}

impl Assembled {
    /// Opens the ports that pipelines want for themselves, beside the one that the server listens
    /// on; they are served with it. Gives where they are.
    pub async fn open_ports(&mut self, server: SocketAddr) -> Result<Vec<OwnPort>, PortError> {
        let (shown, opened): (Vec<OwnPort>, Vec<OpenPort>) =
            ports::open(&self.doors, server).await?.into_iter().unzip();
        self.ports.extend(opened);
        Ok(shown)
    }

    /// Takes only as many connections as fit where the process may have so many descriptors: the
    /// store needs some of them.
    pub fn limit_descriptors(&mut self, descriptors: u64) {
        self.connections_max = connections_within(descriptors);
    }

    /// What this server proves to know to a client that sends a challenge:
    /// [`crate::secrets::instance`].
    pub fn token(&self) -> &str {
        &self.doors.token
    }

    /// Who is known.
    pub fn identity(&self) -> Arc<Identity> {
        self.doors.identity.clone()
    }

    /// What ends it in good order, also for one who serves it no more.
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
    /// Ends the engine, then the upstreams, which its last calls may still need, and sends what
    /// telemetry they left.
    pub async fn stop(&self) {
        if let Err(error) = self.doors.identity.store_uses().await {
            tracing::debug!(%error, "the last uses of keys were not stored");
        }
        if let Err(error) = self.doors.identity.store_failures().await {
            tracing::warn!(%error, "failed credentials of the last minute are not in the audit");
        }
        self.doors.engine.stop().await;
        self.doors.gateway.stop().await;
        self.doors.telemetry.stop().await;
    }
}

/// Builds a server on the current tokio runtime and lets it go on with what it left undone.
pub async fn assemble(setup: Setup) -> Result<Assembled, AssembleError> {
    let Behind { upstreams, configs, models, sinks, ourselves, policies } = behind(&setup)?;
    let (brought, setup) = brought(setup);
    let place = setup.place();
    let Setup { project, data, address, admin_key, secret_key: given_key, extra, .. } = setup;
    let (variables, supervisor, fatal) = (setup.variables, setup.supervisor, setup.fatal);
    let (admin_key, api_key) = (admin_key.as_deref(), setup.api_key.as_deref());
    let built_in = project.built_in();
    let Config { server, limits, tools: rules, mcp, agents, session_ttls, issuers, .. } =
        project.config;
    let (limits, system) = (Arc::new(limits), system());
    let opened = stores::open(&place, store_parts(&system, &limits, fatal))?;
    let (mcp_at, realms) = (mcp_address(&server, address), existing(project.config.realms));
    let by = Known::of(&opened, issuers, project.principals, realms, Some(mcp_at));
    let Opened { store, definitions, audit, blobs, deliveries, marks, backup, .. } = opened;
    // After the store: it makes the folder and holds it alone.
    let (keys, realm) = (keyring(&data, given_key.as_deref())?, default_realm());
    let is_configured = |name: &str| upstreams.entries().iter().any(|entry| entry.name == name);
    let found = stored_entries(definitions.as_ref(), &realm, is_configured).await;
    let (providers, mut warnings) = found.map_err(stored)?;
    warnings.extend(project.config.warnings.into_iter().chain(project.clients.warnings));
    // After the store too: files of sinks are in its folder.
    warnings.extend(sinks.iter().flat_map(Wanted::warnings));
    let outlets = opened_sinks(sinks, &system)?;
    let (never_local, alone) = (setup.never_local, setup.alone);
    let asked = Asked { address, server: &server, admin_key, api_key, never_local, alone };
    let Admission { identity, entrance, client, policy, files } =
        admission(&asked, by, policies, &keys, &system).await?;
    let vault = Arc::new(FileVault::open(&data, &keys, system.clone()));
    let login = login_places(address, &server, &entrance);
    let remote = remote_parts(&system, &limits, supervisor, vault, login);
    let telemetry = observing(setup.alone, variables.as_ref(), &system, &limits);
    let engine = Engine::start(engine::Parts {
        store,
        definitions: definitions.clone(),
        blobs,
        deliveries,
        switched_off: switched_off(setup.only_extra, &built_in),
        tools: tool_sources(builtin(setup.only_extra, built_in), extra.tools),
        rules,
        awaited: awaited(&upstreams, &providers),
        upstreams_of: Some(realm.clone()),
        models: with_extra(models, extra.models),
        observers: telemetry.observers(),
        policy: extra.policy.unwrap_or(policy),
        audit: Some(audit_parts(audit, &keys, project.config.audit, &entrance)),
        schemas: Arc::new(JsonSchemas::default()),
        marks,
        clock: system.clock,
        zones: Arc::new(SystemZones),
        entropy: system.entropy,
        spawn: system.spawn.clone(),
        limits,
        session_ttls,
    })
    .map_err(wrong(ProjectPart::Tools))?;
    warnings.extend(load(&engine, definitions.as_ref(), &identity, brought).await?);
    go_on(&engine, project.config.audit).await?;
    let (sinks, left) = begun_sinks(outlets, &engine, &realm).await?;
    warnings.extend(left);
    let parts = GatewayParts { engine: engine.clone(), definitions, remote, variables, ourselves };
    let gateway = Gateway::start(parts, upstreams.entries(), configs);
    warnings.extend(begin_stored(&gateway, &providers).await);
    let (served, cursors) = (engine.clone(), Cursors::new(&keys));
    let mut doors = Doors::new(served, entrance, identity, gateway, backup, cursors, telemetry);
    (doors.usual_agent, doors.sinks, doors.policies) = (agents.default, sinks, files);
    doors.data = std::path::absolute(&data).unwrap_or(data);
    let doors = Arc::new(doors);
    let (own, first, spawn) = (own_shelf(setup.only_extra, &doors), extra.shelves, system.spawn);
    let door = Arc::new(Door::new(doors.clone(), first, own, &keys, spawn.clone(), mcp.lenient));
    let router = router(doors.clone(), door.clone(), extra.routes);
    let (ports, connections_max) = (Vec::new(), CONNECTIONS_MAX);
    Ok(Assembled { router, engine, warnings, doors, door, spawn, client, ports, connections_max })
}

/// The audit, with rows that are chained by the server's secret. In local mode only what is
/// journaled is kept.
fn audit_parts(
    audit: Arc<dyn Audit>,
    secrets: &Keyring,
    kept: AuditConfig,
    entrance: &Entrance,
) -> AuditParts {
    let (AuditConfig { strict, reads, .. }, is_local) = (kept, entrance.base().is_none());
    let keys = Arc::new(AuditKeys::new(secrets));
    audit.begin(keys.clone());
    AuditParts { audit, keys, rules: AuditRules { unjournaled: !is_local, reads, strict } }
}

/// Writes down that the server began, lets it go on with what it left undone, and removes from the
/// audit what is too old from now on.
async fn go_on(engine: &Engine, kept: AuditConfig) -> Result<(), AssembleError> {
    engine.audits().note_start().await.map_err(stored)?;
    engine.admin().keep_recovering();
    if let Some(days) = kept.keep_days {
        engine.audits().keep_pruning(days.get());
    }
    Ok(())
}

/// What connections to upstreams are made of.
fn remote_parts(
    system: &System,
    limits: &Arc<Limits>,
    supervisor: Option<PathBuf>,
    vault: Arc<dyn Vault>,
    login: Option<LoginPlaces>,
) -> RemoteParts {
    let (System { clock, entropy, spawn }, limits) = (system.clone(), limits.clone());
    RemoteParts { spawn, clock, entropy, limits, supervisor, vault, login }
}

/// Where tools come from that are there from the start.
fn tool_sources(builtin: Vec<Arc<dyn Tool>>, extra: Vec<Arc<dyn Tool>>) -> Vec<ToolSource> {
    vec![ToolSource::new("the built-in tools", builtin), ToolSource::new("the host program", extra)]
}

/// Time, randomness and tasks of this machine.
fn system() -> System {
    let spawn = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
    System { clock: Arc::new(SystemClock), entropy: Arc::new(SystemEntropy), spawn }
}

/// Who observes the engine, as the variables say; one that reaches nothing outside exports nothing.
fn observing(
    alone: bool,
    variables: &dyn Fn(&str) -> Option<String>,
    system: &System,
    limits: &Arc<Limits>,
) -> Telemetry {
    let config = match alone {
        true => telemetry::config::Config::read(&|_: &str| None),
        false => telemetry::config::Config::read(variables),
    };
    let System { clock, spawn, .. } = system.clone();
    let limits = limits.clone();
    Telemetry::start(&config, &telemetry::Parts { clock, spawn, limits })
}

fn store_parts(system: &System, limits: &Arc<Limits>, fatal: Fatal) -> stores::Parts {
    let System { clock, spawn, .. } = system.clone();
    stores::Parts { spawn, clock, limits: limits.clone(), fatal, vfs: None }
}

/// Where logins come back to. On a pipe there is no door for them.
fn login_places(
    address: SocketAddr,
    server: &ServerConfig,
    entrance: &Entrance,
) -> Option<LoginPlaces> {
    let listens = address.port() != 0;
    let here = || PublicUrl::of_address(server.scheme(), address);
    let public = || server.public_url.clone().unwrap_or_else(here);
    listens.then(|| public().places(entrance.everybody_administers()))
}

/// Opens the sinks.
fn opened_sinks(wanted: Option<Wanted>, system: &System) -> Result<Option<Outlets>, AssembleError> {
    let opened = wanted.map(|wanted| Outlets::open(wanted, system.clone()));
    opened.transpose().map_err(wrong(ProjectPart::Sinks))
}

/// Lets the engine send to them; what there is to say of each, and of sinks that are not configured
/// any more.
async fn begun_sinks(
    outlets: Option<Outlets>,
    engine: &Engine,
    realm: &RealmId,
) -> Result<(Vec<SinkFacts>, Vec<Mistake>), AssembleError> {
    let Some(outlets) = outlets else { return Ok((Vec::new(), Vec::new())) };
    let facts = outlets.begin(engine, realm).await.map_err(stored)?;
    Ok((facts, left_behind(engine, realm).await.map_err(stored)?))
}

/// Our own tools, unless only what code brings is offered.
fn builtin(only_extra: bool, settings: BuiltInSettings) -> Vec<Arc<dyn Tool>> {
    if only_extra { Vec::new() } else { tools::builtin(settings) }
}

/// Those of them that the settings leave out.
fn switched_off(only_extra: bool, settings: &BuiltInSettings) -> SwitchedOff {
    if only_extra { SwitchedOff::new() } else { tools::switched_off(settings) }
}

/// Our own prompts and resources, unless only what code brings is offered.
fn own_shelf(only_extra: bool, doors: &Doors) -> Arc<dyn Shelf> {
    if only_extra {
        return Arc::new(Bare);
    }
    Arc::new(Own::new(doors.engine.clone(), doors.cursors.clone()))
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

/// Starts the stored providers, and reacts from now on to what upstreams bring; a provider that
/// cannot be used is reported and left out.
async fn begin_stored(gateway: &Gateway, providers: &[Entry]) -> Vec<Mistake> {
    let _changing = gateway.changing.lock().await;
    let mut warnings = Vec::new();
    for entry in providers {
        match gateway.config_of(entry) {
            Ok(config) => gateway.begin(entry, config).await,
            Err(mistake) => warnings.push(left_out(mistake)),
        }
    }
    gateway.watch_arrivals();
    warnings
}

/// A server without a project whose data is in this folder, for tests of what is behind the frame.
#[cfg(test)]
pub(crate) async fn assembled_in(folder: &std::path::Path) -> Assembled {
    assembled_with(folder, Config::default(), None).await
}

/// The same with these settings, and an admin key.
#[cfg(test)]
pub(crate) async fn assembled_with(
    folder: &std::path::Path,
    config: Config,
    admin_key: Option<&str>,
) -> Assembled {
    let fatal = Arc::new(|why: String| assert!(why.is_empty(), "the store failed: {why}"));
    let address = SocketAddr::from(([127, 0, 0, 1], 8420));
    let project = project::folder::Project { config, ..project::folder::Project::default() };
    let setup = Setup::new(project, folder.join("data"), address, fatal);
    let admin_key = admin_key.map(str::to_owned);
    match assemble(Setup { admin_key, ..setup }).await {
        Ok(assembled) => assembled,
        Err(error) => panic!("{error}"),
    }
}
