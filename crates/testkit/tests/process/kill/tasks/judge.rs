//! What streams and webhooks told of a task is one sequence of updates. The webhook has all of it,
//! some perhaps twice; each stream has all that follows its snapshot, and nothing twice.

use super::watch::{Segment, state_in, state_of};
use serde_json::Value;

/// What every task of this test makes, in order.
pub(super) const MADE: [&str; 4] = ["one", "two", "three", "answer"];

/// The updates of a task in their order, as its webhook took them; an update that was posted again
/// is followed by those that were posted after it the first time.
pub(super) fn updates(taken: &[Value]) -> Vec<Value> {
    let mut updates: Vec<Value> = Vec::new();
    let mut next = 0;
    for update in taken {
        let found = updates.iter().position(|known| known == update);
        let at = found.unwrap_or(updates.len());
        assert!(at <= next, "left out before {update}: {:?}", updates.get(next));
        if found.is_none() {
            updates.push(update.clone());
        }
        next = at + 1;
    }
    updates
}

/// Whether these are all updates of a task.
pub(super) fn are_all(updates: &[Value]) -> bool {
    updates.last().and_then(state_of) == Some("COMPLETED")
}

/// A task makes what it has to, once and in order.
pub(super) fn whole(updates: &[Value]) {
    assert_eq!(artifacts(updates), MADE, "{updates:?}");
    assert!(are_all(updates), "not over: {updates:?}");
}

/// The streams of one subscriber, one after the other: each begins no earlier than the one before
/// ended, and has what follows its snapshot.
pub(super) fn streams(updates: &[Value], segments: &[Segment]) {
    let mut seen = 0;
    for segment in segments {
        let count = segment.events.len();
        let fits = |start: &usize| {
            let told = updates.get(*start..*start + count);
            told == Some(segment.events.as_slice())
                && is_so_far(&segment.snapshot, &updates[..*start])
        };
        let start = (seen..=updates.len()).find(fits);
        let start = start.unwrap_or_else(|| {
            panic!("a stream does not follow {seen} updates: {segment:#?}, all: {updates:#?}")
        });
        seen = start + count;
    }
    // Who was told that the task is over need not have seen its end.
    if segments.last().is_some_and(Segment::is_over) {
        assert_eq!(seen, updates.len(), "a stream ended early: {segments:#?}");
    }
}

/// Whether a task is what these updates lead to.
fn is_so_far(snapshot: &Value, updates: &[Value]) -> bool {
    let made = snapshot["artifacts"].as_array().cloned().unwrap_or_default();
    let made: Vec<&str> =
        made.iter().map(|made| made["artifactId"].as_str().unwrap_or_default()).collect();
    let state = updates.iter().rev().find_map(state_of).unwrap_or("SUBMITTED");
    made == artifacts(updates) && state_in(snapshot) == state
}

fn artifacts(updates: &[Value]) -> Vec<&str> {
    let made = updates.iter().filter_map(|update| update.get("artifactUpdate"));
    made.map(|made| made["artifact"]["artifactId"].as_str().unwrap_or_default()).collect()
}
