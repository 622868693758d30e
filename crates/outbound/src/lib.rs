//! What every request to another server needs, written once. It knows nothing of runs, tools or
//! models.

pub mod percent;
pub mod redaction;
pub mod sse;
