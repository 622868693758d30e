//! The state that all endpoints of a server share, and the endpoints that have a state of their
//! own: A2A and MCP.

use super::platform::Platform;
use super::setup::Setup;
use crate::secrets::backup::BESIDE;
use a2a::{A2a, ChooseSkill, PushParts};
use edge::backup::FolderBackup;
use edge::gateway::Gateway;
use edge::realms::keeper::RealmKeeper;
use edge::record_source::RecordSource;
use edge::request::auth::Entrance;
use edge::request::cursors::Cursors;
use edge::request::server_state::{ServerState, Shared, SinkFacts};
use engine::Engine;
use kernel::contracts::shelf::Shelf;
use mcp::{McpState, OwnShelf};
use policy::CedarPolicy;
use project::a2a_serving::A2aServing;
use project::upstream_entries::server_map;
use serde_json::{Map, Value};
use std::sync::Arc;
use telemetry::Telemetry;

/// The file of AgentVault's card.
const CARD_PATH: &str = "AGENT_CARD_PATH";

/// A shelf with nothing on it.
struct EmptyShelf;

impl Shelf for EmptyShelf {}

/// What is behind the endpoints.
pub(super) struct ServerParts {
    pub(super) engine: Engine,
    pub(super) entrance: Entrance,
    /// Who makes and removes realms, and knows everyone.
    pub(super) realms: Arc<RealmKeeper>,
    pub(super) gateway: Arc<Gateway>,
    pub(super) telemetry: Telemetry,
    /// Where events go.
    pub(super) sinks: Vec<SinkFacts>,
    /// The policies of files, where there can be some.
    pub(super) files: Option<Arc<CedarPolicy>>,
    /// Records, where there are types.
    pub(super) records: Option<RecordSource>,
}

/// The state that endpoints share, around all that.
pub(super) fn server_state(setup: &Setup, platform: &Platform, inside: ServerParts) -> Shared {
    let ServerParts { engine, entrance, realms, gateway, telemetry, sinks, files, records } =
        inside;
    let backup = FolderBackup { store: platform.opened.backup.clone(), beside: BESIDE };
    let cursors = Cursors::new(&platform.keys);
    let mut server =
        ServerState::new(engine, entrance, realms, gateway, backup, cursors, telemetry);
    server.usual_agent.clone_from(&setup.project.config.agents.default);
    server.has_webhooks = setup.project.config.a2a.push.is_some();
    server.sinks = sinks;
    server.policies = files;
    server.records = records;
    server.data = std::path::absolute(&setup.data).unwrap_or_else(|_| setup.data.clone());
    Arc::new(server)
}

/// The endpoint of A2A with this state, which posts to webhooks from now on.
pub(super) fn a2a_endpoint(
    setup: &Setup,
    platform: &Platform,
    server: &Shared,
    choose: Option<ChooseSkill>,
) -> a2a::Shared {
    let serving = serving(setup);
    let webhooks = platform.opened.webhooks.clone();
    let parts = |allowed| Arc::new(PushParts::new(webhooks, &platform.keys, allowed));
    let push = serving.push.clone().map(parts);
    let a2a = A2a::new(server.clone(), serving, platform.card_keys.clone(), push, choose);
    let a2a = Arc::new(a2a);
    a2a::keep(&a2a);
    a2a
}

/// How agents of others call this server: what the settings say, and what the environment says of
/// the proxy.
fn serving(setup: &Setup) -> A2aServing {
    let mut serving = setup.project.config.a2a.clone();
    if let Some(map) = server_map(setup.variables.as_ref()) {
        for fault in &map.faults {
            tracing::warn!("{fault}");
        }
        serving.proxy = serving.proxy.or(Some(true));
    }
    let path = (setup.variables)(CARD_PATH).filter(|path| !path.trim().is_empty());
    if let Some(path) = path {
        match vault_card(path.trim()) {
            Ok(card) => serving.vault_card = card,
            Err(why) => tracing::warn!(path, "`{CARD_PATH}` is not used: {why}"),
        }
    }
    serving
}

/// The members of a card in a file.
fn vault_card(path: &str) -> Result<Map<String, Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|why| why.to_string())?;
    serde_json::from_str(&text).map_err(|why| format!("it is no JSON object: {why}"))
}

/// The endpoint of MCP, for what code brings and what is ours.
pub(super) fn mcp_state(
    setup: &Setup,
    platform: &Platform,
    server: &Shared,
    extra: Vec<Arc<dyn Shelf>>,
) -> Arc<McpState> {
    let own = own_shelf(setup.only_extra, server);
    let spawn = platform.system.spawn.clone();
    let lenient = setup.project.config.mcp.lenient;
    Arc::new(McpState::new(server.clone(), extra, own, &platform.keys, spawn, lenient))
}

/// Our own prompts and resources, unless only what code brings is offered.
fn own_shelf(only_extra: bool, server: &ServerState) -> Arc<dyn Shelf> {
    if only_extra {
        return Arc::new(EmptyShelf);
    }
    let shelf = OwnShelf::new(server.engine.clone(), server.cursors.clone());
    Arc::new(shelf.with_records(server.records.clone()))
}
