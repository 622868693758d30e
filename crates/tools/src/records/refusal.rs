//! Refusals as errors of tools: before anything was asked of the store, and by the store itself,
//! which then wrote nothing.

use kernel::tool::call::{CallProgress, ToolError};
use kernel::values::fault::Fault;
use query::fault::QueryFault;
use query::records::error::RecordError;
use query::records::faults::{of_query, of_record};
use serde_json::{Map, Value, json};

/// The store was not asked.
pub(super) fn refused(fault: Fault) -> ToolError {
    ToolError::new(CallProgress::NotSent, fault)
}

/// The query cannot be used.
pub(super) fn bad_query(fault: &QueryFault) -> ToolError {
    refused(of_query(fault))
}

/// The same of the fields that another argument names. They have no place in the query, so the
/// argument is told instead.
pub(super) fn bad_field(argument: &str, fault: &QueryFault) -> ToolError {
    let told = Fault::new(fault.kind.name(), format!("`{argument}`: {}", fault.message));
    let told = told.detail(members([("argument", json!(argument))]));
    refused(match &fault.hint {
        Some(hint) => told.hint(hint.as_str()),
        None => told,
    })
}

/// The same without a fault of the query language.
pub(super) fn bad_argument(argument: &str, message: &str, hint: &str) -> ToolError {
    let message = format!("`{argument}`: {message}");
    let detail = members([("argument", json!(argument))]);
    refused(Fault::new("InvalidQuery", message).hint(hint).detail(detail))
}

/// What is asked is wrong in itself: the store need not be asked.
pub(super) fn bad_record(error: &RecordError) -> ToolError {
    refused(of_record(error))
}

/// The store refused.
pub(super) fn by_store(error: &RecordError) -> ToolError {
    ToolError::new(CallProgress::Failed, of_record(error))
}

/// The members of a detail.
pub(super) fn members<const N: usize>(named: [(&str, Value); N]) -> Map<String, Value> {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
