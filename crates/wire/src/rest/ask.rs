//! Bodies of `/api/v1/asks`: asks and the replies to them, by kind.

use super::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The five kinds of ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskKind {
    /// A question.
    Clarify,
    /// Whether calls may run.
    Approve,
    /// A form.
    Fill,
    /// A URL to open.
    Authorize,
    /// A failed step.
    Fix,
}

impl AskKind {
    /// All of them.
    pub const ALL: [AskKind; 5] =
        [AskKind::Clarify, AskKind::Approve, AskKind::Fill, AskKind::Authorize, AskKind::Fix];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            AskKind::Clarify => "clarify",
            AskKind::Approve => "approve",
            AskKind::Fill => "fill",
            AskKind::Authorize => "authorize",
            AskKind::Fix => "fix",
        }
    }
}

/// Where an ask stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskStatus {
    /// Waits for a reply.
    Open,
    /// A reply won.
    Decided,
    /// No one answered in time.
    Expired,
    /// The run ended first.
    Withdrawn,
}

/// One question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// `ask_..`.
    pub id: String,
    /// Its kind.
    pub kind: AskKind,
    /// The session that asks.
    pub session: AskSession,
    /// The run that asks.
    pub run: String,
    /// The step that asks.
    pub step: String,
    /// The run's plan. Absent in lists for asks that are not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The agent, where the run is a talk with one. Absent where `plan` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The pipeline, where the session is a case of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// One line for an inbox.
    pub title: String,
    /// What is asked, in words.
    pub body: String,
    /// Approve: the calls. Fix: the call that failed. Fill and authorize: the call that wants it,
    /// where it is a tool that asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<AskedCall>,
    /// Clarify: the questions of an agent, each answered by its call. Absent where `body` is the
    /// one question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AskedQuestion>,
    /// Fill: JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Authorize: the URL to open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Fix: what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Fix: how far the call got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["not_sent", "failed", "unknown"]))]
    pub how: Option<String>,
    /// Fix: what can be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<FixAction>,
    /// Fix: the plans that can correct it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<String>,
    /// What follows each answer, as the pinned plan has it. Absent for a failed step, where that is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<AskNext>,
    /// sha256 over exactly what is asked.
    pub digest: String,
    /// Who may answer: `owner` (who the run acts for), `role:x`, `principal:y`; `*` is everyone who
    /// sees it.
    pub may_answer: Vec<String>,
    /// Whether it must be another user than the one who started the run or changed what it does.
    /// Absent for no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
    /// Whether the caller may answer it, as it is now. At `/asks` and `/asks/{id}`, while it is
    /// open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yours: Option<YourAnswer>,
    /// For whom the run acts. Absent in local mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// When it was raised.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When it expires; null for never.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// Where it stands.
    pub status: AskStatus,
    /// The reply that won.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Fix: the rule that holds it. Then it is not in the inbox, and a person need not answer,
    /// but may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldAsk>,
    /// Fix: what rules did about the failed step before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedRule>,
    /// Fix: what a model, or a plan that may not act itself, proposes. `{"action": "..",
    /// "proposal": true}` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposal>,
}

/// Whether the caller may answer an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct YourAnswer {
    /// Whether a reply of the caller would be taken.
    pub answer: bool,
    /// Why not, where it would not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What follows each answer to an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct AskNext {
    /// After a yes, an answer, or a form that is filled in, if nothing fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yes: Option<AskFollows>,
    /// After a no, or if no one answers in time. Absent where a tool asks: it acts upon a no
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no: Option<AskFollows>,
}

/// What follows an answer: a step, or the end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct AskFollows {
    /// The step; at the end of a branch, an iteration or a plan in a plan the step that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Whether the run ends. Absent for no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
}

/// What is proposed about a failed step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The action that takes it.
    pub action: FixAction,
    /// Why, in the words of the model or the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Edit: the whole proposed arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Edit: how they differ from those of the failed call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ProposedChange>,
    /// Correct: the plan that a model wrote, by its id in `plans`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// Correct: that plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Value>,
}

/// One value that proposed arguments change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedChange {
    /// Where, as a JSON Pointer.
    pub path: String,
    /// What stood there; absent where it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What would stand there; absent where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The rule that holds an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldAsk {
    /// Which rule: where it is written, and its number there, such as `step 1`.
    pub rule: String,
    /// What it does: `retry`, `correct`, `propose` or `draft`.
    pub does: String,
    /// The plan, for `correct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The model, for `propose` and `draft`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which try of this rule, from 1.
    #[serde(rename = "try")]
    pub try_no: u32,
    /// How many tries it has.
    pub of: u32,
    /// When it acts.
    #[schemars(extend("format" = "date-time"))]
    pub until: String,
}

