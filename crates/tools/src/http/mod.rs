//! Requests to other servers. No one is talked to who is not listed: a plan, or a model that writes
//! arguments, must not reach what the operator did not name.

mod wanted;
mod request;
#[cfg(test)]
mod tests;

use crate::typed::typed;
use kernel::contracts::Tool;
use outbound::addresses::HttpSettings;
use std::sync::Arc;

/// The family.
pub(crate) fn all(settings: HttpSettings) -> Vec<Arc<dyn Tool>> {
    vec![typed(request::Request::new(settings))]
}
