//! Bodies of `/run` and `/resume`.

use crate::rest::FaultyValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::thread::{
    ApprovalOutcome, ClarificationInfo, PendingAction, RejectedToolFeedback, RequestState,
    ToolCallInfo,
};

/// What is said to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunThread {
    /// The conversation: any text of the client's.
    pub thread_id: String,
    /// What is wanted, in words.
    pub user_request: String,
    /// The agent; the realm's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Answers to what a thread waits for: one of the three lists, which covers one or more whole asks.
/// All of them count, or none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeThread {
    /// The conversation.
    pub thread_id: String,
    /// Answers to questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clarification_responses: Option<Vec<ClarificationResponse>>,
    /// Decisions about calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<Vec<Approval>>,
    /// The answers to forms and pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_responses: Option<Vec<ElicitationResponse>>,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClarificationResponse {
    /// As in `pending_action.clarifications`.
    pub call_id: String,
    /// The answer.
    pub response: String,
}

/// The decision about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// As in `pending_action.tool_calls`.
    pub call_id: String,
    /// Whether it may run.
    pub approved: bool,
    /// Why not; needed where it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The whole edited arguments, where it may run with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// The answer to one form or page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ElicitationResponse {
    /// As in `pending_action`.
    pub elicitation_id: String,
    /// What the person did with it.
    pub action: ElicitationAction,
    /// The form's content, for `accept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// What a person does with a form or a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ElicitationAction {
    /// Fills it in; opens it and does what it asks.
    Accept,
    /// Does not want to.
    Decline,
    /// Puts it away, which is no more than a no.
    Cancel,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThreadStatus {
    /// It is done.
    Success,
    /// A person is asked.
    ClarificationRequired,
    /// A person is asked whether calls may run.
    ConfirmationRequired,
    /// A person is asked to fill in a form.
    FormRequired,
    /// A person is asked to open a page, such as a login.
    OauthRequired,
    /// It takes longer than the client waits.
    Running,
    /// It failed.
    Error,
}

/// What `/run` and `/resume` answer: always all keys, null where one means nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadAnswer {
    /// Where it stands.
    pub status: ThreadStatus,
    /// The answer in words.
    pub response: Option<String>,
    /// The conversation, while it continues.
    pub thread_id: Option<String>,
    /// What someone has to do.
    pub pending_action: Option<PendingAction>,
    /// The page to open.
    pub url: Option<String>,
    /// What it is about, in words.
    pub message: Option<String>,
}

impl ThreadAnswer {
    /// An answer that says no more than this.
    pub fn new(status: ThreadStatus) -> Self {
        Self {
            status,
            response: None,
            thread_id: None,
            pending_action: None,
            url: None,
            message: None,
        }
    }
}

/// An error of `/run` and `/resume`: the keys of an answer, and more; a conflict carries more
/// members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadError {
    /// `error`.
    pub status: ThreadStatus,
    /// Null.
    #[schemars(with = "()")]
    pub response: Option<String>,
    /// Null.
    #[schemars(with = "()")]
    pub thread_id: Option<String>,
    /// Null.
    #[schemars(with = "()")]
    pub pending_action: Option<PendingAction>,
    /// Null.
    #[schemars(with = "()")]
    pub url: Option<String>,
    /// Who failed and why.
    pub message: String,
    /// A stable word for programs.
    pub code: String,
    /// What to do.
    pub hint: Option<String>,
    /// The faulty values, if it is about values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FaultyValue>,
    /// What to look for in the server's log.
    pub trace_id: String,
    /// More for programs: the open asks, the winning decision.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The data of a `delta` event: more text of a turn that is being made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadDelta {
    /// Which turn.
    #[schemars(range(min = 1))]
    pub turn: u32,
    /// Which attempt at it.
    #[schemars(range(min = 1))]
    pub attempt: u32,
    /// The text.
    pub text: String,
}

/// The data of a `restarted` event: what was heard of this turn is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRestart {
    /// Which turn.
    #[schemars(range(min = 1))]
    pub turn: u32,
    /// Which attempt begins now.
    #[schemars(range(min = 2))]
    pub attempt: u32,
}

/// The data of a `tool_result` event; that of `tool_call` is a `ToolCallInfo`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// Its output, or what a person said to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_has_all_keys() {
        let answer = ThreadAnswer {
            response: Some("done".to_owned()),
            ..ThreadAnswer::new(ThreadStatus::Success)
        };
        let expected = json!({"status": "success", "response": "done", "thread_id": null,
            "pending_action": null, "url": null, "message": null});
        assert_eq!(serde_json::to_value(answer).unwrap(), expected);
    }

    #[test]
    fn a_pending_action_names_its_kind() {
        for (kind, action) in [
            ("clarification", PendingAction::Clarification { clarifications: Vec::new() }),
            ("confirmation", PendingAction::Confirmation { tool_calls: Vec::new() }),
            (
                "form_elicitation",
                PendingAction::FormElicitation {
                    elicitation_id: "e".to_owned(),
                    schema: json!({}),
                    message: "m".to_owned(),
                },
            ),
            (
                "oauth_url",
                PendingAction::OauthUrl {
                    elicitation_id: "e".to_owned(),
                    url: "u".to_owned(),
                    message: "m".to_owned(),
                },
            ),
        ] {
            assert_eq!(serde_json::to_value(action).unwrap()["kind"], kind);
        }
    }

    #[test]
    fn a_misspelt_list_is_refused() {
        let body = json!({"thread_id": "t", "aprovals": []});
        let error = serde_json::from_value::<ResumeThread>(body).unwrap_err().to_string();
        assert!(error.starts_with("unknown field `aprovals`"), "{error}");
    }
}
