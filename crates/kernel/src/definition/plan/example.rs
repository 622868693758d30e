//! Examples of a plan: runs with stubs and their expected outcome.

use crate::ask::FixAction;
use crate::tool::call::CallProgress;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One run of a plan that must come out as told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    pub name: String,
    /// The run's input.
    #[serde(default)]
    pub input: Value,
    /// For a correction, instead of an input: the failure that it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExampleError>,
    /// What people answer, in order of asking.
    #[serde(default)]
    pub replies: Vec<Value>,
    /// What the model answers; for agent steps.
    #[serde(default)]
    pub model: Vec<Value>,
    /// What tools of other servers answer, by tool: one stub for each call, in order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stubs: BTreeMap<String, Vec<Stub>>,
    /// What must come out.
    pub expect: Expect,
}

/// The answer to one call of a tool that an example stands in for: a fault, else a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stub {
    /// The tool's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why the call fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<StubFault>,
    /// How long the call takes, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// Why a call fails that an example stands in for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StubFault {
    /// The HTTP status with which the server answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How far the call got; `failed` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<CallProgress>,
}

/// What an example expects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The status at `/sessions`: `completed`, `failed`, `paused_on_error`, `paused_on_human`.
    pub status: String,
    /// The answer, if it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// `lastError.name`, if it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The failure of a step, as an example of a correction writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExampleError {
    /// The fault's name.
    pub name: String,
    #[serde(default)]
    pub message: String,
    /// How far the call got.
    #[serde(default = "failed")]
    pub how: CallProgress,
    /// The tool of the failed call; none if the step made no call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The plan of the failed step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// The failed step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// How often it was tried.
    #[serde(default = "once")]
    pub tries: u32,
}

fn failed() -> CallProgress {
    CallProgress::Failed
}

fn once() -> u32 {
    1
}

impl Example {
    /// Input of its run; `null` without one.
    pub fn begins_with(&self) -> Value {
        match (&self.error, &self.input) {
            (Some(error), _) => error.input(),
            (None, Value::Null) => Value::Object(Map::new()),
            (None, input) => input.clone(),
        }
    }
}

impl ExampleError {
    /// What a correction of this failure is given.
    pub fn input(&self) -> Value {
        json!({
            "planId": self.plan_id.as_deref().unwrap_or("example/plan"),
            "stepId": self.step_id.as_deref().unwrap_or("step"),
            "tool": self.tool,
            "error": {"name": self.name, "message": self.message},
            "how": self.how,
            "arguments": self.arguments,
            "tries": self.tries,
        })
    }

    /// What could be done about it.
    pub fn actions(&self) -> Vec<FixAction> {
        let all = [FixAction::Retry, FixAction::Skip, FixAction::Abort];
        let of_calls = [FixAction::Edit, FixAction::Settle];
        let calls = of_calls.into_iter().filter(|_| self.tool.is_some());
        all.into_iter().chain(calls).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_shows_a_failure_as_a_correction_receives_it() {
        let read = |value: Value| serde_json::from_value::<Example>(value).unwrap();
        let expect = json!({"status": "completed"});
        let error = json!({"name": "Boom", "tool": "a", "arguments": {"n": 1}, "stepId": "pay",
                           "how": "unknown"});
        let example = read(json!({"name": "x", "error": error, "expect": expect}));
        assert_eq!(
            example.begins_with(),
            json!({"planId": "example/plan", "stepId": "pay", "tool": "a", "how": "unknown",
                   "error": {"name": "Boom", "message": ""}, "arguments": {"n": 1}, "tries": 1})
        );
        assert_eq!(example.error.unwrap().actions().len(), 5);
        let step = read(json!({"name": "x", "error": {"name": "Boom"}, "expect": expect}));
        assert_eq!(step.error.unwrap().actions().len(), 3);
        assert_eq!(read(json!({"name": "x", "expect": expect})).begins_with(), json!({}));
    }
}
