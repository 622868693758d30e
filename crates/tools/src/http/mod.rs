//! Requests to other servers. No one is talked to who is not listed: a plan, or a model that writes
//! arguments, must not reach what the operator did not name.

mod wanted;
pub(crate) mod spool;
pub(crate) mod answer;
mod request;
#[cfg(test)]
mod tests;

use crate::typed::typed;
use kernel::contracts::Tool;
use outbound::addresses::HttpSettings;
use std::sync::Arc;

/// Headers that make some servers do something else than the method says. No call may set them: one
/// that reads would write, and would be neither asked about nor recorded before it is sent.
pub(crate) const METHOD_OVERRIDES: [&str; 3] =
    ["x-http-method", "x-http-method-override", "x-method-override"];

/// The family.
pub(crate) fn all(settings: HttpSettings) -> Vec<Arc<dyn Tool>> {
    vec![typed(request::Request::new(settings))]
}
