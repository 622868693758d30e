//! MCP, both eras at one endpoint. A transport (`http`, `stdio`) reads messages and makes an
//! `Exchange` of each request; `dispatch` finds who answers it; one file per family of methods.
//! The eras differ in how a request says who sends it, and in how something is asked of the
//! client: the versions with a handshake send a request of their own, the stateless one answers
//! `input_required` and is called again.

mod client;
mod answer;
mod outbox;
mod seal;
mod cache;
mod replay;
mod requests;
mod sessions;
pub(crate) mod door;
mod exchange;
mod lists;
mod elicit;
mod wanting;
mod result;
mod calling;
mod asked;
mod call;
mod tasks;
mod prompts;
mod resources;
mod complete;
pub(crate) mod own;
mod hello;
mod listen;
mod dispatch;
mod message;
mod headers;
mod pieces;
mod delivery;
mod post;
pub(crate) mod http;
pub(crate) mod stdio;
