//! A message as a run received it.

use crate::values::datum::{BlobRef, Datum};
use crate::values::ids::RunId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A message that a client sent to a run, in a protocol whose clients read their messages back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceivedMessage {
    pub run: RunId,
    /// The id that its client gave it.
    pub id: Arc<str>,
    /// The message, as the protocol writes it. Files in it are named by the URIs of their blobs.
    pub message: Arc<Datum>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<BlobRef>,
    /// Why it does not answer what the run asks, where it was meant to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfit: Option<Arc<str>>,
}
