//! Builds everything: settings and a data folder become a store, an engine and its endpoints. The
//! one place where parts meet; constructors receive, nothing is looked up.

pub(crate) mod time_zones;
pub(crate) mod sinks;
pub(crate) mod pipelines;
mod setup;
mod error;
mod platform;
pub(crate) mod policies;
mod access;
mod offline;
mod offline_records;
mod backends;
mod load;
pub(crate) mod records;
mod parts;
mod endpoints;
mod check;
pub(crate) mod reload;
mod rights;
mod types_reload;
pub(crate) mod watch;

use crate::assemble::sinks::{ConfiguredSinks, Outlets, left_behind};
use crate::ports::{self, OpenPort, OwnPort, PortError};
use crate::records::keeper::RecordKeeper;
use crate::routes::router;
use crate::secrets::vault::{FileVault, System};
use access::{Admission, admitted};
use axum::Router;
use backends::{Backends, behind};
use edge::connections::{CONNECTIONS_MAX, connections_within};
use edge::gateway::{Gateway, GatewayParts, StoredProvider, stored_providers};
use edge::realms::keeper::{OfRealms, RealmKeeper, RealmRecords};
use edge::request::auth::{Entrance, Visitor};
use edge::request::server_state::{Shared, SinkFacts};
use endpoints::{ServerParts, a2a_endpoint, mcp_state, server_state};
use engine::{Engine, UnfinishedRuns};
use error::{stored, wrong};
use identity::Identity;
use kernel::contracts::{Definitions, Spawn, StoreLoss};
use kernel::definition::plan::mistake::Mistake;
use kernel::values::ids::RealmId;
use load::{load, take_definitions};
use mcp::McpState;
use parts::{
    EngineParts, audit_parts, engine_parts, observing, sharing, upstream_realms, with_extra,
};
use platform::Platform;
use project::config::ServerConfig;
use project::folder::RealmFiles;
use project::realm::default_realm;
use project::tables::decisions::AuditConfig;
use project::tables::public_url::PublicUrl;
use project::upstream_entries::{Entry, Ourselves, Upstreams};
use records::OpenRecords;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use upstreams::{LoginPlaces, RemoteParts, Scope};

pub(crate) use backends::opened;
pub use check::{ProjectReport, ToCheck, check_project};
pub use error::{AssembleError, ProjectPart};
pub use offline::{OfflineKeys, OfflineVault, good_keys};
pub use offline_records::OfflineRecords;
pub(crate) use platform::system;
pub use policies::unfit_documents;
pub use setup::{Extra, Setup};

/// A server that is ready to serve.
pub struct Assembled {
    /// All routes. Only `Assembled::behind` puts something before them: it also has `/mcp` go
    /// through the router, which is answered without it otherwise.
    pub(crate) router: Router,
    /// What is behind them.
    pub engine: Engine,
    /// What in the project's plans, agents and rules for tools has no effect.
    pub warnings: Vec<Mistake>,
    /// What the server before left undone.
    pub undone: UnfinishedRuns,
    pub(crate) server: Shared,
    pub(crate) mcp: Arc<McpState>,
    pub(crate) spawn: Arc<dyn Spawn>,
    /// Who is at the other end of a pipe, where that is known.
    pub(crate) client: Option<Visitor>,
    /// The ports of pipelines that are open.
    pub(crate) ports: Vec<OpenPort>,
    /// How many connections are open at the same time.
    pub(crate) connections_max: usize,
    /// Whether something stands before the router.
    pub(crate) is_behind: bool,
    /// Types and first records, where there are some.
    pub(crate) records: Option<Arc<RecordKeeper>>,
}

impl Assembled {
    /// Opens the ports that pipelines want for themselves, beside the one that the server listens
    /// on; they are served with it. Gives where they are.
    pub async fn open_ports(&mut self, main: SocketAddr) -> Result<Vec<OwnPort>, PortError> {
        let (shown, opened): (Vec<OwnPort>, Vec<OpenPort>) =
            ports::open(&self.server, main).await?.into_iter().unzip();
        self.ports.extend(opened);
        Ok(shown)
    }

