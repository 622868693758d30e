//! The languages inside definitions: pointers (JSONPath), templates, conditions and the regular
//! expressions in them, and the budget of work that they share. Where a definition may have one is
//! in `definition`; what a frame reads with it is in `decide::resolve`.

pub mod budget;
pub(crate) mod patterns;
pub mod condition;
pub mod pointer;
pub mod template;
