//! The three languages inside definitions: pointers (JSONPath), templates and conditions,
//! and the budget of work that they share.

pub mod budget;
pub(crate) mod patterns;
pub mod condition;
pub mod pointer;
pub mod template;
