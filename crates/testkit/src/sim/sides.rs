//! The realms of a machine, one or two. Each has its own clients, judge and blobs; plans and agents
//! are shared.

use super::coverage::{Coverage, Seen};
use super::knobs::Knobs;
use super::people::clients::locked;
use super::people::neighbours::Neighbour;
use super::realms::{ALONE, SHARED};
use super::rng::Rng;
use crate::sim::judge::oracle::Oracle;
use crate::sim::machine::blobs::{Shelf, Syncing};
use crate::sim::outside::policy::SimPolicy;
use crate::sim::programs::healing::corrections;
use crate::sim::programs::plans::SimPlan;
use crate::sim::programs::source::agents;
use engine::{AgentFile, Engine, PlanFile};
use kernel::contracts::Clock;
use kernel::values::ids::{PlanId, RealmId};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Which of the seed's streams is the first of those of realms that share a machine.
const STREAM: u64 = 11;

/// One realm of a machine, and what the world outside knows of it.
pub struct Side {
    pub realm: RealmId,
    /// What was acknowledged in it.
    pub oracle: Arc<Mutex<Oracle>>,
    pub shelf: Arc<Shelf>,
}

/// The realms of a machine whose data is in this folder.
pub fn sides(
    knobs: Knobs,
    folder: &Path,
    clock: &Arc<dyn Clock>,
    syncing: Syncing,
) -> Vec<Arc<Side>> {
    let names: &[&str] = if knobs.shared { &SHARED } else { &[ALONE] };
    let side = |name: &&str| {
        let realm = RealmId::from(*name);
        let shelf = Arc::new(Shelf::new(folder, realm.clone(), clock.clone(), syncing));
        Arc::new(Side { realm, oracle: Arc::default(), shelf })
    };
    names.iter().map(side).collect()
}

/// What each realm's clients know of the other realm, in the order of the realms; their whims are
/// others in each life.
pub fn neighbours(
    seed: u64,
    life: u64,
    sides: &[Arc<Side>],
    policy: &Arc<SimPolicy>,
) -> Vec<Option<Neighbour>> {
    let rng = Arc::new(Mutex::new(Rng::stream(seed, STREAM + life)));
    let of = |side: &Arc<Side>| {
        let other = sides.iter().find(|other| other.realm != side.realm)?;
        let realm = other.realm.clone();
        let oracle = other.oracle.clone();
        Some(Neighbour { realm, oracle, policy: policy.clone(), rng: rng.clone() })
    };
    sides.iter().map(of).collect()
}

impl Side {
    /// Leaves of its blobs what a power cut leaves, and accuses of what is lost.
    pub fn crash(&self, rng: &mut Rng) -> io::Result<()> {
        self.shelf.crash(rng)?;
        let mut oracle = locked(&self.oracle);
        let lost: Vec<String> = oracle
            .named()
            .filter(|hash| !self.shelf.is_whole(hash) && !self.shelf.was_swept(hash))
            .map(|hash| format!("blob {hash} is named by a committed row and did not survive"))
            .collect();
        lost.into_iter().for_each(|wrong| oracle.accuse(wrong));
        Ok(())
    }

    /// Loads agents and plans; none of the plans is admitted where limits forbid all of them.
    pub fn load(&self, engine: &Engine, files: &Files<'_>) -> Result<(), String> {
        let realm = &self.realm;
        let agent = |source: Value| AgentFile {
            file: format!("{}.yaml", source["refName"]),
            text: source.to_string(),
        };
        if files.talks {
            engine
                .catalog()
                .set_agents_from_files(realm, agents().into_iter().map(agent).collect())
                .map_err(|mistakes| format!("the agents do not load: {mistakes:?}"))?;
        }
        let file = |id: &str, source: &Value| PlanFile {
            file: format!("{id}.yaml"),
            text: source.to_string(),
            default_id: PlanId::from(id),
        };
        let healing = if files.heals { corrections() } else { Vec::new() };
        let mut plans: Vec<PlanFile> =
            healing.iter().map(|(id, source)| file(id, source)).collect();
        plans.extend(files.plans.iter().map(|plan| file(&plan.id, &plan.source())));
        match (engine.catalog().load_plans(realm, plans), files.are_admitted) {
            (Ok(_), true) | (Err(_), false) => Ok(()),
            (Err(mistakes), true) => Err(format!("the plans do not load: {mistakes:?}")),
            (Ok(_), false) => Err("plans are admitted that no limit allows".to_owned()),
        }
    }

    /// Adds what it went through.
    pub fn count(&self, coverage: &mut Coverage) {
        for (seen, times) in locked(&self.oracle).counts() {
            coverage.count(*seen, *times);
        }
        coverage.count(Seen::BlobRead, self.shelf.read());
        coverage.count(Seen::BlobCut, self.shelf.met());
        coverage.count(Seen::BlobSwept, self.shelf.sweeps());
    }
}

/// What every realm loads.
pub struct Files<'f> {
    pub plans: &'f [SimPlan],
    /// Whether there are agents.
    pub talks: bool,
    /// Whether there are corrections.
    pub heals: bool,
    /// Whether the limits admit plans.
    pub are_admitted: bool,
}
