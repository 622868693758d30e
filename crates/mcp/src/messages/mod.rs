//! Messages as they come and go: read, tracked while they are under way, sent before an answer, and
//! kept for a client that lost its connection. How bytes travel is in `transport`, what a message
//! asks for in `calls` and `methods`.

pub(crate) mod outbox;
pub(crate) mod replay;
pub(crate) mod requests;
pub(crate) mod message;
pub(crate) mod pieces;
