//! What happens to a task as events of the profile. It knows fewer steps from one state to another
//! than a run takes: where there is none, the task works in between.

use serde_json::{Value, json};
use wire::a2a::task::TaskState;
use wire::a2a::value::Timestamp;
use wire::a2a::vault::state_word;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub(super) name: &'static str,
    pub(super) data: Value,
    /// Nothing comes after it.
    pub(super) is_last: bool,
}

/// A status with what is said about it.
pub(super) struct Status {
    pub(super) state: TaskState,
    /// What the task says in its own message, where it asks.
    pub(super) asks: Option<Value>,
    pub(super) words: Option<String>,
}

/// How far a task is for who follows it.
#[derive(Debug)]
pub(super) struct TaskProgress {
    task: String,
    state: &'static str,
}

impl TaskProgress {
    /// Of a task that begins.
    pub(super) fn new(task: String) -> Self {
        Self { task, state: state_word(TaskState::Submitted) }
    }

    /// Of a task that was reported until it was in this state.
    pub(super) fn at(task: String, state: TaskState) -> Self {
        Self { task, state: state_word(state) }
    }

    /// What a stream begins with.
    pub(super) fn begun(&self, at: Timestamp) -> Frame {
        self.status_frame(at, None)
    }

    pub(super) fn status(&mut self, status: Status, at: Timestamp) -> Vec<Frame> {
        let Status { state, asks, words } = status;
        let word = state_word(state);
        let mut frames = Vec::new();
        if !is_direct(self.state, word) {
            frames.push(self.work(at));
        }
        frames.extend(asks.map(|asks| self.message_frame(asks, at)));
        self.state = word;
        frames.push(Frame { is_last: state.is_terminal(), ..self.status_frame(at, words) });
        frames
    }

    /// The answer: after it the task only ends.
    pub(super) fn answer(&mut self, answer: Value, at: Timestamp) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.state != state_word(TaskState::Working) {
            frames.push(self.work(at));
        }
        frames.push(self.message_frame(answer, at));
        frames
    }

    /// Something that it made. One that asks may make something meanwhile.
    pub(super) fn made(&mut self, artifacts: Vec<Value>, at: Timestamp) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.state == state_word(TaskState::Submitted) {
            frames.push(self.work(at));
        }
        for artifact in artifacts {
            let data = json!({"taskId": self.task, "artifact": artifact, "timestamp": at});
            frames.push(Frame { name: "task_artifact", data, is_last: false });
        }
        frames
    }

    fn work(&mut self, at: Timestamp) -> Frame {
        self.state = state_word(TaskState::Working);
        self.status_frame(at, None)
    }

    fn status_frame(&self, at: Timestamp, message: Option<String>) -> Frame {
        let data = json!({"taskId": self.task, "state": self.state, "timestamp": at,
            "message": message});
        Frame { name: "task_status", data, is_last: false }
    }

    fn message_frame(&self, message: Value, at: Timestamp) -> Frame {
        let data = json!({"taskId": self.task, "message": message, "timestamp": at});
        Frame { name: "task_message", data, is_last: false }
    }
}

/// Whether the profile has a step from one state to the other; to stay is none.
fn is_direct(from: &str, to: &str) -> bool {
    match from {
        "SUBMITTED" | "INPUT_REQUIRED" => to == from || matches!(to, "WORKING" | "CANCELED"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(state: TaskState) -> Status {
        Status { state, asks: None, words: None }
    }

    fn words(frames: &[Frame]) -> Vec<String> {
        let word = |frame: &Frame| match frame.name {
            "task_status" => frame.data["state"].as_str().unwrap().to_owned(),
            other => other.to_owned(),
        };
        frames.iter().map(word).collect()
    }

    #[test]
    fn no_step_is_told_that_the_profile_does_not_have() {
        let at = Timestamp(0);
        let mut course = TaskProgress::new("t".to_owned());
        assert_eq!(words(&[course.begun(at)]), ["SUBMITTED"]);
        let asks = Status {
            asks: Some(json!({})),
            words: Some("go on?".to_owned()),
            ..plain(TaskState::InputRequired)
        };
        let told = course.status(asks, at);
        assert_eq!(words(&told), ["WORKING", "task_message", "INPUT_REQUIRED"]);
        assert_eq!(told[2].data["message"], "go on?");
        assert_eq!(words(&course.made(vec![json!({})], at)), ["task_artifact"]);
        assert_eq!(words(&course.answer(json!({}), at)), ["WORKING", "task_message"]);
        let last = course.status(plain(TaskState::Completed), at);
        assert_eq!((words(&last), last[0].is_last), (vec!["COMPLETED".to_owned()], true));
    }

    #[test]
    fn an_end_is_reached_by_way_of_work_unless_it_is_a_cancellation() {
        for (state, told) in [
            (TaskState::Failed, vec!["WORKING", "FAILED"]),
            (TaskState::Rejected, vec!["WORKING", "FAILED"]),
            (TaskState::Completed, vec!["WORKING", "COMPLETED"]),
            (TaskState::Canceled, vec!["CANCELED"]),
            (TaskState::AuthRequired, vec!["WORKING"]),
        ] {
            for first in [None, Some(TaskState::InputRequired)] {
                let mut course = TaskProgress::new("t".to_owned());
                if let Some(first) = first {
                    course.status(plain(first), Timestamp(0));
                }
                assert_eq!(words(&course.status(plain(state), Timestamp(0))), told);
            }
        }
    }
}
