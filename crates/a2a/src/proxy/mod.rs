//! The MCP tool proxy: a skill by which agents of others call the tools of the MCP and JSON-RPC
//! servers behind this one. An instruction is a task of one call, through the gate like every
//! other.

mod plan;
mod failure;
mod instruction;
mod route;
mod begin;
mod output;

pub(super) use begin::{Execution, begun};
pub(super) use failure::{ProxiedCall, words};
pub(super) use instruction::{SKILL, input_schema, instruction, output_schema};
pub(super) use output::opened;
pub(super) use plan::is_proxy;
pub(super) use route::{is_offered, may_call_meant, note_unseen};
