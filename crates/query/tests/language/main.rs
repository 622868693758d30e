//! The query language: what each spelling means, and what holds for every query.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;
mod short;
mod cases;
mod meaning;
mod random;
