//! MCP, both eras at one endpoint. A transport (`transport::http`, `transport::stdio`) reads
//! messages and makes an `Exchange` of each request; `dispatch` finds who answers it: `calls` for
//! `tools/call`, `lists` for lists of tools, `methods` for the others. The eras differ in how a
//! request says who sends it, and in how something is asked of the client: the versions with a
//! handshake send a request of their own, the stateless one answers `input_required` and is called
//! again.

mod client;
mod answer;
pub(crate) mod messages;
mod seal;
mod cache;
mod sessions;
pub(crate) mod door;
mod exchange;
mod lists;
pub(crate) mod own;
pub(crate) mod calls;
pub(crate) mod methods;
mod dispatch;
pub(crate) mod transport;
