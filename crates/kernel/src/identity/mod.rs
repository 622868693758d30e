//! The pure part of identity: keys, principals, token issuers, realms and roles as values, what the
//! built-in roles permit, shares of limits, fair queueing, whether a server requires credentials,
//! and the audit.

pub mod roles;
pub mod grants;
pub mod key;
pub mod issuer;
pub mod principal;
pub mod principal_reader;
pub mod shares;
pub mod fair_queue;
pub mod reads_for;
pub mod realm;
pub mod directory;
pub mod exposure;
pub mod audit;
pub mod chain;
pub mod start_records;
