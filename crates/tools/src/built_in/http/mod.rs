//! Requests to other servers. No one is talked to who is not listed: a plan, or a model that writes
//! arguments, must not reach what the operator did not name.

mod arguments;
mod request;
#[cfg(test)]
mod tests;

use crate::typed::{TypedTool, typed};
use kernel::contracts::Tool;
use outbound::addresses::HttpSettings;
use std::sync::Arc;

/// The name of the tool.
pub(super) const REQUEST: &str = request::Request::NAME;

/// `http::request`, which talks to these hosts only.
pub(super) fn request(settings: HttpSettings) -> Arc<dyn Tool> {
    typed(request::Request::new(settings))
}
