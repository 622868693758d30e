//! A2A 0.3: the types of 1.0 in other JSON, in one form for each binding. `write` makes that JSON
//! of the types, `rpc` and `rest` read messages and requests, `read` what agents answer, and `card`
//! has what 0.3 says in a card.

mod write;
pub mod rpc;
pub mod rest;
mod read;
mod card;

pub use card::{AdditionalInterface, CardAddresses, for_both};

use super::message::Content;
use super::task::TaskState;
use super::value::Bytes;

/// A binding of 0.3, and the form of JSON that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// JSON-RPC: an object says its `kind`, and states and roles are plain words.
    Rpc,
    /// HTTP: the ProtoJSON of the proto of 0.3, in which messages have `content` and files have
    /// names of their own.
    Rest,
}

/// The states in the words of JSON-RPC.
const STATES: [(TaskState, &str); 9] = [
    (TaskState::Unspecified, "unknown"),
    (TaskState::Submitted, "submitted"),
    (TaskState::Working, "working"),
    (TaskState::Completed, "completed"),
    (TaskState::Failed, "failed"),
    (TaskState::Canceled, "canceled"),
    (TaskState::InputRequired, "input-required"),
    (TaskState::Rejected, "rejected"),
    (TaskState::AuthRequired, "auth-required"),
];

/// How the proto of 0.3 spells this one.
const CANCELLED: &str = "TASK_STATE_CANCELLED";

impl Binding {
    fn state_word(self, state: TaskState) -> &'static str {
        let known = || STATES.iter().find(|(known, _)| *known == state);
        match (self, state) {
            (Self::Rpc, _) => known().map_or("unknown", |(_, word)| *word),
            (Self::Rest, TaskState::Canceled) => CANCELLED,
            (Self::Rest, state) => state.word(),
        }
    }
}

/// The state of a word of JSON-RPC; what is not known is not specified.
fn state_of(word: &str) -> TaskState {
    let known = STATES.iter().find(|(_, known)| *known == word);
    known.map_or(TaskState::Unspecified, |(state, _)| *state)
}

/// What a file holds: its bytes, or else its address.
fn content_of(bytes: Option<Bytes>, uri: Option<String>) -> Content {
    match bytes {
        Some(Bytes(bytes)) => Content::Raw(bytes),
        None => Content::Url(uri.unwrap_or_default()),
    }
}

fn each<T, U: From<T>>(all: Vec<T>) -> Vec<U> {
    all.into_iter().map(U::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_word() {
        for state in TaskState::ALL {
            assert_eq!(state_of(Binding::Rpc.state_word(*state)), *state);
        }
        assert_eq!(state_of("dreaming"), TaskState::Unspecified);
    }
}
