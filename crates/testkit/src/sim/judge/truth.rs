//! Everything outside the store that its final state is checked against.

use super::recovery::CrashRecord;
use super::rule_delays::RuleTiming;
use crate::sim::machine::archive::Archive;
use crate::sim::outside::changes::Changes;
use crate::sim::outside::tools::Ledger;
use crate::sim::programs::plans::SimPlan;
use kernel::contracts::Blobs;

/// What the store is checked against.
pub struct Truth<'t> {
    pub plans: &'t [SimPlan],
    /// What tools really did.
    pub ledger: &'t Ledger,
    /// Large values.
    pub blobs: &'t dyn Blobs,
    /// How many bytes a value may have before it goes to a blob.
    pub inline_bytes_max: usize,
    /// What retention removed.
    pub archive: &'t Archive,
    /// What processes died of, and how often they may.
    pub crashes: CrashRecord<'t>,
    /// When rules must act; none where faults may keep them from it.
    pub rule_timing: Option<RuleTiming<'t>>,
    /// What changed of the policy, where something did.
    pub changes: Option<&'t Changes>,
}
