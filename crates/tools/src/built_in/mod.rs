//! The built-in tools, a file each, and the list of them.

mod add;
mod is_positive;
mod always_fail;
mod publish;
mod raise_ticket;
mod http;

use crate::typed::typed;
use kernel::contracts::Tool;
use outbound::addresses::HttpSettings;
use std::sync::Arc;

/// All built-in tools. `http` says which hosts `http::request` may talk to.
pub fn builtin(http: HttpSettings) -> Vec<Arc<dyn Tool>> {
    vec![
        typed(add::Add),
        typed(is_positive::IsPositive),
        typed(always_fail::AlwaysFail),
        typed(publish::Publish),
        typed(raise_ticket::RaiseTicket),
        http::request(http),
    ]
}
