//! One MCP server over its life: `supervisor` connects and connects again, `attend` lists what the
//! server has and notices changes and losses. How both sides get to know each other is in
//! `handshake`, how bytes travel in `http` and `stdio`.

pub(crate) mod attend;
pub(crate) mod supervisor;
