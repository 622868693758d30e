//! Databases as files of a data folder: opened, locked, checkpointed, copied, and missed when they
//! are lost. What is in them is in `schema` and `tables`; blobs are files of their own, beside it.

pub(crate) mod lock;
pub(crate) mod connect;
pub(crate) mod position;
pub(crate) mod missing;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod copy;
