//! Conversations with an agent: one request, its continuation, or a chat.

pub(crate) mod run;
pub(crate) mod resume;
pub(crate) mod chat;
