//! Records as rows of files, and back: CSV and JSON lines of any size, in pieces, in bounded
//! memory. Pure code: bytes come in and go out, and nothing is read or stored here.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

pub mod form;
pub mod charset;
pub mod rows;
pub mod columns;
pub mod entity;
pub mod written;
#[cfg(test)]
mod tests;