    /// Puts something before all routes, such as a layer that changes requests or answers.
    pub fn behind(&mut self, before: impl FnOnce(Router) -> Router) {
        self.router = before(std::mem::take(&mut self.router));
        self.is_behind = true;
    }

    /// All routes, with what stands before them, for one who answers requests in process.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Takes only as many connections as fit where the process may have so many descriptors: the
    /// store needs some of them.
    pub fn limit_descriptors(&mut self, descriptors: u64) {
        self.connections_max = connections_within(descriptors);
    }

    /// What this server proves to know to a client that sends a challenge ([`edge::instance`]).
    pub fn token(&self) -> &str {
        &self.server.token
    }

    /// Who is known.
    pub fn identity(&self) -> Arc<Identity> {
        self.server.identity.clone()
    }

    /// What ends it in good order, also for one who serves it no more.
    pub fn stopper(&self) -> Stopper {
        Stopper { server: self.server.clone(), records: self.records.clone() }
    }
}

/// Ends a server in good order.
#[derive(Clone)]
pub struct Stopper {
    server: Shared,
    records: Option<Arc<RecordKeeper>>,
}

impl Stopper {
    /// Ends the engine, then the records and the upstreams, which its last calls may still need, and
    /// sends what telemetry they left.
    pub async fn stop(&self) {
        if let Err(error) = self.server.identity.store_uses().await {
            tracing::debug!(%error, "the last uses of keys were not stored");
        }
        if let Err(error) = self.server.identity.store_failures().await {
            tracing::warn!(%error, "failed credentials of the last minute are not in the audit");
        }
        self.server.engine.stop().await;
        if let Some(records) = &self.records
            && let Err(error) = records.store.close().await
        {
            tracing::warn!(%error, "the store of records was not closed in good order");
        }
        self.server.gateway.stop().await;
        self.server.telemetry.stop().await;
    }
}

