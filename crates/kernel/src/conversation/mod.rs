//! What people, agents and models say to each other: what a model is asked and answers (with its
//! contract, `Llm`), commands that a model writes as text, the conversation of a session, and what
//! a run publishes. How a conversation is rendered for a model is in `prompt`.

pub mod llm;
pub mod command;
pub mod talk;
pub mod published;
