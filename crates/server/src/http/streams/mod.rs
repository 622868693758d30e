//! Server-sent events: one session's journal, and the feed of all sessions.

pub(crate) mod stream;
pub(crate) mod session;
pub(crate) mod feed;
