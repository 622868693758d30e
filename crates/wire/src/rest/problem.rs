//! The body of an error of an endpoint (RFC 9457).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The content type of a [`Problem`].
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// An error as RFC 9457 says; a conflict carries more members, such as `state` and `decision`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// What kind of problem, as a URI.
    #[serde(rename = "type")]
    pub kind: String,
    /// The same for people.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Who failed and why.
    pub detail: String,
    /// A stable word for programs.
    pub code: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The faulty values, if it is about values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FaultyValue>,
    /// What to look for in the server's log.
    pub trace_id: String,
    /// More for programs: the winning decision, the open asks.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One faulty value of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultyValue {
    /// JSON Pointer to it; empty for the whole.
    pub pointer: String,
    /// What is wrong with it.
    pub detail: String,
}

/// What went wrong: who failed, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// A stable word for programs.
    pub name: String,
    /// Who failed and why.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// More for programs, as the tool that failed gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<Map<String, Value>>>,
}
