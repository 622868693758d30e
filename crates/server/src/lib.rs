//! The server: the endpoints before the engine, and how all parts are put together. An endpoint
//! translates; the engine decides. A project folder is read by crate `project`.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

mod problem;
pub mod secrets;
mod gateway;
mod realms;
mod counters;
mod connections;
mod request;
mod views;
mod openapi;
mod http;
mod acts;
mod rpc;
mod mcp;
mod a2a;
mod routes;
mod ports;
mod assemble;
mod serve;

pub use a2a::{OPERATIONS as A2A_OPERATIONS, Operation as A2aOperation};
pub use a2a::{VAULT_METHODS, VAULT_ROUTES};
pub use acts::{ActTarget, METHODS, Right};
pub use assemble::pipelines::check_pipeline;
pub use assemble::watch::{ConfigReader, Watch, WatchGuard};
pub use assemble::{
    AssembleError, Assembled, Extra, HeldKeys, HeldVault, ProjectPart, ProjectReport, Setup,
    Stopper, ToCheck, assemble, check_project, good_keys, unfit_documents,
};
pub use gateway::Lookup;
pub use ports::{OwnPort, PortError};
pub use request::choice::{ChooseSkill, SkillChoice};
pub use routes::{document as openapi, rights, routes};
pub use secrets::backup::{HeldBackup, restore};
pub use serve::tls::{Tls, TlsError};
pub use serve::{refuse_all, serve, serve_stdio};
pub use stores::loss_of;