/// Builds a server on the current tokio runtime and lets it resume what it left undone.
pub async fn assemble(setup: Setup) -> Result<Assembled, AssembleError> {
    let Backends { upstreams, configs, models, sinks, ourselves, policies } = behind(&setup)?;
    let (project, mut setup) = take_definitions(setup);
    let extra = std::mem::take(&mut setup.extra);
    let platform = Platform::open(&setup)?;
    let realm = default_realm();
    let definitions = platform.opened.definitions.clone();
    let mut warnings = std::mem::take(&mut setup.project.config.warnings);
    warnings.append(&mut setup.project.clients.warnings);
    // After the store is open: files of sinks are in its folder.
    warnings.extend(sinks.iter().flat_map(ConfiguredSinks::warnings));
    let outlets = opened_sinks(sinks, &platform.system)?;
    let Admission { identity, entrance, client, policy, files } =
        admitted(&setup, policies, &platform).await?;
    let (providers, left_out) = provided(definitions.as_ref(), &identity, &upstreams).await?;
    warnings.extend(left_out);
    let remote = remote_parts(&setup, &platform, &entrance, &ourselves);
    if let Some(files) = &files {
        let unfit = unfit_documents(&files.policies(), &configs, remote.clone()).await;
        if !unfit.is_empty() {
            return Err(wrong(ProjectPart::Policies)(unfit));
        }
    }
    let telemetry = observing(&setup, &platform);
    let audit_config = setup.project.config.audit;
    let policy = extra.policy.unwrap_or(policy);
    let records = records::opened(&setup, &platform, &identity, &policy).await?;
    let inputs = EngineParts {
        tools: extra.tools,
        record_tools: records.as_ref().map(OpenRecords::tools).unwrap_or_default(),
        awaited: upstreams.prefixes(),
        upstreams_of: upstream_realms(&upstreams, &providers, &realm),
        models: with_extra(models, extra.models),
        observers: telemetry.observers(),
        policy,
        audit: audit_parts(&platform, audit_config, &entrance),
        realms: sharing(&identity, &entrance),
    };
    let parts = engine_parts(&setup, &platform, inputs);
    let engine = Engine::start(parts).map_err(wrong(ProjectPart::Tools))?;
    if let Some(records) = &records {
        let realms = identity.directory().realms.clone();
        records.begin(&engine, realms.0.keys()).await?;
    }
    warnings.extend(load(&engine, definitions.as_ref(), &identity, &project).await?);
    let source = records.as_ref().and_then(OpenRecords::source);
    let records = records.map(|records| records.keeper);
    let realms = of_realms(&platform, &remote, project.files(), records.clone());
    let undone = undone(&engine, &identity).await?;
    let realms = go_on(&engine, identity, realms, &platform, audit_config).await?;
    let sinks = begun_sinks(outlets, &engine, &realms, &mut warnings).await?;
    let variables = setup.variables.clone();
    let identity = realms.identity.clone();
    let policies = files.clone();
    let parts = GatewayParts {
        engine: engine.clone(),
        definitions,
        remote,
        variables,
        identity,
        ourselves,
        policies,
    };
    let gateway = Arc::new(Gateway::start(parts, upstreams.entries(), configs));
    warnings.extend(begin_stored(&gateway, &providers).await);
    realms.serve_behind(gateway.clone());
    let inside = ServerParts {
        engine: engine.clone(),
        entrance,
        realms,
        gateway,
        telemetry,
        sinks,
        files,
        records: source,
    };
    let server = server_state(&setup, &platform, inside);
    let a2a = a2a_endpoint(&setup, &platform, &server, extra.choose_skill);
    let mcp = mcp_state(&setup, &platform, &server, extra.shelves);
    let router = router(&server, a2a, mcp.clone(), extra.routes);
    let spawn = platform.system.spawn;
    let ports = Vec::new();
    let connections_max = CONNECTIONS_MAX;
    Ok(Assembled {
        router,
        engine,
        warnings,
        undone,
        server,
        mcp,
        spawn,
        client,
        ports,
        connections_max,
        is_behind: false,
        records,
    })
}

/// Writes down that the server began, and after which loss, lets it resume what it left undone, and
/// removes from the audit what is too old from now on. Gives who makes and removes realms.
async fn go_on(
    engine: &Engine,
    identity: Arc<Identity>,
    realms: OfRealms,
    platform: &Platform,
    audit_config: AuditConfig,
) -> Result<Arc<RealmKeeper>, AssembleError> {
    engine.audits().note_start().await.map_err(stored)?;
    for StoreLoss { database, expected, found } in &platform.opened.losses {
        let detail = json!({
            "database": database,
            "expected": expected.to_string(),
            "found": found.to_string(),
        });
        engine.audits().note_own("server.loss", detail).await.map_err(stored)?;
    }
    let spawn = platform.system.spawn.clone();
    let keeper = RealmKeeper::new(engine.clone(), identity, realms, spawn);
    keeper.resume();
    engine.admin().keep_recovering();
    if let Some(days) = audit_config.keep_days {
        engine.audits().keep_pruning(days.get());
    }
    Ok(keeper)
}

/// What realms have, with these files and records.
fn of_realms(
    platform: &Platform,
    remote: &RemoteParts,
    files: RealmFiles,
    records: Option<Arc<RecordKeeper>>,
) -> OfRealms {
    OfRealms {
        store: platform.opened.realms.clone(),
        blobs: platform.opened.blobs.clone(),
        vault: remote.vault.clone(),
        files,
        records: records.map(|keeper| -> Arc<dyn RealmRecords> { keeper }),
    }
}

/// What the server before left undone in all realms.
async fn undone(engine: &Engine, identity: &Identity) -> Result<UnfinishedRuns, AssembleError> {
    let realms: Vec<RealmId> = identity.directory().realms.0.keys().cloned().collect();
    engine.admin().undone(&realms).await.map_err(stored)
}

