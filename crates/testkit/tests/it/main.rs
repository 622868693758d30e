//! Quick tests of several crates together: the contracts of stores, journals of every release,
//! transcripts, and adapters of models against fakes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests may panic, and wait by the clock"
)]

mod store_contract;
mod records_contract;
mod records_random;
mod journals;
mod transcripts;
mod llms;
mod live_models;
