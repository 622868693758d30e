//! How refusals are told at every endpoint: the fault of a tool's call, and the status of HTTP that
//! goes with its name.

use super::error::{FieldMistake, RecordError, Referrer};
use super::reach::ReachError;
use crate::fault::QueryFault;
use crate::types::UnknownType;
use kernel::values::fault::Fault;
use serde_json::{Map, Value, json};

/// The names of faults of calls on records, with their statuses.
const STATUSES: &[(&str, u16)] = &[
    ("InvalidQuery", 400),
    ("UnresolvedVariable", 400),
    ("UnknownRootType", 400),
    ("InvalidId", 400),
    ("InvalidEntity", 400),
    ("InvalidCursor", 400),
    ("InvalidPage", 400),
    ("QueryRequired", 400),
    ("TooManyMatches", 400),
    ("TooManyGroups", 400),
    ("forbidden", 403),
    ("realm_not_allowed", 403),
    ("NotFound", 404),
    ("VersionConflict", 409),
    ("DuplicateKey", 409),
    ("ReferentialIntegrity", 409),
    ("ExpectationNotMet", 409),
    ("CallReused", 422),
    ("RecordTooLarge", 413),
    ("QueryTooSlow", 422),
    ("TooManyEmbedded", 422),
    ("UnresolvedCollection", 422),
    ("stored_bytes_max", 429),
    ("RecordStoreFailed", 500),
    ("RecordStoreBusy", 503),
    ("StorageFull", 507),
];

/// The status that goes with the name of a fault, if it is one of these.
pub fn http_status(name: &str) -> Option<u16> {
    known(name).map(|(_, status)| status)
}

/// The name of a fault with its status, if it is one of these.
pub fn known(name: &str) -> Option<(&'static str, u16)> {
    STATUSES.iter().find(|(known, _)| *known == name).copied()
}

/// Of a query.
pub fn of_query(fault: &QueryFault) -> Fault {
    let mut detail = members(&[
        ("position", json!(fault.position)),
        ("line", json!(fault.line)),
        ("column", json!(fault.column)),
    ]);
    if !fault.expected.is_empty() {
        detail.insert("expected".to_owned(), json!(fault.expected));
    }
    let told = Fault::new(fault.kind.name(), fault.message.as_str()).detail(detail);
    match &fault.hint {
        Some(hint) => told.hint(hint.as_str()),
        None => told,
    }
}

pub fn of_reach(error: &ReachError) -> Fault {
    let message = error.to_string();
    match error {
        ReachError::UnknownType(UnknownType::Ambiguous { candidates, .. }) => {
            Fault::new("UnknownRootType", message)
                .hint("write the type with its namespace")
                .detail(members(&[("candidates", json!(candidates))]))
        }
        ReachError::UnknownType(UnknownType::Blank | UnknownType::Unknown(_)) => {
            Fault::new("UnknownRootType", message).hint("`query_rootTypes` lists the types")
        }
        ReachError::OtherRealm { .. } => Fault::new("realm_not_allowed", message)
            .hint("choose the realm of the call itself, or leave `realm` out"),
        ReachError::Forbidden(_) | ReachError::RowFilter { .. } => Fault::new("forbidden", message),
        ReachError::BuiltIn { hint, .. } => Fault::new("forbidden", message).hint(hint.as_str()),
        ReachError::StoredBytesMax { .. } => Fault::new("stored_bytes_max", message)
            .hint("remove what is not needed any more, or raise the limit"),
    }
}

