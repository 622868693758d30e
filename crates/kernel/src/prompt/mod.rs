//! What a model is given for a turn: the tools that it sees (`cards`) and the conversation as
//! messages (`transcript`). What was said is in `conversation`; how a provider writes a prompt on
//! its wire is in crate `llms`.

pub mod cards;
pub mod transcript;
