//! This process: its limits, signals, logs and temporary folders, and the commands that it starts
//! to report asks. Its variables are in `environment`.

pub(crate) mod logs;
pub(crate) mod signals;
pub(crate) mod descriptors;
pub(crate) mod folder;
pub(crate) mod notices;
