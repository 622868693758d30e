//! Events: what others shall know.

mod publish;

use crate::typed::typed;
use kernel::contracts::Tool;
use std::sync::Arc;

/// The family.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![typed(publish::Publish)]
}
