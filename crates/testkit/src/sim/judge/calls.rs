//! What the judge knows of one call, from its journal.

use kernel::tool::call::{InputRequired, Verdict};
use kernel::values::ids::{CallId, RunId};
use serde_json::Value;
use std::collections::BTreeMap;

/// A call and what became of it.
pub struct CallStory {
    pub run: RunId,
    pub state: CallNow,
    /// How often it was started.
    pub starts: u32,
    /// How often a start came to nothing: policy denied it, or nothing could be sent.
    pub unsent: u32,
    /// How often it wanted something first.
    pub wants: u32,
    /// How often it was sent again with what it wanted.
    pub resumes: u32,
    /// How often a person had it repeated after an unknown outcome.
    pub repeats: u32,
    /// Whether it may be repeated without asking.
    pub repeatable: bool,
    /// Whether someone learned what became of it, or that no one knows.
    pub told: bool,
    /// The call that it stands in for.
    pub(super) replaces: Option<CallId>,
    /// The plan wants a person's approval.
    pub(super) needs_approval: bool,
    /// What policy said when it was judged last.
    pub(super) verdict: Verdict,
    /// Its outcome is unknown and no one has learned of it yet.
    pub(super) untold: bool,
    /// What it wanted last, and what came of that so far.
    pub(super) wanted: Option<InputRequired>,
    pub(super) answers: BTreeMap<String, Value>,
}

impl CallStory {
    /// How often it may have happened: one that wanted something, or was not sent, did nothing.
    pub fn done_at_most(&self) -> u32 {
        (self.starts + self.resumes).saturating_sub(self.unsent + self.wants)
    }
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallNow {
    /// Not sent.
    Requested,
    /// Sent.
    Started,
    /// It wants something first.
    Wanting,
    /// Over.
    Finished,
    Failed,
}
