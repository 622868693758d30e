//! This process: its limits, signals, logs and temporary folders. Its variables are in
//! `environment`.

pub(crate) mod logs;
pub(crate) mod signals;
pub(crate) mod descriptors;
pub(crate) mod folder;
