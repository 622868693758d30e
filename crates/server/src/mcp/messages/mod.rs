//! Messages as they come and go: read, numbered, sent before an answer, and kept for a client
//! that lost its connection.

pub(crate) mod outbox;
pub(crate) mod replay;
pub(crate) mod requests;
pub(crate) mod message;
pub(crate) mod pieces;
