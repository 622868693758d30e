//! Cases: what is done about one that no rule settles.

mod raise_ticket;

use kernel::contracts::Tool;
use std::sync::Arc;

/// The family.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(raise_ticket::RaiseTicket::new())]
}
