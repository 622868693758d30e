//! Logins against servers of our own on this machine: one that wants tokens, one that gives them.
#![allow(clippy::disallowed_methods, reason = "the servers run beside the test")]

mod site;
mod stage;
mod discovering;
mod logins;
mod identities;
mod renewals;
mod calls;
