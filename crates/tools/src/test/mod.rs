//! Tools to try failures with.

mod always_fail;

use crate::typed::typed;
use kernel::contracts::Tool;
use std::sync::Arc;

/// The family.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![typed(always_fail::AlwaysFail)]
}
