//! Conversations with an agent: one request, its continuation, or a chat. How an outcome is shown
//! is in `threads`, how it is followed in `remote`.

pub(crate) mod run;
pub(crate) mod resume;
pub(crate) mod chat;
