//! A tool call as a value: what is called, with which arguments, under which rules, and what
//! comes back. How a tool is called is a contract (`contracts`).

pub mod rules;
pub mod schema;
pub mod teller;
pub mod call;
pub mod arguments;
