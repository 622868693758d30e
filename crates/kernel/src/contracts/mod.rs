//! The contracts that everything outside plugs into: stores, blobs, vaults, tools, shelves, policy,
//! audit, sinks, webhooks, observers, backups, time and tasks. Boxed futures: all of them wait on
//! disk or network anyway, and signatures stay short. Two contracts stand beside their values
//! instead: `Llm` in `conversation`, `Schemas` in `tool`.

pub mod figures;
pub mod policy;
mod store_error;
mod position;
mod sessions;
mod system;
mod blobs;
mod vault;
pub mod identity;
pub mod webhooks;
pub mod shelf;
pub mod cloud;
pub mod sink;
pub mod backup;
pub mod observe;

pub use crate::contracts::figures::{
    CommitTimes, OpenAsks, OpenSessions, StoreFigures, StoredBytes,
};
pub use crate::contracts::policy::Policy;
pub use crate::journal::lists::{
    AskFilter, FeedRow, ListPage, OwnerFilter, PageRequest, RunFilter, RunPage, RunWithEvents,
    SessionAsk, SessionFilter, SessionRef, SessionRun,
};
pub use blobs::{Blobs, Holder, Incoming, OpenBlob, WHOLE};
pub use position::{StoreLoss, StorePosition};
pub use sessions::feed::{Feed, FeedStart, SINKS};
pub use sessions::journal::{HistoryFilter, Journal, LoadResult, StoredSession, Ticket};
pub use sessions::keys::Keys;
pub use sessions::lists::Lists;
pub use sessions::ownership::Ownership;
pub use sessions::retention::{PrunedSlice, RETENTION, RealmSet, Retention, Slice, Trimmable};
pub use sessions::store::{AppendedEvents, CommitNotice, OnCommit, Store};
pub use store_error::{Read, StoreError};
pub use system::{Clock, CrashMarks, Entropy, Spawn, Suspect, Zones};
pub use vault::{Vault, VaultCondition, VaultEntry, VaultError, VaultFuture, VaultLease};

use crate::tool::call::{Call, Caller, Reach, ToolError, ToolOutput, ToolSpec, Upstream};
use crate::values::ids::{Millis, RealmId};
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// A tool: one truth for every endpoint, the model's prompt and the docs.
pub trait Tool: Send + Sync {
    fn spec(&self) -> &Arc<ToolSpec>;

    /// What policy and the rules for tools judge it by. At an open server a method may be written
    /// with the server's own name before it or without: for them both are one tool.
    fn judged(&self) -> &Arc<ToolSpec> {
        self.spec()
    }

    /// Its own check of arguments and caller, before policy: no one is asked to approve a call that
    /// cannot run.
    fn check(&self, _caller: &Caller, _arguments: &Value) -> Result<(), ToolError> {
        Ok(())
    }

    /// The server that it is of, where it is not ours. It is asked for every call that ended.
    fn upstream(&self) -> Option<Upstream> {
        None
    }

    /// Its required input will not be given: anything that it holds for this state can be dropped.
    fn forget(&self, _state: &Value) {}

    /// What continues elsewhere under this state is cancelled: the other side is told at once, and
    /// the call that follows it has the outcome.
    fn cancel(&self, _state: &Value) {}

    /// Whether a call that handed out this state can be made again, without an answer, only to see
    /// whether it still wants what it wanted: nothing is held for the answer.
    fn can_be_asked_anew(&self, _state: &Value) -> bool {
        true
    }

    /// Says whether what waits elsewhere under this state continued there without an answer. None
    /// where only an answer lets it continue, or where the tool cannot tell.
    fn moved_on(&self, _state: &Value) -> Option<BoxFuture<'static, bool>> {
        None
    }

    /// Whether a call that handed out this state takes a part of what it wants: it continues with
    /// that, and wants the rest again. Others are given all of it at once.
    fn takes_parts(&self, _state: &Value) -> bool {
        false
    }

    /// The name by which its provider reports that a page was opened that it wanted under this
    /// key.
    fn page_name<'k>(&self, key: &'k str) -> &'k str {
        key
    }

    /// Whether it stands for tools that are in no list: all whose names begin with its own, without
    /// the `*` at its end. It cannot be called itself.
    fn is_open(&self) -> bool {
        false
    }

    /// The tool of this name, which an open one stands for.
    fn opened(&self, _name: &str) -> Option<Arc<dyn Tool>> {
        None
    }

    /// What this call does to the world, and whether it may be repeated under its key.
    fn reach(&self, _arguments: &Value) -> (Reach, bool) {
        (self.spec().reach, self.spec().idempotent)
    }

    /// Does it. The engine brings the timeout; dropping the future cancels.
    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// A stored definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// `plan`, `agent`, `provider`.
    pub kind: String,
    pub name: String,
    /// Its version, from 1.
    pub version: u64,
    pub body: Value,
    /// When this version was stored.
    pub updated_at: Millis,
    /// Who stored this version; `None` in local mode.
    pub by: Option<Arc<str>>,
}

/// Who stored the newest version of a definition: none where there is no definition, or where that
/// is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredBy(pub Option<Arc<str>>);

/// What must be so for a definition to be changed. What is left out may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Precondition {
    /// The newest version (0: there is none).
    pub version: Option<u64>,
    pub owner: Option<StoredBy>,
}

impl Precondition {
    /// Whether it is so, of the newest version (0: there is none).
    pub fn holds(&self, version: u64, owner: &StoredBy) -> bool {
        self.version.is_none_or(|expected| expected == version)
            && self.owner.as_ref().is_none_or(|expected| expected == owner)
    }
}

/// Stored configuration: plans, agents, providers.
pub trait Definitions: Send + Sync {
    /// How many definitions each realm has that has any, by its name. All versions of one are one.
    fn counts(&self) -> Read<'_, Vec<(RealmId, u64)>>;
    /// All of one kind.
    fn list<'a>(&'a self, realm: &'a RealmId, kind: &'a str) -> Read<'a, Vec<Definition>>;
    /// One, in its newest version.
    fn get<'a>(
        &'a self,
        realm: &'a RealmId,
        kind: &'a str,
        name: &'a str,
    ) -> Read<'a, Option<Definition>>;
    /// Stores the next version if the newest is as `against` says; durable on return. `Conflict`
    /// otherwise.
    fn put<'a>(
        &'a self,
        realm: &'a RealmId,
        definition: Definition,
        against: Precondition,
    ) -> Read<'a, Definition>;
    /// Removes it if the newest version is as `against` says; whether it was there. `Conflict`
    /// otherwise.
    fn delete<'a>(
        &'a self,
        realm: &'a RealmId,
        kind: &'a str,
        name: &'a str,
        against: Precondition,
    ) -> Read<'a, bool>;
}
