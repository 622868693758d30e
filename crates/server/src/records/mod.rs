//! The records of a server: which types there are, how far a caller reaches among them, what is
//! answered of built-in types, and the first records of realms. Where records are is the store's;
//! what callers ask are the tools' and the endpoints'.

mod engine_link;
mod served_types;
mod person;
mod reachable;
mod access;
mod built_in_rows;
mod built_in;
mod stored_bytes;
mod seed_rows;
pub(crate) mod seeds;
pub(crate) mod keeper;

pub(crate) use access::{AccessParts, PolicyAccess};
pub(crate) use built_in::WithBuiltIn;
pub(crate) use engine_link::EngineLink;
pub(crate) use served_types::ServedTypes;
pub(crate) use stored_bytes::RecordBytes;
