//! How far a caller reaches with one call: into which types, rows and fields, and what new records
//! are stamped with. Policy decides that behind this contract; tools and endpoints ask it, and get
//! what a store of records is asked with.

use super::requests::{Access, Author};
use crate::types::{TypeSet, UnknownType};
use kernel::values::caller::Caller;
use kernel::values::ids::RealmId;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a call does with records of the type that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordAct {
    Read,
    Save,
    Remove,
}

impl RecordAct {
    /// As messages say it.
    pub fn name(self) -> &'static str {
        match self {
            RecordAct::Read => "read",
            RecordAct::Save => "save",
            RecordAct::Remove => "remove",
        }
    }
}

/// One question.
#[derive(Debug, Clone, Copy)]
pub struct ReachRequest<'r> {
    pub caller: &'r Caller,
    /// As the caller names it.
    pub record_type: &'r str,
    pub act: RecordAct,
    /// The realm that the call's arguments name, if they name one: it must be the caller's.
    pub realm: Option<&'r str>,
}

/// What a call on one type may use.
#[derive(Debug, Clone)]
pub struct Reach {
    /// The full name of the type.
    pub record_type: String,
    /// The type within what the act is allowed for; the types that it leads to, as far as they may
    /// be read.
    pub access: Access,
    pub author: Author,
    /// What variables in queries stand for.
    pub variables: BTreeMap<String, Value>,
    /// How many rows one page has at most.
    pub find_rows_max: usize,
    pub find_skip_max: usize,
    /// Whether the caller is told how a query is run.
    pub explains: bool,
}

/// What a caller may see of the types of its realm.
#[derive(Debug, Clone)]
pub struct Visible {
    /// Every type that it may read is admitted, with its row filters and hidden fields.
    pub access: Access,
    /// By the full names of the types that it may read.
    pub rights: BTreeMap<String, TypeRights>,
    pub variables: BTreeMap<String, Value>,
}

/// What else a caller may do with a type that it may read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TypeRights {
    pub save: bool,
    pub remove: bool,
    /// Records of it are changed elsewhere only, whoever asks.
    pub is_built_in: bool,
}

/// Why a call reaches nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    #[error(transparent)]
    UnknownType(#[from] UnknownType),
    /// The arguments name another realm than the call's.
    #[error("the call is in realm `{realm}` and names realm `{named}`")]
    OtherRealm { realm: String, named: String },
    /// Policy denies it.
    #[error("{0}")]
    Forbidden(String),
    /// Records of a built-in type are changed elsewhere.
    #[error("records of `{record_type}` are not changed here")]
    BuiltIn { record_type: String, hint: String },
    /// A row filter of a policy cannot be used, so that nothing is let through.
    #[error("a policy's row filter for `{record_type}` cannot be used: {why}")]
    RowFilter { record_type: String, why: String },
    /// The realm stores as much as it may.
    #[error("the realm stores {max} bytes, which is all that it may (stored_bytes_max)")]
    StoredBytesMax { max: u64 },
}

/// Decides how far callers reach.
pub trait RecordAccess: Send + Sync {
    /// The types of a realm, with the built-in ones. Without declared types there are none.
    fn types(&self, realm: &RealmId) -> Arc<TypeSet>;

    fn reach(&self, request: ReachRequest<'_>) -> Result<Reach, ReachError>;

    /// For lists, schemas and hints.
    fn visible(&self, caller: &Caller) -> Result<Visible, ReachError>;
}
