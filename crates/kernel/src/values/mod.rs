//! Plain values that everything else is made of: ids, data, faults, names, secrets, traces.
//! They know nothing of tools, runs or journals.

pub(crate) mod words;
pub mod ids;
pub mod rate;
pub mod secret;
pub mod trace;
pub mod names;
pub mod percent;
pub mod visible;
pub mod fault;
pub mod datum;
pub mod entry;
pub mod canonical;
pub mod caller;
