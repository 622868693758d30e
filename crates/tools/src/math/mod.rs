//! Arithmetic.

mod add;

use kernel::contracts::Tool;
use std::sync::Arc;

/// The family.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(add::Add::new())]
}
