//! One module for each group of tables: how its rows are written and read. The tables of journals
//! and lists are written by `append` and read by `read`; how tables come to be is in `schema`.

pub(crate) mod columns;
pub(crate) mod refs;
pub(crate) mod pin_cache;
pub(crate) mod specs;
pub(crate) mod closures;
pub(crate) mod keys;
pub(crate) mod consumers;
pub(crate) mod tallies;
pub(crate) mod changed_runs;
pub(crate) mod fences;
pub(crate) mod removed_realms;
pub(crate) mod history;
pub(crate) mod definitions;
pub(crate) mod audit;
pub(crate) mod api_keys;
pub(crate) mod claims;
pub(crate) mod principals;
pub(crate) mod deliveries;
pub(crate) mod blob_sweep;
