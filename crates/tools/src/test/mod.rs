//! Tools to try failures with.

mod always_fail;

use kernel::contracts::Tool;
use std::sync::Arc;

/// The family.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(always_fail::AlwaysFail::new())]
}
