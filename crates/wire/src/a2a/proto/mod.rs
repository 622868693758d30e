//! A2A 1.0 in Protocol Buffers, as gRPC carries it. Messages go through the same types as JSON:
//! `schema` has the fields of the official definition (`proto/a2a.proto`, with its licence),
//! `operation` which messages an operation takes and gives, `read` makes ProtoJSON of bytes, and
//! `write` bytes of ProtoJSON. So a message means the same in every binding, and what is refused in
//! one is refused in all.

mod raw;
pub mod schema;
mod operation;
mod read;
mod write;
pub mod status;

pub use operation::Operation;
pub use read::{BadProto, read, to_json};
pub use write::write;
