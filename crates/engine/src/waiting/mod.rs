//! Who waits for what: requests for one case, clients for a login page, streams for changes of
//! sessions and for the text of a model's turn.

pub(crate) mod case_queue;
pub mod feed;
pub mod deltas;
pub(crate) mod login_pages;
