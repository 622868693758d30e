//! The steps of `cargo xtask test` and `cargo xtask prove` that start programs of others, and what
//! these steps share. The order of all steps is in `test`.

pub(crate) mod product;
pub(crate) mod api;
pub(crate) mod interpreters;
pub(crate) mod fixtures;
pub(crate) mod baseline;
pub(crate) mod conformance;
pub(crate) mod peers;
pub(crate) mod vault_peers;
pub(crate) mod keyring;
pub(crate) mod a2a_peers;
pub(crate) mod gateway;
pub(crate) mod transparency;
pub(crate) mod client_conformance;
pub(crate) mod upstreams;
pub(crate) mod models;
pub(crate) mod sinks;
pub(crate) mod oidc;
pub(crate) mod live;

/// How much of a long step is run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What fits into a run of CI.
    Usual,
    /// Everything: `prove --all`.
    All,
}

/// The flag for all of it.
pub(crate) const ALL: &str = "--all";
