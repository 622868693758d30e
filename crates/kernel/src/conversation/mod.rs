//! What people, agents and models say to each other: messages, model requests, commands and
//! what a run publishes.

pub mod llm;
pub mod command;
pub mod talk;
pub mod published;
