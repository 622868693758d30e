//! Commands on a whole data folder: backup and restore. The copying itself is in crates `server`
//! and `stores`.

pub(crate) mod backup;
pub(crate) mod restore;
