//! What a server shows to those outside: the doors that all requests come in by, and the one for
//! MCP among them.

use super::ground::Ground;
use super::setup::Setup;
use crate::gateway::Gateway;
use crate::mcp::door::Door;
use crate::mcp::own::Own;
use crate::realms::keeper::RealmKeeper;
use crate::request::auth::Entrance;
use crate::request::cursors::Cursors;
use crate::request::doors::{Doors, Shared, SinkFacts};
use engine::Engine;
use kernel::contracts::shelf::Shelf;
use policy::CedarPolicy;
use std::sync::Arc;
use telemetry::Telemetry;

/// A shelf with nothing on it.
struct Bare;

impl Shelf for Bare {}

/// What is behind the doors.
pub(super) struct Inside {
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
}

/// The doors before all that.
pub(super) fn doors(setup: &Setup, ground: &Ground, inside: Inside) -> Shared {
    let Inside { engine, entrance, realms, gateway, telemetry, sinks, files } = inside;
    let (backup, cursors) = (ground.opened.backup.clone(), Cursors::new(&ground.keys));
    // Whoever needs a credential sees only a part of what there is.
    let cursors = if entrance.base().is_some() { cursors.only_sealed() } else { cursors };
    let mut doors = Doors::new(engine, entrance, realms, gateway, backup, cursors, telemetry);
    doors.usual_agent.clone_from(&setup.project.config.agents.default);
    doors.a2a.clone_from(&setup.project.config.a2a);
    (doors.sinks, doors.policies) = (sinks, files);
    doors.data = std::path::absolute(&setup.data).unwrap_or_else(|_| setup.data.clone());
    Arc::new(doors)
}

/// The door for MCP, before what code brings and what is ours.
pub(super) fn mcp_door(
    setup: &Setup,
    ground: &Ground,
    doors: &Shared,
    extra: Vec<Arc<dyn Shelf>>,
) -> Arc<Door> {
    let (own, spawn) = (own_shelf(setup.only_extra, doors), ground.system.spawn.clone());
    let lenient = setup.project.config.mcp.lenient;
    Arc::new(Door::new(doors.clone(), extra, own, &ground.keys, spawn, lenient))
}

/// Our own prompts and resources, unless only what code brings is offered.
fn own_shelf(only_extra: bool, doors: &Doors) -> Arc<dyn Shelf> {
    if only_extra {
        return Arc::new(Bare);
    }
    Arc::new(Own::new(doors.engine.clone(), doors.cursors.clone()))
}
