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
pub use api::copies::Exported;
pub use api::drafting::{DraftRequest, Drafted};
pub use api::finding::Found;
pub use api::reading::follow::{Listening, RunStream, RunUpdate, SessionStream, SessionUpdate};
pub use api::reading::pinned::Pinned;
pub use api::reading::transcript::Transcript;
pub use api::tasks::{Started, TaskReport, TaskStream};
pub use catalog::check::{Around, check_files};
pub use catalog::models::{Model, Models, Price};
pub use catalog::registry::{SwitchedOff, ToolSource};
pub use catalog::roster::KnownAgent;
pub use catalog::{
    AgentFile, Callable, Filed, ListChanges, PipelineFile, PlanFile, ProjectFiles, RulePlace,
    RulePlaces, UpstreamRealms,
};
pub use gate::breakers::BreakerState;
pub use gate::judged::ListVersion;
pub use gate::rights::AllowAll;
pub use gate::trail::{AuditParts, AuditRules};
pub use handles::{Admin, Asks, Audits, Cases, Catalog, Feed, Runs, Sessions, Threads, Tools};
pub use observe::counts::Counts;
pub use observe::sinks::{SinkRules, SinkState};
pub use outbox::heads::HeadRules;
pub use recovery::Undone;
pub use refusal::{Refusal, RefusalCode, RefusalKind};
pub use request::{
    CallReport, CallRequest, CaseReport, ContextRuns, Inspection, Message, Once, ProxyCall,
    RegisteredAgent, RegisteredPlan, ReplyReport, Resume, RunAbout, RunReport, RunRequest,
    RunSession, RunTarget, Saying, SubmitOptions, UnseenCall,
};
pub use retention::Pruned;
pub use shared::{Engine, Parts};
pub use shares::{Full, RealmSource, Share, Shares};
pub use system::clock::timeout;
pub use system::zones::Utc;
pub use waiting::attending::{Attendance, Attendant};
pub use waiting::deltas::{Heard, TurnPlace};
pub use waiting::feed::Watch;
pub use waiting::login_pages::Hearer;
