//! Child processes: the one place that starts, watches, ends and reaps them.
//!
//! `process` is our side: a program in a process group of its own, with an environment of its own,
//! that is killed with all that it started when no one keeps it any more. `supervisor` is what
//! stands between, where our own binary can: `waypost child` runs the program and ends it even if
//! we are killed and can do nothing about it. How long each of them waits is said here, for both
//! must agree.

mod process;
mod supervisor;

pub(crate) use process::{Pipes, Process, Program, SpawnError, start};
pub use supervisor::{SupervisedCommand, SupervisorError, supervise};

/// How long a supervisor waits for the program after it asked it to end.
pub const SUPERVISOR_GRACE_MS: u64 = 500;
/// How long we wait after that; the supervisor needs a moment to kill what did not end.
const ASKED_GRACE_MS: u64 = SUPERVISOR_GRACE_MS + 200;
