//! What the server keeps in the data folder beside the store, and what must not be read there: its
//! own secret, the keys of the audit, the vault of logins, and backups, which hold all of it. Sealing
//! itself is in crate `outbound`.

pub(crate) mod secret;
pub(crate) mod chain;
pub(crate) mod vault;
pub(crate) mod backup;
