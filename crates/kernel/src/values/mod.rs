//! Plain values that everything else is made of: ids, moments, stored data, history entries,
//! faults, names, callers, secrets, rates, traces, JSON in one order. Nothing here knows plans,
//! events or sessions, and nothing decides about a run.

pub(crate) mod named_enum;
pub mod ids;
pub mod rate;
pub mod secret;
pub mod trace;
pub mod names;
pub mod percent;
pub mod visible;
pub mod members;
pub mod fault;
pub mod datum;
pub mod history;
pub mod canonical;
pub mod caller;

/// Whether a value says nothing and is left out where it is written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
