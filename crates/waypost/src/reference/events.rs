//! Every event of the journal.

use super::head;
use kernel::event::{Fact, VERSION};
use serde::Deserialize;
use serde_json::json;

const ABOUT: &str = "\
What the journal holds and `waypost session tail` shows: each event is
`{\"seq\", \"at\", \"v\", \"type\", \"data\"}`, where `at` is in milliseconds since 1970. A type and its
version never change their meaning once they are released.";

/// What each event says, in the words of `kernel::event`.
const MEANINGS: &[(&str, &str)] = &[
    ("session.created", "A session began."),
    ("session.forked", "A session began as a copy of another."),
    ("run.started", "A run began, at its plan's first step."),
    ("run.metered", "What the run uses is counted from here on: an earlier release began it."),
    (
        "run.held",
        "The run reached a limit of its own: a person decides whether it may use as much again.",
    ),
    ("run.claimed", "A process took the run over after a crash."),
    ("run.paused", "Someone asked the run to stop at the next step."),
    ("run.continued", "Someone let it go on."),
    ("run.closing", "The run will end without an answer: from here on no new effect starts."),
    ("run.ended", "The run is over, for good."),
    ("step.chosen", "A `match` or `conditional_branch` chose."),
    ("step.failed", "A step failed before any call."),
    ("event.published", "A step published an event."),
    ("step.skipped", "A person skipped the step."),
    ("step.diverted", "A person said no, and the plan says where that leads."),
    ("step.retried", "A person said try the step again."),
    ("call.requested", "A step wants to call a tool."),
    ("call.judged", "The gate's first half spoke."),
    ("call.started", "The call is about to be sent; from here on it may have happened."),
    ("call.wants", "The call came back and needs something first; it has done nothing yet."),
    (
        "call.resumed",
        "It is about to be sent again, with what it wanted; from here on it may have happened.",
    ),
    ("call.finished", "The call came back."),
    ("call.failed", "The call failed."),
    ("call.late", "A result that came too late to count."),
    ("ask.opened", "A person is asked."),
    ("ask.decided", "A reply won."),
    ("ask.expired", "No one answered in time."),
    ("ask.withdrawn", "The run ended, or the ask was settled otherwise."),
    ("input.given", "A person's answer became input."),
    ("branches.started", "A parallel step began."),
    ("loop.started", "A loop began; its items are pinned."),
    ("item.started", "An iteration began."),
    ("item.failing", "An iteration is failing: what runs inside it is cut off first."),
    (
        "frame.waits",
        "A frame that is answered or failing waits for a call below it that must be known.",
    ),
    ("item.failed", "An iteration failed and its loop collects failures."),
    ("frame.ended", "A branch or iteration came to its end."),
    ("frame.cancelled", "A frame was cut off, because the run or sub-plan was answered elsewhere."),
    ("frames.joined", "All branches or items are done and merged."),
    ("plan.entered", "A plan runs as a step."),
    ("plan.returned", "It came back."),
    ("answer.given", "`final_response`: the answer of the run or of the sub-plan."),
    ("agent.entered", "An agent step began."),
    ("turn.started", "A model is about to be asked; from here on it may cost money."),
    ("turn.failed", "It did not answer, or not in a way that can be used."),
    ("turn.finished", "It answered."),
    (
        "results.given",
        "Calls of the last turn got results without being sent: answers, rejections.",
    ),
    ("talk.compacted", "Older lines of the conversation became a summary."),
    ("agent.answered", "The agent is done."),
    ("timer.set", "A timer runs."),
    ("timer.fired", "A timer fired."),
    ("base.set", "Older runs were removed; what they left."),
];

/// The page.
pub(super) fn page() -> String {
    let mut page = head("Events", ABOUT);
    page.push_str("\n| type | version | what happened |\n|---|---|---|\n");
    for name in types() {
        let found = MEANINGS.iter().find(|(known, _)| *known == name);
        let meaning = found.map(|(_, meaning)| *meaning).unwrap_or_default();
        page.push_str(&format!("| `{name}` | {VERSION} | {meaning} |\n"));
    }
    page
}

/// The types that this release knows, as the reader of a journal knows them: the reader names them
/// all when it meets an unknown one.
fn types() -> Vec<String> {
    let unknown = json!({"type": "", "data": {}});
    let told = Fact::deserialize(unknown).err().map(|error| error.to_string());
    let told = told.unwrap_or_default();
    let (_, list) = told.split_once("expected one of").unwrap_or_default();
    let words = list.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_sentence() {
        let told: Vec<&str> = MEANINGS.iter().map(|(name, _)| *name).collect();
        assert_eq!(types(), told, "write what a new event says into `MEANINGS`");
    }
}
