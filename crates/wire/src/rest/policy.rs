//! The policies of a server: what its files say about who may do what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The policies that a server has, a page of them by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policies {
    /// What `policyVersion` in the audit begins with where these policies decided; null for a
    /// server that has no folder for them.
    pub version: Option<String>,
    /// Whether the built-in roles permit something beside the files; else only `admin` does.
    pub builtin: bool,
    /// Whether the files decide. In local mode they are read and decide nothing.
    pub deciding: bool,
    /// The items.
    pub items: Vec<Policy>,
    /// Where the next page begins: opaque; null on the last page.
    pub next_cursor: Option<String>,
}

/// One policy of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The text of `@id`, else its file and line.
    pub id: String,
    /// Its file.
    pub file: String,
    /// The line at which it begins.
    #[schemars(range(min = 1))]
    pub line: u32,
    /// `permit`, `forbid`, `ask`, or `narrow` for one that leaves something of records.
    pub effect: String,
    /// What is asked, where it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The query that leaves only some records, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// The fields of records that it hides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<String>,
    /// The tools whose own actions it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}
