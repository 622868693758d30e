//! What a store of records does when types change: it takes them on as they are, or says which
//! records stand in the way. A migration moves these records out of the way first.

use super::Records;
use super::error::{Answer, RecordError};
use crate::types::{Change, RealmTypes};
use futures::future::BoxFuture;
use kernel::values::ids::RealmId;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The types that records are to have from now on.
#[derive(Debug, Clone, Default)]
pub struct TypeChange {
    pub types: Arc<RealmTypes>,
    /// What is done with stored records first, in this order.
    pub steps: Vec<MigrationStep>,
    /// Everything is checked, and nothing written.
    pub is_dry_run: bool,
}

/// One change of stored records, in every realm that has the type. Types have their full names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationStep {
    /// A type gets another name, and so do references to it.
    RenameType {
        from: String,
        to: String,
    },
    /// A field, such as `address.zip`, gets another path. It is refused where a record has both.
    RenameField {
        record_type: String,
        from: String,
        to: String,
    },
    /// A type goes with all its records. It is refused while records of other types refer to them.
    DropType {
        record_type: String,
    },
    DropField {
        record_type: String,
        field: String,
    },
}

/// What a change of types did, or would do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TypeReport {
    pub changes: Vec<TypeDifference>,
    /// How many records each step changed or removed, in the order of the steps.
    pub migrated: Vec<u64>,
}

/// What differs in one type between what is stored and what is declared.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeDifference {
    /// The realm whose own type it is; none for a type of all realms.
    pub realm: Option<RealmId>,
    pub record_type: String,
    pub changes: Vec<Change>,
}

/// Records that would lose something, or cease to fit their type.
#[derive(Debug, Clone, PartialEq)]
pub struct Obstacle {
    /// The realm whose own type it is; none for a type of all realms.
    pub realm: Option<RealmId>,
    pub record_type: String,
    pub change: Change,
    /// How many records stand in the way, in all realms that have the type.
    pub records: u64,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records =
            if self.records == 1 { "1 record" } else { &format!("{} records", self.records) };
        write!(f, "{}: {} ({records})", self.record_type, self.change)?;
        match &self.realm {
            Some(realm) => write!(f, " in realm `{realm}`"),
            None => Ok(()),
        }
    }
}

/// Why types were not taken on. Nothing was changed then.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TypeChangeError {
    #[error("stored records do not fit the types: {}", listed(.0))]
    Obstacles(Vec<Obstacle>),
    /// A step cannot be taken.
    #[error("{0}")]
    Step(String),
    #[error(transparent)]
    Store(#[from] RecordError),
}

fn listed(obstacles: &[Obstacle]) -> String {
    let listed: Vec<String> = obstacles.iter().map(Obstacle::to_string).collect();
    listed.join("; ")
}

/// A store of records whose types can change.
pub trait RecordStore: Records {
    /// Takes on other types, in one transaction. A store is not asked for records before it has
    /// types.
    fn change_types(
        &self,
        change: TypeChange,
    ) -> BoxFuture<'_, Result<TypeReport, TypeChangeError>>;

    /// The full names of the types whose first records this realm has had.
    fn seeded(&self, realm: RealmId) -> Answer<'_, BTreeSet<String>>;

    /// Notes that this realm has had the first records of a type.
    fn note_seeded(&self, realm: RealmId, record_type: String) -> Answer<'_, ()>;
}
