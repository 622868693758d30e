//! What every request has in common: where it comes from, who sends it, its trace, its body,
//! parameters and keys, the frame around its handler, and what a handler has at hand (`doors`).
//! What a single endpoint does is in `http`, `mcp` and `rpc`.

pub(crate) mod answer;
pub(crate) mod forwarded;
pub(crate) mod origin;
pub(crate) mod realms;
pub(crate) mod auth;
pub(crate) mod cursors;
pub(crate) mod rate;
pub(crate) mod choice;
pub(crate) mod push;
pub(crate) mod doors;
pub(crate) mod impersonation;
pub(crate) mod trace;
pub(crate) mod way;
pub(crate) mod frame;
pub(crate) mod body;
pub(crate) mod params;
pub(crate) mod key;
