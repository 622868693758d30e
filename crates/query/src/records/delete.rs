//! Whether records may be deleted, as far as it does not depend on who refers to them.

use super::error::RecordError;
use super::outcome::version_of;
use super::requests::{Access, DeleteMany, RecordLimits};
use crate::evaluate::Row;
use crate::types::RecordType;
use serde_json::Value;

/// The record, if the caller sees it and it has this version.
pub fn may_delete(
    access: &Access,
    record_type: &RecordType,
    found: Option<Value>,
    expected: Option<u64>,
) -> Result<Value, RecordError> {
    let found = found.filter(|record| {
        access.scope.admits(record_type, Row { realm: access.realm.as_str(), record })
    });
    let record = found.ok_or(RecordError::NotFound)?;
    let version = version_of(&record);
    match expected.filter(|expected| *expected != version) {
        Some(expected) => Err(RecordError::VersionConflict { expected, found: version }),
        None => Ok(record),
    }
}

/// Whether so many records may be deleted at once. A store need not count further than one beyond
/// `delete_many_max`.
pub fn may_delete_many(
    delete: &DeleteMany,
    found: u64,
    limits: &RecordLimits,
) -> Result<(), RecordError> {
    let max = limits.delete_many_max;
    if found > max as u64 {
        return Err(RecordError::TooManyMatches { max });
    }
    match delete.expected.filter(|expected| *expected != found) {
        Some(expected) => Err(RecordError::ExpectationNotMet { expected, found }),
        None => Ok(()),
    }
}
