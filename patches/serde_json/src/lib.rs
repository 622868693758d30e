//! The published `serde_json`, as every crate of the build gets it. It has no code of its own: it
//! only leaves out `preserve_order`, so that maps stay sorted whoever asks for that feature.

#![no_std]

pub use published::*;
