//! What the engine is given when it starts: which tools and models there are and which are still to
//! come, who decides and who observes, and what the audit keeps.

use super::platform::Platform;
use super::setup::Setup;
use crate::assemble::time_zones::SystemTimeZones;
use crate::secrets::chain::AuditKeys;
use crate::secrets::vault::System;
use edge::gateway::StoredProvider;
use edge::request::auth::Entrance;
use engine::catalog::schema::JsonSchemas;
use engine::{
    AuditParts, AuditRules, Model, Models, RealmSource, SwitchedOff, ToolSource, UpstreamRealms,
};
use identity::Identity;
use kernel::contracts::observe::Observer;
use kernel::contracts::{Policy, Tool};
use kernel::identity::realm::Realms;
use kernel::values::ids::RealmId;
use project::tables::decisions::AuditConfig;
use project::upstream_entries::Upstreams;
use std::sync::Arc;
use stores::OpenStore;
use telemetry::Telemetry;
use tools::BuiltInSettings;

/// Everything the engine needs besides settings.
pub(super) struct EngineParts {
    /// The tools that code brings.
    pub(super) tools: Vec<Arc<dyn Tool>>,
    /// Our own tools on records.
    pub(super) record_tools: Vec<Arc<dyn Tool>>,
    /// What stands before the names of tools that are still to come.
    pub(super) awaited: Vec<String>,
    /// The realms that other servers are there for.
    pub(super) upstreams_of: UpstreamRealms,
    /// The models that agents name.
    pub(super) models: Models,
    /// Who sees what it does.
    pub(super) observers: Vec<Arc<dyn Observer>>,
    /// Who may do what.
    pub(super) policy: Arc<dyn Policy>,
    /// The audit, which has its keys.
    pub(super) audit: AuditParts,
    /// The realms whose callers share the limits; none in local mode.
    pub(super) realms: Option<Arc<dyn RealmSource>>,
}

/// What the engine is made of.
pub(super) fn engine_parts(
    setup: &Setup,
    platform: &Platform,
    inputs: EngineParts,
) -> engine::Parts {
    let EngineParts {
        tools,
        record_tools,
        awaited,
        upstreams_of,
        models,
        observers,
        policy,
        audit,
        realms,
    } = inputs;
    let OpenStore { store, definitions, blobs, deliveries, marks, .. } = &platform.opened;
    let System { clock, entropy, spawn } = platform.system.clone();
    let config = &setup.project.config;
    let built_in = setup.project.built_in();
    engine::Parts {
        store: store.clone(),
        definitions: definitions.clone(),
        blobs: blobs.clone(),
        deliveries: deliveries.clone(),
        switched_off: switched_off(setup.only_extra, &built_in),
        tools: tool_sources(builtin(setup.only_extra, built_in, record_tools), tools),
        rules: config.tools.clone(),
        awaited,
        upstreams_of: Some(upstreams_of),
        models,
        observers,
        policy,
        audit: Some(audit),
        schemas: Arc::new(JsonSchemas::default()),
        marks: marks.clone(),
        clock,
        zones: Arc::new(SystemTimeZones),
        entropy,
        spawn,
        limits: platform.limits.clone(),
        session_ttls: config.session_ttls.clone(),
        realms,
    }
}

/// Where tools come from that are there from the start.
fn tool_sources(builtin: Vec<Arc<dyn Tool>>, extra: Vec<Arc<dyn Tool>>) -> Vec<ToolSource> {
    vec![ToolSource::new("the built-in tools", builtin), ToolSource::new("the host program", extra)]
}

/// Our own tools, unless only what code brings is offered.
fn builtin(
    only_extra: bool,
    settings: BuiltInSettings,
    record_tools: Vec<Arc<dyn Tool>>,
) -> Vec<Arc<dyn Tool>> {
    if only_extra {
        return Vec::new();
    }
    tools::builtin(settings).into_iter().chain(record_tools).collect()
}

/// Those of them that the settings leave out.
fn switched_off(only_extra: bool, settings: &BuiltInSettings) -> SwitchedOff {
    if only_extra { SwitchedOff::new() } else { tools::switched_off(settings) }
}

/// The realms of upstreams: the one that every server has, unless they name others, and for stored
/// providers the one that they are stored in.
pub(super) fn upstream_realms(
    upstreams: &Upstreams,
    providers: &[StoredProvider],
    usual: &RealmId,
) -> UpstreamRealms {
    let entries = upstreams.entries().iter();
    let configured = entries.fold(UpstreamRealms::only(usual.clone()), |known, entry| match &entry
        .keys
        .realms
    {
        Some(realms) => known.with(&entry.name, entry.prefix(), realms),
        None => known,
    });
    providers.iter().fold(configured, |known, provided| {
        known.owning(&provided.realm, &provided.entry.name, provided.beginning())
    })
}

/// These models, and those that code brings.
pub(super) fn with_extra(models: Models, extra: Vec<(String, Model)>) -> Models {
    extra.into_iter().fold(models, |models, (name, model)| models.with(name, model))
}

/// Who observes the engine, as the variables say; one that reaches nothing outside exports nothing.
pub(super) fn observing(setup: &Setup, platform: &Platform) -> Telemetry {
    let config = match setup.isolated {
        true => telemetry::config::Config::read(&|_: &str| None),
        false => telemetry::config::Config::read(setup.variables.as_ref()),
    };
    let System { clock, spawn, .. } = platform.system.clone();
    let limits = platform.limits.clone();
    Telemetry::start(&config, &telemetry::Parts { clock, spawn, limits })
}

/// The audit, with rows that are chained by the server's secret. In local mode only what is
/// journaled is kept.
pub(super) fn audit_parts(
    platform: &Platform,
    config: AuditConfig,
    entrance: &Entrance,
) -> AuditParts {
    let AuditConfig { strict, reads, .. } = config;
    let is_local = entrance.base().is_none();
    let audit = platform.opened.audit.clone();
    let keys = Arc::new(AuditKeys::new(&platform.keys));
    audit.begin(keys.clone());
    AuditParts { audit, keys, rules: AuditRules { unjournaled: !is_local, reads, strict } }
}

/// The realms whose callers share the limits. In local mode there is one, and nothing is shared.
pub(super) fn sharing(
    identity: &Arc<Identity>,
    entrance: &Entrance,
) -> Option<Arc<dyn RealmSource>> {
    entrance.base()?;
    Some(Arc::new(DirectoryRealms(identity.clone())))
}

/// The realms that identity knows.
struct DirectoryRealms(Arc<Identity>);

impl RealmSource for DirectoryRealms {
    fn realms(&self) -> Arc<Realms> {
        self.0.directory().realms.clone()
    }
}
