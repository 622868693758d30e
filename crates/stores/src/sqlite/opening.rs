//! What writes know of the process that opened the database.

use crate::parts::Fatal;
use crate::sqlite::tables::fences::Fences;
use crate::sqlite::tables::specs::KnownSpecs;
use std::sync::Arc;

/// One opening of a database.
pub(crate) struct Opening {
    /// This opening's number.
    pub(crate) node: u64,
    /// How many unknown reasons of one pipeline are counted, each by itself.
    pub(crate) tally_reasons_max: usize,
    /// The sessions that were written lately, as they are.
    pub(crate) fences: Arc<Fences>,
    /// Which pinned specs are known to be there.
    pub(crate) specs: Arc<KnownSpecs>,
    /// Ends the process.
    pub(crate) fatal: Fatal,
}
