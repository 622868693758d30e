//! Server-sent events: one session's journal, the feed of all sessions, and what such streams
//! share. The engine reads the journal; here it is only written out. The streams of `/run` are in
//! `http::compat`, those of MCP in `mcp::transport`.

pub(crate) mod stream;
pub(crate) mod session;
pub(crate) mod feed;
