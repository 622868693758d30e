//! The query language over typed records: reading a query, checking it against the types that are
//! declared, and what it means; and the contract and rules of whoever stores records. Pure code: no
//! IO, no clock, no tasks. A store decides how records are found; what must come out is defined in
//! `evaluate` and `records`.
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
pub mod records;
pub mod ontology;
pub mod hints;
