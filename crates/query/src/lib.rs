//! The query language over typed records: reading a query, checking it against the types that are
//! declared, and what it means. Pure code: no IO, no clock, no tasks. Whoever stores records
//! decides how they are found; what must come out is defined in `evaluate`.
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
pub mod evaluate;
