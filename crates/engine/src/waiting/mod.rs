//! Who waits for what, in memory alone: repeats of a keyed request, requests for one case, clients
//! and threads for a login page, streams for changes of sessions and for the text of a model's
//! turn, clients for the runs of their direct calls. What runs themselves wait for is in their
//! journals.

pub(crate) mod idempotency;
pub(crate) mod case_queue;
pub mod feed;
pub mod deltas;
pub(crate) mod login_pages;
pub mod attendants;
