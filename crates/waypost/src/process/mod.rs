//! This process: its limits, signals, logs and temporary folders.

pub(crate) mod logs;
pub(crate) mod signals;
pub(crate) mod descriptors;
pub(crate) mod folder;
