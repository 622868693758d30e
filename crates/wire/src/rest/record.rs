//! Bodies of `/api/v1/records`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A type of records that the caller may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordType {
    /// Its full name, with its namespace.
    pub name: String,
    /// Its name alone.
    pub simple_name: String,
    /// What its records are stored under.
    pub collection: String,
    /// Whether the caller may save records of it.
    pub save: bool,
    /// Whether the caller may delete records of it.
    pub remove: bool,
    /// Whether it is one of the server's own, whose records are changed elsewhere.
    pub built_in: bool,
}

/// A record as JSON.
#[derive(JsonSchema)]
pub struct Record(pub Map<String, Value>);

/// A page of records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordPage {
    /// As the query shows them.
    #[schemars(with = "Vec<Record>")]
    pub items: Vec<Value>,
    /// Where the next page begins: opaque; null on the last page.
    pub next_cursor: Option<String>,
    /// How many there are in all, unless that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_count: Option<u64>,
    /// Which limit ended the page early, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited: Option<Value>,
}
