//! What is asked of a store of records, and what it answers. Every request is checked before: it
//! has trees and paths, and no text that is still to be read.

use super::error::RecordError;
use super::names::RecordName;
use super::scope::CallerScope;
use crate::checked::{CheckedQuery, Test};
use crate::evaluate::group::Grouping;
use crate::evaluate::order::{Position, SortField};
use crate::types::{RecordType, TypeSet};
use kernel::identity::principal::DataDomain;
use kernel::values::ids::{CallId, ContentHash, Millis, RealmId};
use serde_json::Value;
use std::sync::Arc;

/// For how long the outcome of a call is stored: 30 days.
pub const OUTCOME_KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// What a store never exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLimits {
    /// Of the rows of one page. The page ends earlier, with a cursor.
    pub find_bytes_max: usize,
    /// Records that one call embeds. The page ends earlier, with a cursor.
    pub expand_records_max: usize,
    pub groups_max: usize,
    pub delete_many_max: usize,
    pub record_bytes_max: usize,
    /// A read that takes longer is interrupted.
    pub query_timeout_ms: u64,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self {
            find_bytes_max: 1024 * 1024,
            expand_records_max: 10_000,
            groups_max: 1_000,
            delete_many_max: 2_000,
            record_bytes_max: 1024 * 1024,
            query_timeout_ms: 5_000,
        }
    }
}

/// Where a request goes, and how far its caller reaches there.
#[derive(Debug, Clone)]
pub struct Access {
    pub realm: RealmId,
    pub types: Arc<TypeSet>,
    pub scope: Arc<CallerScope>,
}

impl Access {
    /// The type of this full name.
    pub fn record_type(&self, name: &str) -> Result<&RecordType, RecordError> {
        self.types.find(name).map_err(|_| RecordError::UnresolvedCollection(name.to_owned()))
    }
}

/// The types below are named by their full names.
#[derive(Debug, Clone)]
pub struct Find {
    pub record_type: String,
    pub query: CheckedQuery,
    /// Rows that are equal in all of them are ordered by id.
    pub sort: Vec<SortField>,
    pub page: Page,
    /// Whether all rows are counted, too.
    pub total: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Rows behind this position only.
    pub after: Option<Position>,
    /// After `after`.
    pub skip: usize,
    pub limit: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// As the query shows them.
    pub rows: Vec<Value>,
    /// Without regard to the page.
    pub total: Option<u64>,
    /// The last row of the page, if there are rows behind it.
    pub next: Option<Position>,
    /// What ended the page before its limit, though there are more rows.
    pub cut: Option<Cut>,
}

/// How a store finds rows, for people who look for what makes a query slow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// What it asks its database, without values.
    pub statements: Vec<String>,
    /// The indexes that are used.
    pub indexes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Bytes,
    Embedded,
}

#[derive(Debug, Clone)]
pub struct Count {
    pub record_type: String,
    pub filter: Option<Test>,
    pub grouping: Option<Grouping>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counted {
    pub count: u64,
    /// In the order of the values that they are grouped by.
    pub groups: Vec<Value>,
}

#[derive(Debug, Clone)]
pub struct Get {
    pub record_type: String,
    pub name: RecordName,
}

/// Who writes, and which call it is.
#[derive(Debug, Clone)]
pub struct Write {
    pub author: Author,
    pub at: Millis,
    /// Under which the outcome is stored, in the same transaction. The same call writes once.
    pub call: Option<CallId>,
    /// A hash of what the call asks for: another request cannot be the same call.
    pub asked: Option<ContentHash>,
}

/// What records are stamped with.
#[derive(Debug, Clone)]
pub struct Author {
    pub subject: Arc<str>,
    pub domain: DataDomain,
    /// Whether it may save records of other data domains.
    pub administers: bool,
}

#[derive(Debug, Clone)]
pub struct Save {
    pub record_type: String,
    pub mode: SaveMode,
    pub entity: Value,
    /// The version that the record must have: 0 if it must not be there.
    pub expected: Option<u64>,
    /// The id of a new record that names none: `names::fresh_id`.
    pub fresh_id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveMode {
    /// A record that is not there yet.
    Insert,
    /// The record of this id, whole; without an id, a new one.
    Put,
    /// A part of a record that is there, named by id or refName.
    Merge,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    pub id: String,
    pub version: u64,
    pub is_new: bool,
    /// As the caller may see it.
    pub record: Value,
}

#[derive(Debug, Clone)]
pub struct Delete {
    pub record_type: String,
    pub id: String,
    pub expected: Option<u64>,
}

/// All that match, or none.
#[derive(Debug, Clone)]
pub struct DeleteMany {
    pub record_type: String,
    pub filter: Option<Test>,
    /// How many must match.
    pub expected: Option<u64>,
    /// Everything is checked, and nothing written; nor is the outcome.
    pub is_dry_run: bool,
}

/// What the records of one owner take up in one realm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordUsage {
    pub realm: RealmId,
    /// Of their data domain.
    pub owner: String,
    pub records: u64,
    pub bytes: u64,
}
