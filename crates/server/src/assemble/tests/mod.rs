//! What is behind the frame, on a server that is assembled.

mod callers;
mod entrance;
mod mcp_sessions;