/// What connections to upstreams are made of.
fn remote_parts(
    setup: &Setup,
    platform: &Platform,
    entrance: &Entrance,
    ourselves: &Ourselves,
) -> RemoteParts {
    let vault = Arc::new(FileVault::open(&setup.data, &platform.keys, platform.system.clone()));
    let login = login_places(setup.address, &setup.project.config.server, entrance);
    let System { clock, entropy, spawn } = platform.system.clone();
    let limits = platform.limits.clone();
    let parts = RemoteParts {
        spawn,
        clock,
        entropy,
        limits,
        hops_max: setup.project.config.a2a.limits.a2a_hops_max,
        supervisor: setup.supervisor.clone(),
        vault,
        login,
        scope: Scope::default(),
    };
    let ourselves = ourselves.clone();
    parts.apart_from(move |url| ourselves.are_named_by(url))
}

/// Where logins come back to. On a pipe there is no route for them.
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
fn opened_sinks(
    wanted: Option<ConfiguredSinks>,
    system: &System,
) -> Result<Option<Outlets>, AssembleError> {
    let opened = wanted.map(|wanted| Outlets::open(wanted, system.clone()));
    opened.transpose().map_err(wrong(ProjectPart::Sinks))
}

/// Lets the engine send to them the events of every realm that they get, also of those that are
/// made later; what there is to say of each. Sinks that are not configured any more are warned of.
async fn begun_sinks(
    outlets: Option<Outlets>,
    engine: &Engine,
    keeper: &RealmKeeper,
    warnings: &mut Vec<Mistake>,
) -> Result<Vec<SinkFacts>, AssembleError> {
    let Some(outlets) = outlets.map(Arc::new) else { return Ok(Vec::new()) };
    let realms = keeper.identity.directory().realms.clone();
    for realm in realms.0.keys() {
        outlets.begin(engine, realm).await.map_err(stored)?;
        warnings.extend(left_behind(engine, realm).await.map_err(stored)?);
    }
    let facts = outlets.facts();
    let engine = engine.clone();
    keeper.begin_sinks_by(move |realm: RealmId| {
        let outlets = outlets.clone();
        let engine = engine.clone();
        async move { outlets.begin(&engine, &realm).await }
    });
    Ok(facts)
}

/// The providers that are stored for the realms that there are, with warnings of those that cannot
/// be used.
async fn provided(
    definitions: &dyn Definitions,
    identity: &Identity,
    upstreams: &Upstreams,
) -> Result<(Vec<StoredProvider>, Vec<Mistake>), AssembleError> {
    let mut providers = Vec::new();
    let mut warnings = Vec::new();
    for realm in identity.directory().realms.0.keys() {
        let is_its = |entry: &Entry, name: &str| entry.name == name && entry.is_for(realm);
        let is_configured = |name: &str| upstreams.entries().iter().any(|one| is_its(one, name));
        let found = stored_providers(definitions, realm, is_configured).await;
        let (of_realm, left_out) = found.map_err(stored)?;
        providers.extend(of_realm);
        warnings.extend(left_out);
    }
    Ok((providers, warnings))
}

/// Starts the stored providers, and reacts from now on to what upstreams bring; a provider that
/// cannot be used is reported and left out.
async fn begin_stored(gateway: &Gateway, providers: &[StoredProvider]) -> Vec<Mistake> {
    let _changing = gateway.changing.lock().await;
    let warnings = gateway.begin_all(providers).await;
    gateway.watch_arrivals();
    warnings
}

/// A server without a project whose data is in this folder, for tests of what is behind the frame.
#[cfg(test)]
pub(crate) async fn assembled_in(folder: &std::path::Path) -> Assembled {
    assembled_with(folder, project::config::Config::default(), None).await
}

/// The same with these settings, and an admin key.
#[cfg(test)]
pub(crate) async fn assembled_with(
    folder: &std::path::Path,
    config: project::config::Config,
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

#[cfg(test)]
mod tests;
