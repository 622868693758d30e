//! The query language over typed records: reading a query, and checking it against the types that
//! are declared. Pure code: no IO, no clock, no tasks.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

pub mod fault;
pub mod dates;
pub mod tree;
mod lexer;
mod print;
pub mod parser;
pub mod types;
pub mod names;
pub mod numbers;
pub mod checked;
pub mod check;
pub mod plan;
