//! Commands on a whole data folder: backup and restore.

pub(crate) mod backup;
pub(crate) mod restore;
