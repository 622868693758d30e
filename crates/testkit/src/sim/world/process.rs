//! The start of a process: the real store on what the disk kept, the real engine on it, and the
//! clients that talk to it.

use super::Machine;
use super::engine_parts::EngineParts;
use super::second::Second;
use crate::sim::faults::Planted;
use crate::sim::machine::blobs::SimBlobs;
use crate::sim::machine::executor::SimSpawn;
use crate::sim::machine::storage::SimStorage;
use crate::sim::model;
use crate::sim::outside::receiver::{NAME, PlaceAhead, SimSink};
use crate::sim::outside::tools;
use crate::sim::people::clients::{Clients, locked};
use crate::sim::sides::{Side, neighbours};
use engine::{Engine, Models, SinkRules};
use kernel::contracts::observe::Observer;
use kernel::contracts::webhooks::Webhooks;
use kernel::contracts::{Blobs, Spawn, Store};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use stores::OpenStore;

/// One life of the process.
pub(super) struct Process {
    /// Those of each realm.
    pub(super) clients: Vec<Arc<Clients>>,
    pub(super) store: Arc<dyn Store>,
    pub(super) webhooks: Arc<dyn Webhooks>,
    /// The store's own: what the judge reads is not counted as read by the engine.
    pub(super) blobs: Arc<dyn Blobs>,
    /// Who else acts by rules.
    pub(super) second: Option<Second>,
}

impl Machine {
    /// Starts it on what the disk kept, or says why that does not work.
    pub(super) fn start(&self, storage: SimStorage<'_>) -> Result<Process, String> {
        let spawn: Arc<dyn Spawn> = Arc::new(SimSpawn(self.executor.clone()));
        let power = self.power.clone();
        let oracle = self.oracle.clone();
        let parts = stores::Parts {
            spawn: spawn.clone(),
            clock: self.clock.clone(),
            limits: self.limits.clone(),
            fatal: Arc::new(move |why: String| {
                if power.is_on() {
                    locked(&oracle).accuse(format!("fatal: {why}"));
                }
            }),
            vfs: Some(self.disk.name().to_owned()),
        };
        let opened = storage.open(parts)?;
        let inner = opened.store.clone();
        let blobs = opened.blobs.clone();
        let webhooks = opened.webhooks.clone();
        let engine_parts = self.engine_parts(opened, spawn);
        let store = engine_parts.store(inner, self.nodes.as_ref().map(|nodes| nodes.first()));
        self.other_writer.iter().for_each(|other_writer| other_writer.begin_life());
        // Of two that share their marks no one knows whose death it was: none is found.
        if self.nodes.is_none() {
            self.troubles.marks.begin_process();
        }
        let engine = engine_parts.engine(store.clone())?;
        let second = self.second(storage, engine_parts)?;
        Ok(Process { clients: self.clients(&engine), store, webhooks, blobs, second })
    }

    /// The second supervisor, where there is one.
    fn second(
        &self,
        storage: SimStorage<'_>,
        engine_parts: EngineParts,
    ) -> Result<Option<Second>, String> {
        let Some(nodes) = self.nodes.clone() else { return Ok(None) };
        let open = storage.second_node().ok_or("the store serves one supervisor alone")?;
        let executor = self.executor.clone();
        let oracle = self.oracle.clone();
        Ok(Some(Second { engine_parts, open, nodes, executor, oracle }))
    }

    fn engine_parts(&self, opened: OpenStore, spawn: Arc<dyn Spawn>) -> EngineParts {
        EngineParts {
            knobs: self.knobs,
            archive: self.archive.clone(),
            damage: self.troubles.damage.clone(),
            other_writer: self.other_writer.clone(),
            definitions: opened.definitions,
            deliveries: match self.knobs.planted {
                Some(Planted::PlaceAhead) => Arc::new(PlaceAhead(opened.deliveries)),
                _ => opened.deliveries,
            },
            blobs: Arc::new(SimBlobs {
                inner: opened.blobs,
                power: self.power.clone(),
                shelves: self.sides.iter().map(|side| side.shelf.clone()).collect(),
            }),
            tools: self.around_tools(),
            models: self.models(),
            observers: self.observers(),
            policy: self.policy.clone(),
            marks: self.troubles.marks.clone(),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            spawn,
            limits: self.limits.clone(),
            sides: self.sides.clone(),
            plans: self.plans.clone(),
        }
    }

    /// The clients of each realm.
    fn clients(&self, engine: &Engine) -> Vec<Arc<Clients>> {
        let neighbours = neighbours(self.knobs.seed, self.lives(), &self.sides, &self.policy);
        let of = |(side, neighbour): (&Arc<Side>, _)| {
            Arc::new(Clients {
                realm: side.realm.clone(),
                neighbour,
                engine: engine.clone(),
                executor: self.executor.clone(),
                plans: self.plans.clone(),
                rng: self.whims.clone(),
                oracle: side.oracle.clone(),
                busy: AtomicU64::new(0),
                troubles: self.troubles.clone(),
                heals: self.knobs.heals,
                contexts: self.knobs.webhooks,
                forgets: self.knobs.planted == Some(Planted::MessagesForgotten),
            })
        };
        self.sides.iter().zip(neighbours).map(of).collect()
    }

    fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let panics: Arc<dyn Observer> = self.troubles.panics.clone();
        if self.knobs.rough { vec![panics] } else { Vec::new() }
    }

    fn around_tools(&self) -> tools::Around {
        tools::Around {
            ledger: self.ledger.clone(),
            policy: self.policy.clone(),
            clock: self.clock.clone(),
            power: self.power.clone(),
            rng: self.whims.clone(),
            panics: self.troubles.panics.clone(),
        }
    }

    fn models(&self) -> Models {
        if !self.knobs.talks && !self.knobs.advised {
            return Models::default();
        }
        model::all(&model::Around {
            oracle: self.oracle.clone(),
            clock: self.clock.clone(),
            power: self.power.clone(),
            rng: self.whims.clone(),
            calm: self.models_calm.clone(),
            panics: self.troubles.panics.clone(),
        })
    }

    /// Lets events go out, if they do.
    pub(super) async fn send(&self, clients: &Clients) {
        let Some(receiver) = self.receiver.clone() else { return };
        let clock = self.clock.clone();
        let power = self.power.clone();
        let sink = Arc::new(SimSink { receiver, clock, power });
        let realm = &clients.realm;
        let rules = SinkRules::default();
        if let Err(refusal) = clients.engine.feed().keep_sending(realm, NAME, sink, rules).await {
            locked(&self.oracle).accuse(format!("no events go out: {}", refusal.message));
        }
    }
}
