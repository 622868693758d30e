//! What the server keeps secret and what it keeps on disk: its own secret, the vault of logins,
//! backups, and the proof of which server this is.

pub(crate) mod secret;
pub(crate) mod vault;
pub(crate) mod backup;
pub mod instance;
