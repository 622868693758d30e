//! Servers that others run in production, as tests meet them: receivers of effects and of
//! webhooks, a collector of spans, a server that wants a login.

pub mod receiver;
pub mod webhook;
pub mod login;
pub mod otlp;
