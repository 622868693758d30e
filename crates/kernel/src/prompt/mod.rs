//! What a model is given for a turn: the tools that it sees (`tool_cards`) and the conversation as
//! messages (`transcript`), or what it needs to write a plan (`draft`) or other arguments for a
//! failed call (`propose`), without secrets (`masking`). What was said is in `conversation`; how a
//! provider writes a prompt on its wire is in crate `llms`.

pub mod tool_cards;
pub mod transcript;
pub mod masking;
pub mod draft;
pub mod propose;
