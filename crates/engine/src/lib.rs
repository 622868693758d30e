//! The engine: the loop that drives sessions. `next` decides, the gate admits and starts, the
//! store remembers; doors call the handles of `Engine`, one per resource, and nothing else.

pub mod clock;
mod panics;
pub mod schema;
pub mod refusal;
pub mod request;
mod once;
mod line;
pub mod counts;
pub mod feed;
pub mod models;
pub mod zones;
pub mod deltas;
mod outboxes;
pub mod registry;
pub mod roster;
pub mod catalog;
mod check;
mod observers;
mod captured;
mod rates;
mod arrivals;
mod pages;
mod locks;
mod judged;
pub mod gate;
mod rights;
mod command;
mod rest;
mod suspects;
mod shared;
mod handles;
mod blobs;
mod said;
mod drive;
mod hold;
mod doors;
mod tools;
mod plans;
mod agents;
mod say;
mod lists;
mod follow;
mod transcript;
mod repeat;
mod cases;
mod retry;
mod trim;
mod journal;
mod keep;
mod recover;
mod watched;
mod direct;
mod outbox;

pub use catalog::{AgentFile, Filed, PipelineFile, PlanFile, ProjectFiles};
pub use check::{Around, check_files};
pub use clock::timeout;
pub use counts::Counts;
pub use deltas::{Heard, TurnPlace};
pub use feed::Watch;
pub use follow::{Listening, RunStream, RunUpdate, SessionStream, SessionUpdate};
pub use handles::{Admin, Asks, Cases, Catalog, Feed, Runs, Sessions, Threads, Tools};
pub use journal::Exported;
pub use judged::ListVersion;
pub use keep::Pruned;
pub use models::{Model, Models, Price};
pub use outboxes::{SinkRules, SinkState};
pub use pages::Hearer;
pub use refusal::{Refusal, RefusalCode, RefusalKind};
pub use registry::ToolSource;
pub use request::{
    CallReport, CallRequest, CaseReport, Inspection, Once, RegisteredAgent, RegisteredPlan,
    ReplyReport, Resume, RunAbout, RunReport, RunRequest, RunSession, RunTarget, Saying,
    SubmitOptions,
};
pub use rights::AllowAll;
pub use roster::KnownAgent;
pub use shared::{Engine, Parts};
pub use transcript::Transcript;
pub use zones::Utc;
