//! Checks that answer true or false.

mod is_positive;

use kernel::contracts::Tool;
use std::sync::Arc;

/// The family.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(is_positive::IsPositive::new())]
}
