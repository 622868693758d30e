//! Events that runs publish, as stored in the journal.

use serde_json::Value;
use std::sync::Arc;

/// One event that a run published: a step told it, or a call with its result.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PublishedEvent {
    /// The source that it is published under; the realm's own where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Arc<str>>,
    /// The event: an object whose `type` is a text.
    pub event: Arc<Value>,
}
