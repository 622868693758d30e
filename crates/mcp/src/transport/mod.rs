//! MCP over HTTP and over a pipe: both read messages and deliver answers. What is answered does not
//! depend on the transport.

pub(crate) mod headers;
pub(crate) mod delivery;
pub(crate) mod post;
pub mod http;
pub mod stdio;
