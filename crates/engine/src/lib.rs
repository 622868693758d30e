//! The engine: the loop that drives sessions. `next` decides, the gate admits and starts, the
//! store remembers; endpoints call the handles of `Engine`, one per resource, and nothing else.

pub mod system;
pub mod refusal;
mod shares;
pub mod catalog;
pub mod request;
pub mod waiting;
pub mod observe;
pub mod gate;
mod command;
mod sessions;
mod shared;
mod handles;
mod planted;
mod advice;
mod driver;
mod api;
mod retention;
mod recovery;
mod outbox;

pub use advice::drafting::{Draft, DraftWrite, DraftedPlan};
pub use api::drafting::{DraftOutcome, DraftRequest};
pub use api::fork_export::ExportStream;
pub use api::reading::follow::{
    RunStream, RunUpdate, SessionStream, SessionUpdate, ThreadListener,
};
pub use api::reading::pinned::PinnedDefinitions;
pub use api::reading::run_events::{RunEvents, StartedRun};
pub use api::reading::transcript::Transcript;
pub use api::search::SearchResults;
pub use catalog::check::{CheckContext, check_files};
pub use catalog::models::{Model, Models, Price};
pub use catalog::plan_cache::ReportedPlan;
pub use catalog::registry::{SwitchedOff, ToolSource};
pub use catalog::roster::KnownAgent;
pub use catalog::{
    AgentFile, Callable, CheckedFiles, ListChanges, PipelineFile, PlanFile, ProjectFiles,
    RulePlace, RulePlaces, UpstreamRealms,
};
pub use gate::breakers::BreakerState;
pub use gate::list_cache::ListVersion;
pub use gate::rights::AllowAll;
pub use gate::trail::{AuditParts, AuditRules};
pub use handles::{Admin, Asks, Audits, Cases, Catalog, Feed, Runs, Sessions, Threads, Tools};
pub use observe::counts::Counts;
pub use observe::sinks::{SinkRules, SinkState};
pub use observe::webhooks::{FindNotices, NoticeLimits, Notices, Recipient, WebhookTurn};
pub use outbox::heads::HeadRules;
pub use recovery::UnfinishedRuns;
pub use refusal::{Refusal, RefusalCode, RefusalKind};
pub use request::{
    CallReport, CallRequest, CaseReport, ContextRuns, IdempotencyKey, Inspection, Message,
    RegisteredAgent, RegisteredPlan, ReplyReport, ReportedCall, RunMetadata, RunReport, RunRequest,
    RunSession, RunTarget, SessionReply, SubmitOptions, ThreadMessage, UnseenCall,
};
pub use retention::PruneReport;
pub use shared::{Engine, Parts, WeakEngine};
pub use shares::storage::OtherStorage;
pub use shares::{RealmSource, Share, ShareExhausted, Shares};
pub use system::clock::timeout;
pub use system::zones::Utc;
pub use waiting::attendants::{Attendance, Attendant};
pub use waiting::deltas::{TurnPlace, TurnUpdate};
pub use waiting::feed::Watch;
pub use waiting::login_pages::PageCallback;
