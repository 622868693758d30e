//! Contracts of identity storage: API keys, token claims, principals, realms and the audit. Their
//! values are in `kernel::identity`.

pub mod api_keys;
pub mod claims;
pub mod principals;
pub mod realms;
pub mod audit;