pub fn of_record(error: &RecordError) -> Fault {
    let fault = Fault::new(name(error), error.to_string());
    match error {
        RecordError::InvalidEntity(mistakes) => {
            let errors: Vec<Value> = mistakes.iter().map(mistake).collect();
            fault.detail(members(&[("errors", json!(errors))]))
        }
        RecordError::VersionConflict { expected, found } => {
            let versions = [("expected", json!(expected)), ("found", json!(found))];
            fault.hint("read the record again, and save what differs").detail(members(&versions))
        }
        RecordError::DuplicateKey(fields) => fault.detail(members(&[("fields", json!(fields))])),
        RecordError::ReferentialIntegrity(referrers) => {
            let referrers: Vec<Value> = referrers.iter().map(referrer).collect();
            let fault = fault.hint("delete or change the records that refer to it first");
            fault.detail(members(&[("referrers", json!(referrers))]))
        }
        RecordError::ExpectationNotMet { expected, found } => {
            fault.detail(members(&[("expected", json!(expected)), ("found", json!(found))]))
        }
        RecordError::TooManyMatches { max } => fault
            .hint("narrow the query, and delete in several calls")
            .detail(members(&[("max", json!(max))])),
        RecordError::TooManyGroups { max } | RecordError::TooManyEmbedded { max } => {
            fault.hint("narrow the query").detail(members(&[("max", json!(max))]))
        }
        RecordError::TooLarge { max } => fault.detail(members(&[("max", json!(max))])),
        RecordError::TooSlow(Some(field)) => fault
            .hint("narrow the query, or declare an index for the field")
            .detail(members(&[("field", json!(field))])),
        RecordError::TooSlow(None) => fault.hint("narrow the query"),
        RecordError::BadCursor => fault.hint("ask for the first page again, without a cursor"),
        RecordError::CallReused => fault.hint("another request needs another `Idempotency-Key`"),
        RecordError::Busy => fault.passing(),
        RecordError::Full => fault.hint("make room on the disk of the data folder"),
        RecordError::OutOfScope => {
            fault.hint("a save cannot move a record out of its caller's reach")
        }
        RecordError::NotFound
        | RecordError::InvalidId(_)
        | RecordError::UnresolvedCollection(_)
        | RecordError::Closed
        | RecordError::Failed(_) => fault,
    }
}

fn name(error: &RecordError) -> &'static str {
    match error {
        RecordError::NotFound => "NotFound",
        RecordError::InvalidId(_) => "InvalidId",
        RecordError::InvalidEntity(_) => "InvalidEntity",
        RecordError::VersionConflict { .. } => "VersionConflict",
        RecordError::DuplicateKey(_) => "DuplicateKey",
        RecordError::ReferentialIntegrity(_) => "ReferentialIntegrity",
        RecordError::ExpectationNotMet { .. } => "ExpectationNotMet",
        RecordError::TooManyMatches { .. } => "TooManyMatches",
        RecordError::TooManyGroups { .. } => "TooManyGroups",
        RecordError::TooSlow(_) => "QueryTooSlow",
        RecordError::UnresolvedCollection(_) => "UnresolvedCollection",
        RecordError::TooLarge { .. } => "RecordTooLarge",
        RecordError::TooManyEmbedded { .. } => "TooManyEmbedded",
        RecordError::OutOfScope => "forbidden",
        RecordError::CallReused => "CallReused",
        RecordError::BadCursor => "InvalidCursor",
        RecordError::Full => "StorageFull",
        RecordError::Busy | RecordError::Closed => "RecordStoreBusy",
        RecordError::Failed(_) => "RecordStoreFailed",
    }
}

fn mistake(mistake: &FieldMistake) -> Value {
    json!({"field": mistake.field, "message": mistake.message})
}

fn referrer(referrer: &Referrer) -> Value {
    json!({"rootType": referrer.record_type, "id": referrer.id, "field": referrer.field})
}

fn members(named: &[(&str, Value)]) -> Map<String, Value> {
    named.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Place;

    #[test]
    fn every_fault_has_a_status() {
        let errors = [
            RecordError::NotFound,
            RecordError::InvalidId(String::new()),
            RecordError::InvalidEntity(Vec::new()),
            RecordError::VersionConflict { expected: 1, found: 2 },
            RecordError::DuplicateKey(Vec::new()),
            RecordError::ReferentialIntegrity(Vec::new()),
            RecordError::ExpectationNotMet { expected: 1, found: 2 },
            RecordError::TooManyMatches { max: 1 },
            RecordError::TooManyGroups { max: 1 },
            RecordError::TooSlow(None),
            RecordError::UnresolvedCollection(String::new()),
            RecordError::TooLarge { max: 1 },
            RecordError::TooManyEmbedded { max: 1 },
            RecordError::OutOfScope,
            RecordError::CallReused,
            RecordError::BadCursor,
            RecordError::Full,
            RecordError::Busy,
            RecordError::Closed,
            RecordError::Failed(String::new()),
        ];
        for error in errors {
            let fault = of_record(&error);
            assert!(http_status(&fault.name).is_some(), "{}", fault.name);
        }
        assert_eq!(http_status("HttpStatus"), None);
    }

    #[test]
    fn a_fault_of_a_query_says_where_and_what_is_expected() {
        let fault = QueryFault::at(Place::START.further(4), "`b` is not expected here");
        let told = of_query(&fault.expected(&["&&", "||"]).hint("join two conditions by `&&`"));
        let detail = json!({"position": 4, "line": 1, "column": 5, "expected": ["&&", "||"]});
        assert_eq!(json!(told.detail), detail);
        assert_eq!(told.name, "InvalidQuery");
        assert_eq!(told.hint.as_deref(), Some("join two conditions by `&&`"));
    }
}
