//! Cases: what is done about one that no rule settles.

mod raise_ticket;

use crate::typed::typed;
use kernel::contracts::Tool;
use std::sync::Arc;

/// The family.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![typed(raise_ticket::RaiseTicket)]
}
