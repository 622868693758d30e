//! What a store of records refuses, as the caller is told. Nothing was written then.

use futures::future::BoxFuture;

/// The answer of a store.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, RecordError>>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is not there, or the caller may not see it: both look the same.
    #[error("there is no such record")]
    NotFound,
    #[error("`{0}` is not the id of a record: 24 hexadecimal digits or a UUID")]
    InvalidId(String),
    #[error("the record is not valid: {}", listed(.0))]
    InvalidEntity(Vec<FieldMistake>),
    /// Version 0 is that of a record that is not there.
    #[error("the record has version {found}, not {expected}")]
    VersionConflict { expected: u64, found: u64 },
    /// The fields of the key that the caller may see.
    #[error("another record has the same {}", key(.0))]
    DuplicateKey(Vec<String>),
    /// The first referrers that the caller may see.
    #[error("other records refer to it")]
    ReferentialIntegrity(Vec<Referrer>),
    #[error("{found} records match, not {expected}")]
    ExpectationNotMet { expected: u64, found: u64 },
    #[error("more than {max} records match")]
    TooManyMatches { max: usize },
    #[error("there are more than {max} groups")]
    TooManyGroups { max: usize },
    /// It took too long; an index for this field would help. It is one that the caller named: those
    /// of row filters are not for it to know.
    #[error("the query takes too long{}", index_hint(.0.as_deref()))]
    TooSlow(Option<String>),
    #[error("nothing says where records of `{0}` are")]
    UnresolvedCollection(String),
    #[error("it has more than {max} bytes")]
    TooLarge { max: usize },
    /// More records than one call may embed belong to the first row of the page.
    #[error("one record would embed more than {max} others")]
    TooManyEmbedded { max: usize },
    /// As it would be after the save, the caller could not see it any more.
    #[error("the record would be outside of what its caller may reach")]
    OutOfScope,
    /// The call wrote something else before.
    #[error("the id of this call stands for another write")]
    CallReused,
    #[error("the cursor is not one of this query")]
    BadCursor,
    #[error("the disk is full; nothing was written")]
    Full,
    #[error("the store's queue is full; try again")]
    Busy,
    #[error("the store of records is closed")]
    Closed,
    #[error("the store of records failed: {0}")]
    Failed(String),
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMistake {
    /// Such as `lines[2].sku`; empty for the record as a whole.
    pub field: String,
    pub message: String,
}

/// A record that refers to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referrer {
    /// The full name of its type.
    pub record_type: String,
    pub id: String,
    pub field: String,
}

fn listed(mistakes: &[FieldMistake]) -> String {
    let shown = |mistake: &FieldMistake| match mistake.field.as_str() {
        "" => mistake.message.clone(),
        field => format!("`{field}` {}", mistake.message),
    };
    mistakes.iter().map(shown).collect::<Vec<_>>().join("; ")
}

fn key(fields: &[String]) -> String {
    if fields.is_empty() { "key".to_owned() } else { fields.join(", ") }
}

fn index_hint(field: Option<&str>) -> String {
    field.map(|field| format!("; there is no index for `{field}`")).unwrap_or_default()
}
