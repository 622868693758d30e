//! Server-sent events: one session's journal and the feed of all sessions. The engine reads the
//! journal; here it is only written out.

pub(crate) mod session;
pub(crate) mod feed;
