//! What a model is given for a turn: the tools that it sees (`cards`) and the conversation as
//! messages (`transcript`), or what it needs to write a plan (`draft`). What was said is in
//! `conversation`; how a provider writes a prompt on its wire is in crate `llms`.

pub mod cards;
pub mod transcript;
pub mod draft;
