//! Checks that answer true or false.

mod is_positive;

use crate::typed::typed;
use kernel::contracts::Tool;
use std::sync::Arc;

/// The family.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![typed(is_positive::IsPositive)]
}
