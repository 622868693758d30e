//! Waypost's kernel: the nouns, the contracts and the rules. Pure code: no IO, no clock, no
//! randomness, no tasks. `next` decides, `Session::apply` is the only change.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

pub mod planted;
pub mod ids;
pub mod rate;
pub mod secret;
pub mod trace;
pub mod names;
pub mod visible;
pub mod rules;
pub mod limits;
pub mod fault;
pub mod datum;
pub mod entry;
pub mod canonical;
pub mod schema;
pub mod llm;
pub mod command;
pub mod teller;
pub mod caller;
pub mod call;
pub mod policy;
pub mod ask;
pub mod agent;
pub mod pipeline;
pub mod talk;
pub mod published;
pub mod budget;
mod patterns;
pub mod condition;
pub mod pointer;
pub mod template;
pub mod plan;
pub mod agent_read;
pub mod pipeline_read;
pub mod event;
pub mod session;
pub mod cards;
pub mod transcript;
pub mod resolve;
pub mod next;
pub mod fork;
pub mod trim;
pub mod reply;
pub mod projection;
pub mod lists;
pub mod figures;
pub mod contracts;
pub mod shelf;
pub mod cloud;
pub mod sink;
pub mod backup;
pub mod observe;
