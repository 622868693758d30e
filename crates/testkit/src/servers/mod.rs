//! Servers that others run in production, as tests meet them: receivers of effects and of webhooks,
//! a collector of spans, a server that wants a login, an issuer of access tokens, an agent that
//! speaks A2A. Providers of models are in `llms`, an MCP server that misbehaves is in `upstream`.

pub mod receiver;
pub mod webhook;
pub mod login;
pub mod issuer;
pub mod otlp;
pub mod a2a;