/// What a rule, or a person who ran a correction, did about a failed step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedRule {
    /// Which rule; `person` for a correction that a person ran.
    pub rule: String,
    /// What it did: `retry`, `correct`, `propose` or `draft`.
    pub does: String,
    /// The plan, for `correct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The model, for `propose` and `draft`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How often; 0 for a rule that a limit kept from acting, with the limit in `found`.
    pub times: u32,
    /// How often it waited because a circuit breaker refused the call. That is no try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<u32>,
    /// What a correction found that was not acted upon, or what a model proposed: a `reply` as a
    /// proposal (`acts` where it was acted upon), a `plan`, `why`, or the `fault` that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Value>,
}

/// The session of an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskSession {
    /// `ses_..`.
    pub id: String,
    /// The family of endpoints that it belongs to.
    pub space: String,
    /// The client's own key.
    pub key: String,
}

/// One question of an agent inside an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedQuestion {
    /// `call_..`: the answer's key, where there are several.
    pub call_id: String,
    /// The question.
    pub question: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
}

/// A call inside an ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedCall {
    /// `call_..`.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Exactly the arguments that would be, or were, sent.
    pub arguments: Value,
    /// The tool's title, as the call pins it. At `/asks` while the ask is open and at `/asks/{id}`,
    /// for callers who see the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the call does to the world, as it pins it. Absent where the call pins nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["reads", "writes", "runs"]))]
    pub reach: Option<String>,
    /// Whether it may be repeated under its key, as it pins it. Absent where `reach` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// JSON Schema of its arguments, where `title` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// Approve: who wants it to be asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<AskWhy>,
}

/// Who wants a call to be asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct AskWhy {
    /// `plan` (`approve: true`), `agent` (its `approve`), or `policy`, also where others want it
    /// too.
    #[schemars(extend("enum" = ["plan", "agent", "policy"]))]
    pub by: String,
    /// The text of the policy's `@ask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
}

/// A reply that won: who, when, what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Who answered.
    pub by: String,
    /// When.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// What, with its `kind`.
    pub reply: Value,
    /// By which kind of endpoint: `rest`, `run`, `mcp`, `a2a`, `rpc` or `pipeline`. Absent for
    /// rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// What can be done about a failed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FixAction {
    /// Once more, as it was.
    Retry,
    /// Once more, with other arguments.
    Edit,
    /// Continue without it.
    Skip,
    /// End the run as failed.
    Abort,
    /// It did happen; here is its result.
    Settle,
    /// Run a plan that finds out what to do.
    Correct,
    /// Ask a model what could be done. Only rules do that.
    Propose,
}

/// To a question; `decline` gives no answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClarifyReply {
    /// `decline` to give no answer; `accept` is understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<FillAction>,
    /// The answer; for several questions of an agent an object of texts by call id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

/// To an approval: one decision for each call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveReply {
    /// The decisions.
    pub decisions: Vec<CallDecision>,
}

/// One call's decision inside an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallDecision {
    /// `call_..`.
    pub call_id: String,
    /// Whether it may run.
    pub approve: bool,
    /// The person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The whole edited arguments, if the person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// What a person does with a form or a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum FillAction {
    /// Answers it.
    Accept,
    /// Does not.
    Decline,
}

/// To a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FillReply {
    /// Whether it is answered.
    pub action: FillAction,
    /// The answer, by the ask's schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// What a person does with a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum AuthorizeAction {
    /// It is done.
    Done,
    /// It will not be done.
    Decline,
}

/// To a URL to open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthorizeReply {
    /// Whether it was done.
    pub action: AuthorizeAction,
    /// The code that the page showed at its end, for `done`, where it is a login of the caller's
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// To a failed step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixReply {
    /// What to do.
    pub action: FixAction,
    /// The whole edited arguments, for `edit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The output, for `skip` and `settle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// One of the ask's `plans`, for `correct`.
    #[serde(default, rename = "planId", skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// Whether to take what the ask proposes, for `edit` and `correct`, without the other members.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposal: bool,
}

/// `POST /asks/{id}`: the reply, by kind of ask.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub enum AskReply {
    /// To a question.
    Clarify(ClarifyReply),
    /// To an approval.
    Approve(ApproveReply),
    /// To a form.
    Fill(FillReply),
    /// To a URL to open.
    Authorize(AuthorizeReply),
    /// To a failed step.
    Fix(FixReply),
}
