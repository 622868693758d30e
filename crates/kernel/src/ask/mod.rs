//! Asks and replies: all that a person can be asked, and what they can answer. When a run asks is
//! decided in `decide`; who may answer is policy's.

pub mod remedy;
pub mod form_defaults;
pub mod proposal;
pub mod reply;
pub mod correction;
pub mod context;

use crate::ask::context::{CallDetails, NextSteps};
use crate::ask::remedy::{RemedyAttempt, RuleHold};
use crate::tool::call::CallProgress;
use crate::values::caller::Caller;
use crate::values::canonical;
use crate::values::fault::Fault;
use crate::values::ids::{
    AskId, CallId, ContentHash, FrameId, Millis, PlanId, RealmId, RunId, SessionId, StepId,
    ToolName,
};
use crate::values::named_enum::named;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

pub use crate::values::caller::Answerers;

/// One question to a person: durable, shown and answerable from the moment it is raised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    pub id: AskId,
    pub run: RunId,
    /// The frame that waits.
    pub frame: FrameId,
    pub step: StepId,
    /// One line for an inbox.
    pub title: String,
    pub body: AskBody,
    /// sha256 over exactly what is asked.
    pub digest: ContentHash,
    /// When it was raised.
    pub created_at: Millis,
    /// When it expires, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Millis>,
    /// The call that wants it, where it is a tool that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<InputSource>,
    /// Who may answer, if a policy narrowed that; `None` leaves it to policy in general.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answerers: Option<Answerers>,
    /// For whom its run acts; no one in local mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Arc<str>>,
    /// The rule that holds it: then it is not a person's yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<RuleHold>,
    /// What rules did about the failed step before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<RemedyAttempt>,
    /// What follows each answer.
    #[serde(default, skip_serializing_if = "NextSteps::is_empty")]
    pub next: NextSteps,
    /// Details of the calls that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<CallDetails>,
}

/// The subject that a run acts for, among those who may answer what it asks.
pub const OWNER: &str = "owner";

/// sha256 over exactly what is asked: where, what, on whose behalf. `more` is what the body does
/// not show, such as the hash of a tool's spec.
pub fn digest(
    realm: &RealmId,
    session: SessionId,
    run: RunId,
    step: &StepId,
    body: &AskBody,
    more: &[u8],
    by: &str,
) -> ContentHash {
    canonical::digest(&json!({
        "realm": realm,
        "session": session,
        "run": run,
        "step": step,
        "ask": body,
        "more": String::from_utf8_lossy(more),
        "onBehalfOf": by,
    }))
}

/// The five kinds of ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum AskBody {
    /// A question.
    Clarify {
        /// The question; all of them in one text where there are several.
        message: String,
        /// The questions of an agent's turn, each with its call. A reply answers all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        questions: Vec<Question>,
    },
    /// Whether these calls may run.
    Approve {
        /// The calls, with exactly the arguments that would be sent.
        calls: Vec<AskedCall>,
    },
    /// A form.
    Fill {
        /// What the form is for.
        message: String,
        /// JSON Schema of the answer.
        schema: Arc<Value>,
    },
    /// A URL to open, such as a login.
    Authorize { message: String, url: String },
    /// A failed step.
    Fix {
        fault: Fault,
        /// The call that failed, if it was a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<AskedCall>,
        /// How far it got.
        how: CallProgress,
        /// What can be done.
        actions: Vec<FixAction>,
        /// The plans that can correct it, for `correct`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        plans: Vec<PlanId>,
    },
}

impl AskBody {
    /// The kind's name in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            AskBody::Clarify { .. } => "clarify",
            AskBody::Approve { .. } => "approve",
            AskBody::Fill { .. } => "fill",
            AskBody::Authorize { .. } => "authorize",
            AskBody::Fix { .. } => "fix",
        }
    }
}

/// One question of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The call by which it asks.
    pub call_id: CallId,
    pub question: String,
    #[serde(default)]
    pub context: String,
}

/// A call inside an ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedCall {
    pub call_id: CallId,
    pub tool: ToolName,
    /// The resolved arguments.
    pub arguments: Arc<Value>,
}

/// Which call wants what is asked: the answer goes to its tool, under the tool's own key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputSource {
    pub call: AskedCall,
    /// The tool's key for it.
    pub key: String,
}

impl InputSource {
    /// What an ask's digest covers of it: `more` of [`digest`].
    pub fn digested(&self) -> Vec<u8> {
        canonical::digest(&json!(self)).as_str().as_bytes().to_vec()
    }
}

named! {
    /// What can be done about a failed step.
    FixAction {
        /// Once more, as it was.
        Retry = "retry",
        /// Once more, with other arguments.
        Edit = "edit",
        /// Continue without it; its output is what is given, else null.
        Skip = "skip",
        /// End the run as failed.
        Abort = "abort",
        /// It did happen; here is its result.
        Settle = "settle",
        /// Run a plan that finds out what to do.
        Correct = "correct",
        /// Ask a model what could be done. Only rules do that.
        Propose = "propose",
    }
}

/// A person's answer, by kind of ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Reply {
    /// To a question.
    Clarify {
        /// The answer; `None` declines. An object of texts by call id where there are several
        /// questions, or one with an id.
        answer: Option<Value>,
    },
    /// To an approval: one decision per call.
    Approve { decisions: Vec<CallDecision> },
    /// To a form.
    Fill {
        /// The content; `None` declines.
        content: Option<Value>,
    },
    /// To a URL: whether it was done.
    Authorize {
        /// Done, or declined.
        done: bool,
    },
    /// To a failed step.
    Fix {
        action: FixAction,
        /// The whole edited arguments, for `edit`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Arc<Value>>,
        /// The output, for `skip` and `settle`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// The plan, for `correct`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan_id: Option<PlanId>,
    },
}

