//! What endpoints read and follow: committed state, the events of a run or a session as they come,
//! and conversations.

mod queries;
pub(crate) mod pinned;
pub(in crate::api) mod run_event_filter;
mod ordered_deltas;
pub(crate) mod follow;
pub(crate) mod run_events;
pub(crate) mod transcript;
