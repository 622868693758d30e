//! What a model is given: the tools that it sees and the conversation so far.

pub mod cards;
pub mod transcript;
