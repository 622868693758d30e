//! What the runs of asks pinned: their plans, and the specs of the tools that the asks are about.

use crate::handles::Asks;
use crate::refusal::Result;
use kernel::contracts::SessionAsk;
use kernel::contracts::policy::Resource;
use kernel::tool::call::{Caller, ToolSpec};
use kernel::values::ids::{ContentHash, PlanId, RunId};
use std::collections::{BTreeMap, BTreeSet};

/// What the runs of some asks pinned.
#[derive(Debug, Default)]
pub struct PinnedDefinitions {
    plans: BTreeMap<RunId, PlanId>,
    specs: BTreeMap<ContentHash, ToolSpec>,
}

impl PinnedDefinitions {
    pub fn plan(&self, run: RunId) -> Option<&PlanId> {
        self.plans.get(&run)
    }

    /// A tool's spec, by the hash that a call pins.
    pub fn spec(&self, hash: &ContentHash) -> Option<&ToolSpec> {
        self.specs.get(hash)
    }
}

impl Asks<'_> {
    /// What the runs of these asks pinned, for who was shown the asks: all runs and all specs are
    /// read at once. A spec is left out where the caller does not see the tool, or it is not kept.
    pub async fn pinned(self, caller: &Caller, asked: &[&SessionAsk]) -> Result<PinnedDefinitions> {
        let store = &self.shared.store;
        let realm = &caller.realm;
        let gate = &self.shared.gate;
        let mut pinned = PinnedDefinitions::default();
        let runs: BTreeSet<RunId> = asked.iter().map(|asked| asked.row.ask.run).collect();
        if !runs.is_empty() {
            let runs: Vec<RunId> = runs.into_iter().collect();
            pinned.plans = store.run_plans(realm, &runs).await?.into_iter().collect();
        }
        let about = asked.iter().flat_map(|asked| &asked.row.ask.about);
        let hashes: BTreeSet<&ContentHash> =
            about.filter_map(|about| about.pins.as_ref()).map(|pins| &pins.spec).collect();
        if !hashes.is_empty() {
            let hashes: Vec<ContentHash> = hashes.into_iter().cloned().collect();
            let texts = store.tool_specs(realm, &hashes).await?;
            // A spec that a later release wrote in another way is like one that is not kept.
            let specs = texts.into_iter().filter_map(|(hash, text)| {
                let spec = serde_json::from_str::<ToolSpec>(&text).ok()?;
                gate.sees(caller, Resource::Tool(&spec)).then_some((hash, spec))
            });
            pinned.specs = specs.collect();
        }
        Ok(pinned)
    }
}
