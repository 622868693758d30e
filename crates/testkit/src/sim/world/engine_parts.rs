//! The parts of an engine in one life, and how it is started.

use crate::sim::faults::SimStore;
use crate::sim::faults::damage::Damage;
use crate::sim::faults::other_writer::OtherWriter;
use crate::sim::knobs::Knobs;
use crate::sim::limits::admit_plans;
use crate::sim::machine::archive::Archive;
use crate::sim::machine::marks::Marks;
use crate::sim::machine::nodes::Node;
use crate::sim::outside::policy::SimPolicy;
use crate::sim::outside::tools;
use crate::sim::programs::plans::SimPlan;
use crate::sim::sides::{Files, Side};
use engine::catalog::schema::JsonSchemas;
use engine::{Engine, Models, SwitchedOff, ToolSource};
use kernel::contracts::observe::Observer;
use kernel::contracts::sink::Deliveries;
use kernel::contracts::{Blobs, Clock, Definitions, Entropy, Spawn, Store};
use kernel::limits::Limits;
use kernel::tool::rules::ToolRules;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// What all engines of one life share.
pub(super) struct EngineParts {
    pub(super) knobs: Knobs,
    pub(super) archive: Arc<Archive>,
    pub(super) damage: Arc<Damage>,
    pub(super) other_writer: Option<Arc<OtherWriter>>,
    pub(super) definitions: Arc<dyn Definitions>,
    pub(super) deliveries: Arc<dyn Deliveries>,
    pub(super) blobs: Arc<dyn Blobs>,
    pub(super) tools: tools::Around,
    pub(super) models: Models,
    pub(super) observers: Vec<Arc<dyn Observer>>,
    pub(super) policy: Arc<SimPolicy>,
    pub(super) marks: Arc<Marks>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) spawn: Arc<dyn Spawn>,
    pub(super) limits: Arc<Limits>,
    pub(super) sides: Vec<Arc<Side>>,
    pub(super) plans: Arc<Vec<SimPlan>>,
}

impl EngineParts {
    /// A store as an engine sees it, which this node has open where there are two.
    pub(super) fn store(&self, inner: Arc<dyn Store>, node: Option<Node>) -> Arc<dyn Store> {
        Arc::new(SimStore {
            inner,
            power: self.tools.power.clone(),
            planted: self.knobs.planted,
            fed: AtomicU64::new(0),
            archive: self.archive.clone(),
            damage: self.damage.clone(),
            other_writer: self.other_writer.clone(),
            node,
            broken: Mutex::default(),
        })
    }

    /// An engine over a store, with all plans.
    pub(super) fn engine(&self, store: Arc<dyn Store>) -> Result<Engine, String> {
        let engine = Engine::start(engine::Parts {
            store,
            definitions: self.definitions.clone(),
            deliveries: self.deliveries.clone(),
            blobs: self.blobs.clone(),
            tools: vec![ToolSource::new("the simulation", tools::all(&self.tools))],
            rules: ToolRules::default(),
            awaited: Vec::new(),
            upstreams_of: None,
            switched_off: SwitchedOff::new(),
            models: self.models.clone(),
            observers: self.observers.clone(),
            policy: self.policy.clone(),
            audit: None,
            schemas: Arc::new(JsonSchemas::default()),
            marks: self.marks.clone(),
            clock: self.clock.clone(),
            zones: Arc::new(engine::Utc),
            entropy: self.entropy.clone(),
            spawn: self.spawn.clone(),
            limits: self.limits.clone(),
            session_ttls: BTreeMap::new(),
            realms: None,
        })
        .map_err(|mistakes| format!("the tools do not start: {mistakes:?}"))?;
        let Knobs { talks, heals, .. } = self.knobs;
        let are_admitted = admit_plans(&self.limits);
        let files = Files { plans: &self.plans, talks, heals, are_admitted };
        for side in &self.sides {
            side.load(&engine, &files)?;
        }
        Ok(engine)
    }
}
