//! The server: how the engine and all endpoints are put together and served. A project folder is
//! read by crate `project`; the endpoints are crates of their own.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

mod secrets;
mod records;
mod routes;
mod ports;
mod assemble;
mod serve;

pub use a2a::{ChooseSkill, SkillChoice};
pub use a2a::{OPERATIONS as A2A_OPERATIONS, Operation as A2aOperation};
pub use a2a::{TASK_REJECTED, VAULT_METHODS, VAULT_ROUTES};
pub use assemble::pipelines::check_pipeline;
pub use assemble::records::TOOL_PREFIX as RECORD_TOOL_PREFIX;
pub use assemble::watch::{ConfigReader, Watch, WatchGuard};
pub use assemble::{
    AssembleError, Assembled, Extra, OfflineKeys, OfflineRecords, OfflineVault, ProjectPart,
    ProjectReport, Setup, Stopper, ToCheck, assemble, check_project, good_keys, unfit_documents,
};
pub use edge::acts::{ActTarget, Right};
pub use edge::gateway::Lookup;
pub use edge::instance;
pub use mcp::METHODS;
pub use ports::{OwnPort, PortError};
pub use routes::{document as openapi, rights, routes};
pub use secrets::backup::{backup_at_rest, restore};
pub use serve::tls::{Tls, TlsError};
pub use serve::{refuse_all, serve, serve_stdio};
pub use stores::losses_of;
