//! Events: what others shall know.

mod publish;

use kernel::contracts::Tool;
use std::sync::Arc;

/// The family.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(publish::Publish::new())]
}
