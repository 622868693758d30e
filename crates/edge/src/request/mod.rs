//! What every request has in common: where it comes from, who sends it, its trace, its body,
//! parameters and keys, the frame around its handler, and what a handler has at hand
//! (`server_state`). What a single endpoint does is in its own crate.

pub mod answer;
pub mod forwarded;
pub mod origin;
pub mod realms;
pub mod auth;
pub mod cursors;
pub mod rate;
pub mod server_state;
pub mod body_realm;
pub mod impersonation;
pub mod trace;
pub mod via;
pub mod frame;
pub mod body;
pub mod params;
pub mod pages;
pub mod run_body;
pub mod key;
