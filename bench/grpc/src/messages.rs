//! The messages of the official definition, as far as a message and its completed task need them.

use prost_types::{Struct, Timestamp, Value};

/// A client speaks.
pub const ROLE_USER: i32 = 1;
/// A task is done.
pub const STATE_COMPLETED: i32 = 3;

/// A request that sends a message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SendRequest {
    #[prost(message, optional, tag = "2")]
    pub message: Option<Message>,
}

/// The task that it led to.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SendResponse {
    #[prost(message, optional, tag = "1")]
    pub task: Option<Task>,
}

/// What a client says.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Message {
    #[prost(string, tag = "1")]
    pub message_id: String,
    #[prost(int32, tag = "4")]
    pub role: i32,
    #[prost(message, repeated, tag = "5")]
    pub parts: Vec<Part>,
    #[prost(message, optional, tag = "6")]
    pub metadata: Option<Struct>,
}

/// A part of a message or of an artifact.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Part {
    #[prost(string, optional, tag = "1")]
    pub text: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub data: Option<Value>,
}

/// What a message led to.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Task {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub context_id: String,
    #[prost(message, optional, tag = "3")]
    pub status: Option<TaskStatus>,
    #[prost(message, repeated, tag = "4")]
    pub artifacts: Vec<Artifact>,
    #[prost(message, repeated, tag = "5")]
    pub history: Vec<Message>,
}

/// Where a task stands.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskStatus {
    #[prost(int32, tag = "1")]
    pub state: i32,
    #[prost(message, optional, tag = "3")]
    pub timestamp: Option<Timestamp>,
}

/// What a task gave.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Artifact {
    #[prost(string, tag = "1")]
    pub artifact_id: String,
    #[prost(message, repeated, tag = "4")]
    pub parts: Vec<Part>,
}
