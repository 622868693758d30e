//! Tools and their calls as values: what a tool says of itself, its schemas and what they cost, the
//! operator's rules, breakers, what a call reports and what comes back. The trait `Tool` is in
//! `contracts`, when a call is made is decided in `decide`, and the engine's gate makes it.

pub mod rules;
pub mod breaker;
pub mod schema;
pub mod reporter;
pub mod call;
pub mod arguments;
pub mod search;
