//! MCP, both eras at one endpoint. A transport (`transport::http`, `transport::stdio`) reads
//! messages and makes an `Exchange` of each request; `dispatch` finds who answers it: `calls` for
//! `tools/call`, `lists` for lists of tools, `methods` for the others. The eras differ in how a
//! request says who sends it, and in how something is asked of the client: the versions with a
//! handshake send a request of their own, the stateless one answers `input_required` and is called
//! again.

mod acts;
mod client;
mod answer;
mod messages;
mod seal;
mod cache;
mod sessions;
mod state;
mod exchange;
mod lists;
mod own;
mod calls;
mod methods;
mod dispatch;
mod transport;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use acts::METHODS;
pub use own::OwnShelf;
pub use state::McpState;
pub use transport::{http, stdio};

/// A lock that a panic elsewhere does not take from us: what it guards is changed in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
