//! What the handles of `Engine` do, one handle per resource: all that the server may ask of the
//! engine. Each asks for the caller's rights first, and what it reports is durable. The handles
//! themselves are in `handles.rs`; what changes a session is the driver's.

pub(crate) mod runs;
pub(crate) mod tools;
mod defining;
pub(crate) mod definitions;
pub(crate) mod search;
pub(crate) mod drafting;
pub(crate) mod agents;
pub(crate) mod threads;
pub(crate) mod reading;
pub(crate) mod replay;
pub(crate) mod replies;
pub(crate) mod messages;
pub(crate) mod cases;
pub(crate) mod retry_step;
pub(crate) mod fork_export;
pub(crate) mod calls;
pub(crate) mod audits;