impl Reply {
    /// Whether it changes what the run does: edited arguments, an output in the place of a call's,
    /// a form that is filled in. Who gives it has a hand in the run.
    pub fn changes(&self) -> bool {
        match self {
            Self::Approve { decisions } => decisions.iter().any(|one| one.arguments.is_some()),
            Self::Fill { content } => content.is_some(),
            Self::Fix { arguments, output, .. } => arguments.is_some() || output.is_some(),
            Self::Clarify { .. } | Self::Authorize { .. } => false,
        }
    }
}

/// One call's decision inside an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallDecision {
    pub call_id: CallId,
    /// Whether it may run.
    pub approve: bool,
    /// The person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The whole edited arguments, if the person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Arc<Value>>,
}

/// A reply that won: who, when, what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    pub by: Arc<str>,
    pub at: Millis,
    pub reply: Reply,
    /// The actor, if it is not the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Arc<str>>,
    /// Makers of the key that the reply came with, except the subject itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makers: Vec<Arc<str>>,
    /// By which kind of endpoint the reply came in, such as `rest`, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Arc<str>>,
}

impl Decision {
    /// The reply of this subject, which came with no key of others.
    pub fn new(by: impl Into<Arc<str>>, at: Millis, reply: Reply) -> Self {
        Self { by: by.into(), at, reply, actor: None, makers: Vec::new(), via: None }
    }

    pub fn of(caller: &Caller, at: Millis, reply: Reply) -> Self {
        let by = caller.subject.clone();
        let actor = caller.actor.clone();
        let makers = caller.makers.subjects().cloned().collect();
        Self { by, at, reply, actor, makers, via: caller.via.kind().map(Arc::from) }
    }
}

named! {
    /// Where an ask stands.
    AskStatus {
        /// Waits for a reply.
        Open = "open",
        /// A reply won.
        Decided = "decided",
        /// No one answered in time.
        Expired = "expired",
        /// The run ended first.
        Withdrawn = "withdrawn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::caller::Via;

    /// A question that says only what every ask says.
    const PLAIN: &str = concat!(
        r#"{"id":"ask_00000000000000000000000000000004","#,
        r#""run":"run_00000000000000000000000000000007","frame":1,"step":"work","#,
        r#""title":"go on?","body":{"kind":"clarify","message":"go on?"},"#,
        r#""digest":"d","createdAt":5}"#,
    );

    #[test]
    fn an_ask_that_names_nobody_is_for_everyone() {
        let ask: Ask = serde_json::from_str(PLAIN).unwrap();
        assert_eq!((&ask.answerers, &ask.subject), (&None, &None));
        assert_eq!((&ask.held, ask.tried.len()), (&None, 0));
        assert!(ask.next.is_empty() && ask.about.is_empty());
        assert_eq!(serde_json::to_string(&ask).unwrap(), PLAIN, "nothing is added");
    }

    #[test]
    fn answerers_round_trip_through_json() {
        let lists = vec![vec!["role:lead".to_owned(), "principal:eve".to_owned()]];
        let ask = Ask {
            answerers: Some(Answerers { lists, other: true, ..Answerers::default() }),
            subject: Some("ann".into()),
            ..serde_json::from_str(PLAIN).unwrap()
        };
        let text = serde_json::to_string(&ask).unwrap();
        let written = r#""answerers":{"lists":[["role:lead","principal:eve"]],"other":true}"#;
        assert!(text.contains(written), "{text}");
        assert_eq!(serde_json::from_str::<Ask>(&text).unwrap(), ask);
    }

    #[test]
    fn a_decision_keeps_the_kind_of_its_door_where_it_came_by_one() {
        let ruled = r#"{"by":"ann","at":5,"reply":{"kind":"authorize","done":true}}"#;
        let read: Decision = serde_json::from_str(ruled).unwrap();
        assert_eq!(read.via, None);
        assert_eq!(serde_json::to_string(&read).unwrap(), ruled, "nothing is added");
        let via = Via::new("mcp /mcp".to_owned(), None);
        let ann = Caller { via, ..Caller::new("default", "ann") };
        let decision = Decision::of(&ann, Millis(5), Reply::Authorize { done: true });
        let text = serde_json::to_string(&decision).unwrap();
        assert!(text.ends_with(r#","via":"mcp"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Decision>(&text).unwrap(), decision);
    }

    #[test]
    fn replies_that_edit_settle_or_fill_in_count_as_changes() {
        let changes =
            |reply: serde_json::Value| serde_json::from_value::<Reply>(reply).unwrap().changes();
        let call = CallId(1);
        for (decisions, expected) in [
            (json!([{"callId": call, "approve": true}]), false),
            (json!([{"callId": call, "approve": true, "arguments": {}}]), true),
        ] {
            assert_eq!(changes(json!({"kind": "approve", "decisions": decisions})), expected);
        }
        assert!(changes(json!({"kind": "fix", "action": "settle", "output": 1})));
        assert!(changes(json!({"kind": "fix", "action": "edit", "arguments": {}})));
        assert!(!changes(json!({"kind": "fix", "action": "retry"})));
        assert!(changes(json!({"kind": "fill", "content": {}})));
        assert!(!changes(json!({"kind": "fill", "content": null})));
        assert!(!changes(json!({"kind": "clarify", "answer": "yes"})));
    }
}
