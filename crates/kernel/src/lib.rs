//! Waypost's kernel: the nouns, the contracts and the rules. Pure code: no IO, no clock, no
//! randomness, no tasks. `next` decides, `Session::apply` is the only change.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

pub mod planted;
pub mod limits;
pub mod values;
pub mod expression;
pub mod tool;
pub mod conversation;
pub mod ask;
pub mod definition;
pub mod event;
pub mod session;
pub mod prompt;
pub mod decide;
pub mod identity;
pub mod journal;
pub mod contracts;
