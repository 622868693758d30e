//! Everything outside the store that its final state is checked against.

use super::punctual::Hours;
use super::recovery::Deaths;
use crate::sim::machine::archive::Archive;
use crate::sim::outside::changes::Changes;
use crate::sim::outside::tools::Ledger;
use crate::sim::programs::plans::SimPlan;
use kernel::contracts::Blobs;

/// What the store is held against.
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
    /// What processes died of.
    pub deaths: Deaths<'t>,
    /// When rules must act, where nothing may keep them from it.
    pub hours: Option<Hours<'t>>,
    /// What changed of the policy, where something did.
    pub changes: Option<&'t Changes>,
}
