//! The engine: the loop that drives sessions. `next` decides, the gate admits and starts, the
//! store remembers; doors call the few functions of `Engine` and nothing else.

pub mod clock;
pub mod schema;
pub mod refusal;
pub mod request;
mod once;
pub mod counts;
pub mod feed;
pub mod registry;
pub mod catalog;
mod rates;
pub mod gate;
mod command;
mod rest;
mod shared;
mod drive;
mod doors;
mod lists;
mod repeat;
mod retry;
mod trim;
mod keep;
mod recover;
mod direct;

pub use catalog::PlanFile;
pub use clock::timeout;
pub use counts::Counts;
pub use feed::Watch;
pub use gate::AllowAll;
pub use keep::Pruned;
pub use refusal::{Refusal, RefusalKind};
pub use registry::ToolSource;
pub use request::{
    CallReport, CallRequest, Inspection, Once, RegisteredPlan, ReplyReport, Resume, RunReport,
    RunRequest, RunSession, RunTarget,
};
pub use shared::{Engine, Parts};
