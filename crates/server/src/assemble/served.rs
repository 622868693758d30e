//! What a server shows to those outside: the doors that all requests come in by, and the one for
//! MCP among them.

use super::ground::Ground;
use super::setup::Setup;
use crate::a2a;
use crate::gateway::Gateway;
use crate::mcp::door::Door;
use crate::mcp::own::OwnShelf;
use crate::realms::keeper::RealmKeeper;
use crate::request::auth::Entrance;
use crate::request::choice::ChooseSkill;
use crate::request::cursors::Cursors;
use crate::request::doors::{Doors, Shared, SinkFacts};
use crate::request::push::PushParts;
use engine::Engine;
use kernel::contracts::shelf::Shelf;
use outbound::addresses::HttpSettings;
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

/// What is behind the doors.
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
    /// What the host program says of messages that name no skill.
    pub(super) choose: Option<ChooseSkill>,
}

/// The doors before all that, and what is posted from behind them.
pub(super) fn doors(setup: &Setup, ground: &Ground, inside: ServerParts) -> Shared {
    let ServerParts { engine, entrance, realms, gateway, telemetry, sinks, files, choose } = inside;
    let backup = ground.opened.backup.clone();
    let cursors = Cursors::new(&ground.keys);
    let mut doors = Doors::new(engine, entrance, realms, gateway, backup, cursors, telemetry);
    doors.usual_agent.clone_from(&setup.project.config.agents.default);
    doors.a2a = serving(setup);
    doors.card_keys = ground.card_keys.clone();
    let webhooks = ground.opened.webhooks.clone();
    let parts = |allowed: HttpSettings| PushParts::new(webhooks, &ground.keys, allowed);
    doors.push = doors.a2a.push.clone().map(parts).map(Arc::new);
    // Before anyone posts: what is loaded then and purged later is heard of.
    if let Some(push) = doors.push.clone() {
        doors.realms.when_purged(move |realm| push.drop_realm(realm));
    }
    doors.sinks = sinks;
    doors.policies = files;
    doors.choose_skill = choose;
    doors.data = std::path::absolute(&setup.data).unwrap_or_else(|_| setup.data.clone());
    let doors = Arc::new(doors);
    a2a::push::keep(&doors, &*ground.system.spawn);
    doors
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

/// The door for MCP, before what code brings and what is ours.
pub(super) fn mcp_door(
    setup: &Setup,
    ground: &Ground,
    doors: &Shared,
    extra: Vec<Arc<dyn Shelf>>,
) -> Arc<Door> {
    let own = own_shelf(setup.only_extra, doors);
    let spawn = ground.system.spawn.clone();
    let lenient = setup.project.config.mcp.lenient;
    Arc::new(Door::new(doors.clone(), extra, own, &ground.keys, spawn, lenient))
}

/// Our own prompts and resources, unless only what code brings is offered.
fn own_shelf(only_extra: bool, doors: &Doors) -> Arc<dyn Shelf> {
    if only_extra {
        return Arc::new(EmptyShelf);
    }
    Arc::new(OwnShelf::new(doors.engine.clone(), doors.cursors.clone()))
}
