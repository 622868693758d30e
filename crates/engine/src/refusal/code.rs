//! The codes of refusals: what each is called on the wire, which kind it has, and what it carries
//! for programs. Code matches on the variant and its data; only endpoints write the name and the
//! detail.

use kernel::ask::{Ask, AskBody, AskStatus, Decision};
use kernel::session::RunStatus;
use kernel::tool::call::{Abilities, RawFailure};
use kernel::values::caller::Act;
use kernel::values::ids::{AgentName, AskId, RunId};
use serde_json::{Value, json};

/// What kind of refusal it is; endpoints map it to a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// It cannot be parsed or contradicts itself (400).
    BadRequest,
    /// It parses but has the wrong shape (422).
    WrongShape,
    /// There is none, or it is another realm's (404).
    NotFound,
    /// It contradicts the present state (409).
    Conflict,
    /// It is gone for good (410).
    Gone,
    /// Policy says no (403).
    Forbidden,
    /// Too large (413).
    TooLarge,
    /// Too many at once (429).
    TooMany,
    /// No room on the disk (507).
    NoRoom,
    /// Not now (503).
    Unavailable,
    /// Our fault (500).
    Failed,
    /// A tool or upstream failed (502).
    Upstream,
}

/// One line for each code: the variant with its data, its name on the wire, its kind. Two variants
/// may share a name where they differ in what they carry, or in their kind.
macro_rules! codes {
    ($($(#[$doc:meta])+ $variant:ident $(($($data:ty),+))? => $name:literal, $kind:ident;)+) => {
        /// Why the engine refuses. Large data is boxed: every fallible call returns a refusal.
        #[derive(Debug, Clone, PartialEq)]
        pub enum RefusalCode {
            $($(#[$doc])+ $variant $(($($data),+))?,)+
        }

        impl RefusalCode {
            /// Its stable name on the wire, such as `ask_decided`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }

            /// What kind of refusal it is.
            pub fn kind(&self) -> RefusalKind {
                match self {
                    $(Self::$variant { .. } => RefusalKind::$kind,)+
                }
            }
        }
    };
}

codes! {
    /// There is no such thing, or it is another realm's.
    NotFound => "not_found", NotFound;
    /// The same of a run.
    NoRun(RunId) => "not_found", NotFound;

    /// A session of this key exists already.
    SessionExists => "session_exists", Conflict;
    /// The disk is full.
    DiskFull => "disk_full", NoRoom;
    /// The store has too much to write.
    StoreBusy => "store_busy", TooMany;
    /// The process has no file descriptor left.
    NoDescriptors => "no_descriptors", Unavailable;
    /// Memory and store differ: the session is read again.
    SessionReloading => "session_reloading", Unavailable;
    /// What is stored cannot be read.
    Unreadable => "unreadable", Failed;
    /// What should be stored cannot be written as JSON.
    Unwritable => "unwritable", Failed;
    /// The events after this cursor were removed.
    CursorGone => "cursor_gone", Gone;
    /// This is no cursor of ours.
    BadCursor => "bad_cursor", BadRequest;
    /// The store is closed, or being closed.
    Closing => "closing", Unavailable;
    /// The realm was removed: it is like one that may not be entered.
    RealmRemoved => "realm_not_allowed", Forbidden;
    /// The audit of the realm cannot be continued, so nothing is done that it would have to keep.
    AuditBroken => "audit_broken", Unavailable;
    /// The store failed.
    StoreFailed => "store_failed", Failed;
    /// The server is stopping.
    Stopping => "stopping", Unavailable;
    /// The task that drives the session ended.
    DriverEnded => "driver_ended", Failed;
    /// A fact came without a session, which is our own mistake.
    NoSession => "no_session", Failed;
    /// Too many commands wait for the session.
    SessionBusy => "session_busy", TooMany;
    /// Too many sessions are driven at once.
    RunsActiveMax(Box<Quota>) => "runs_active_max", TooMany;
    /// So much is stored that nothing new begins.
    StoredBytesMax(Box<Quota>) => "stored_bytes_max", TooMany;
    /// Too many runs of the context are active.
    ContextRunsMax => "context_runs_max", TooMany;
    /// Too many requests wait for the case.
    CaseBusy => "case_busy", TooMany;
    /// The client's id of a session is not allowed.
    BadSessionId => "bad_session_id", WrongShape;
    /// The session cannot be removed while sinks have not passed its events.
    EventsUnsent => "events_unsent", Conflict;
    /// Only a sink that is not configured is forgotten.
    SinkConfigured => "sink_configured", Conflict;

    /// Another run of the session is active.
    RunActive(Box<ActiveRun>) => "run_active", Conflict;
    /// The session cannot be removed while it has an active run.
    SessionInUse => "run_active", Conflict;
    /// The run has ended.
    RunOver => "run_over", Conflict;
    /// The run waits for something else than logins.
    NoLogin => "no_login", Conflict;
    /// The input does not fit; the ask is the one that stays open, if it was a reply.
    InputMisfit(Option<Box<Ask>>) => "input_misfit", WrongShape;

    /// The ask is of another step.
    AskMismatch => "ask_mismatch", BadRequest;
    /// Several asks are open, and none is named.
    AskAmbiguous(Vec<Ask>) => "ask_ambiguous", Conflict;
    /// Several failed steps could be tried again.
    RetryAmbiguous(Vec<Ask>) => "ask_ambiguous", Conflict;
    /// Nothing is open; this ask was decided last.
    NoOpenAsk(Option<Box<(AskId, Decision)>>) => "no_open_ask", Conflict;
    /// No step of the run failed.
    NothingToRetry(RunId, RunStatus) => "no_open_ask", Conflict;
    /// Another reply won.
    AskDecided(Box<ClosedAsk>) => "ask_decided", Conflict;
    /// No one answered in time.
    AskExpired(Box<ClosedAsk>) => "expired", Conflict;
    /// The run ended first.
    AskWithdrawn(Box<ClosedAsk>) => "withdrawn", Conflict;
    /// The store has it open, the session has not.
    AskBusy(Box<ClosedAsk>) => "ask_busy", Conflict;
    /// A call is rejected without a word to the model.
    FeedbackMissing(Box<Ask>) => "feedback_missing", BadRequest;
    /// The gate refuses edited arguments.
    EditRefused => "edit_refused", WrongShape;
    /// The reply does not decide exactly the calls of the ask.
    CallsMismatch(Box<Ask>) => "calls_mismatch", BadRequest;
    /// The reply is one for another kind of ask.
    OtherKind(Box<Ask>) => "other_kind", BadRequest;
    /// The failed step does not offer this action.
    BadAction(Box<Ask>) => "bad_action", WrongShape;
    /// The same of a call whose outcome is not known: the action might do it twice.
    UnsafeAction(Box<Ask>) => "bad_action", Conflict;
    /// More asks are answered at once than one append holds.
    TooManyReplies => "too_many_replies", WrongShape;
    /// One ask is answered twice in one request.
    AnsweredTwice => "answered_twice", BadRequest;
    /// The answered asks are of several runs.
    SeveralRuns => "several_runs", BadRequest;
    /// No ask is answered.
    NoReplies => "no_replies", BadRequest;

    /// The session has no such event.
    BadForkPoint => "bad_fork_point", WrongShape;
    /// The session no longer has the event.
    ForkPointGone => "fork_point_gone", Gone;
    /// The journal is too long to be copied.
    ExportEventsMax => "export_events_max", TooLarge;
    /// Too many sessions are exported at once.
    ExportsActiveMax(Box<Quota>) => "too_many_exports", TooMany;
    /// The blob is too large to be given as a whole.
    BlobTooLarge => "blob_too_large", TooLarge;

    /// The plan is invalid.
    InvalidPlan => "invalid_plan", WrongShape;
    /// A plan names another plan that is gone.
    PlanMissing => "plan_missing", Conflict;
    /// A plan reaches too many plans.
    ClosurePlansMax => "closure_plans_max", WrongShape;
    /// The agent is invalid.
    InvalidAgent => "invalid_agent", WrongShape;
    /// A plan names an agent that is gone.
    AgentMissing => "agent_missing", Conflict;
    /// The agent is in a file, so it cannot be stored or removed.
    AgentInFile => "agent_in_file", Conflict;
    /// The plan is in a file, so it cannot be removed.
    PlanInFile => "plan_in_file", Conflict;
    /// There are several models, and none is named, or there is none.
    ModelNeeded(Vec<String>) => "model_needed", BadRequest;
    /// The model did not answer, or will not.
    ModelFailed => "model_failed", Upstream;
    /// The goal of a plan is empty or too long, or a pattern of its tools is wrong.
    BadDraft => "bad_draft", WrongShape;
    /// There is no agent to talk to.
    NoAgent => "no_agent", NotFound;
    /// There are several agents, and none is named.
    AgentNeeded(Vec<AgentName>) => "agent_needed", BadRequest;
    /// It was stored in another version meanwhile.
    VersionConflict => "version_conflict", Conflict;

    /// The gate refuses the call.
    Refused => "refused", WrongShape;
    /// Policy refuses the call.
    PolicyDenied => "policy_denied", Forbidden;
    /// Policy does not allow this act.
    Forbidden(Act) => "forbidden", Forbidden;
    /// The scopes of the credential do not cover this act.
    OutOfScope(Act) => "forbidden", Forbidden;
    /// It needs an approval as a whole, and only calls of tools can be approved.
    ApprovalNeeded => "approval_needed", Forbidden;
    /// No plan can be made to call the tool.
    DirectCall => "direct_call", Failed;
    /// The tool failed, with what its own side said of it.
    ToolFailed(Option<Box<RawFailure>>) => "tool_failed", Upstream;
    /// The caller lacks what the tool needs.
    CallerLacks(Abilities) => "caller_lacks", Upstream;
    /// The caller calls too often.
    RateLimited(Box<TryLater>) => "rate_limited", TooMany;
    /// Too many calls run at once.
    TooManyCalls(Box<TryLater>) => "too_many_calls", TooMany;
    /// The calls before it failed, and calls are refused for a while.
    CircuitOpen(Box<TryLater>) => "circuit_open", Unavailable;

    /// This is no Idempotency-Key.
    BadIdempotencyKey => "bad_idempotency_key", BadRequest;
    /// The key was used for another request.
    IdempotencyMismatch => "idempotency_mismatch", WrongShape;
    /// What the key did was removed.
    ResultGone => "gone", Gone;

    /// The realm has a sink of this name already.
    SinkExists => "sink_exists", Conflict;
    /// The event was removed.
    EventGone => "event_gone", Gone;
}

impl RefusalCode {
    /// What programs can read of it on the wire, beside its name.
    pub fn detail(&self) -> Option<Value> {
        let detail = match self {
            Self::RunActive(active) => active.detail(),
            Self::InputMisfit(Some(ask))
            | Self::FeedbackMissing(ask)
            | Self::CallsMismatch(ask)
            | Self::OtherKind(ask) => json!({"ask": outline(ask)}),
            Self::BadAction(ask) | Self::UnsafeAction(ask) => {
                json!({"ask": outline(ask), "actions": actions(ask)})
            }
            Self::AskAmbiguous(asks) => json!({"asks": outlines(asks)}),
            Self::RetryAmbiguous(asks) => {
                let step =
                    |ask: &Ask| json!({"askId": ask.id, "stepId": ask.step, "title": ask.title});
                json!({"asks": asks.iter().map(step).collect::<Vec<_>>()})
            }
            Self::NoOpenAsk(Some(last)) => {
                let (ask, decision) = &**last;
                json!({"askId": ask, "decision": shown(decision)})
            }
            Self::NothingToRetry(run, status) => json!({"run": run, "status": status}),
            Self::AskDecided(closed) => closed.detail(AskStatus::Decided),
            Self::AskExpired(closed) => closed.detail(AskStatus::Expired),
            Self::AskWithdrawn(closed) => closed.detail(AskStatus::Withdrawn),
            Self::AskBusy(closed) => closed.detail(AskStatus::Open),
            Self::AgentNeeded(agents) => json!({"agents": agents}),
            Self::ModelNeeded(models) => json!({"models": models}),
            Self::Forbidden(act) => json!({"act": act}),
            Self::OutOfScope(act) => json!({"act": act, "scope": act.scope()}),
            // `{result: ..}` or `{error: ..}`.
            Self::ToolFailed(Some(said)) => json!(said),
            Self::CallerLacks(lacks) => json!(lacks),
            Self::RateLimited(later) | Self::TooManyCalls(later) | Self::CircuitOpen(later) => {
                later.detail()
            }
            _ => return None,
        };
        Some(detail)
    }

    /// In how many milliseconds to try again, where that is known.
    pub fn retry_ms(&self) -> Option<u64> {
        match self {
            Self::RateLimited(later) | Self::TooManyCalls(later) | Self::CircuitOpen(later) => {
                Some(later.retry_ms)
            }
            _ => None,
        }
    }

    /// What the caller has used up, where it is known how much it may use.
    pub fn quota(&self) -> Option<Quota> {
        match self {
            Self::RunsActiveMax(quota)
            | Self::StoredBytesMax(quota)
            | Self::ExportsActiveMax(quota) => Some(**quota),
            Self::RateLimited(later) | Self::TooManyCalls(later) | Self::CircuitOpen(later) => {
                later.quota
            }
            _ => None,
        }
    }
}

/// How much a caller may use of something. It has used that up, or there is nothing left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Of what, as a word for programs.
    pub of: &'static str,
    /// How much, in the caller's own numbers: never what others use.
    pub max: u64,
    /// In how many seconds; none where it is how much is under way at the same time.
    pub window_s: Option<u64>,
}

/// The run that keeps another one from starting.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveRun {
    /// The run.
    pub run: RunId,
    /// Where it stands.
    pub status: RunStatus,
    /// What it asks.
    pub asks: Vec<Ask>,
}

impl ActiveRun {
    /// The same on the wire.
    pub fn detail(&self) -> Value {
        json!({"run": self.run, "status": self.status, "asks": outlines(&self.asks)})
    }
}

/// An ask that takes no reply any more.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedAsk {
    /// The ask.
    pub ask: AskId,
    /// The reply that won, if one did.
    pub decision: Option<Decision>,
}

impl ClosedAsk {
    fn detail(&self, status: AskStatus) -> Value {
        let decision = self.decision.as_ref().map(shown);
        json!({"askId": self.ask, "status": status, "decision": decision})
    }
}

/// When to try again what came too soon.
#[derive(Debug, Clone, PartialEq)]
pub struct TryLater {
    /// In how many milliseconds.
    pub retry_ms: u64,
    /// The run that found no place, if there was one.
    pub run: Option<RunId>,
    /// What was used up, where it is known how much the caller may use.
    pub quota: Option<Quota>,
}

impl TryLater {
    /// In so many milliseconds.
    pub fn after(retry_ms: u64) -> Self {
        Self { retry_ms, run: None, quota: None }
    }

    fn detail(&self) -> Value {
        match self.run {
            Some(run) => json!({"retryAfterMs": self.retry_ms, "run": run}),
            None => json!({"retryAfterMs": self.retry_ms}),
        }
    }
}

/// A decision as endpoints show it.
fn shown(decision: &Decision) -> Value {
    let mut shown =
        json!({"by": decision.by, "at": decision.at.rfc3339(), "reply": decision.reply});
    if let Some(via) = &decision.via {
        shown["via"] = json!(via);
    }
    shown
}

fn outline(ask: &Ask) -> Value {
    json!({"askId": ask.id, "kind": ask.body.kind(), "stepId": ask.step, "title": ask.title})
}

fn outlines(asks: &[Ask]) -> Vec<Value> {
    asks.iter().map(outline).collect()
}

/// What can be done about a failed step; null for another kind of ask.
fn actions(ask: &Ask) -> Value {
    match &ask.body {
        AskBody::Fix { actions, .. } => json!(actions),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::ask::Reply;
    use kernel::values::ids::{ContentHash, FrameId, Millis, StepId};

    fn ask(body: AskBody) -> Ask {
        Ask {
            id: AskId(1),
            run: RunId(2),
            frame: FrameId(1),
            step: StepId::from("look"),
            title: "Look".to_owned(),
            body,
            digest: ContentHash::of(b""),
            created_at: Millis(0),
            expires_at: None,
            wanted: None,
            answerers: None,
            subject: None,
            held: None,
            tried: Vec::new(),
            next: kernel::ask::context::NextSteps::default(),
            about: Vec::new(),
        }
    }

    fn question() -> Ask {
        ask(AskBody::Clarify { message: "Who?".to_owned(), questions: Vec::new() })
    }

    #[test]
    fn a_refusal_lists_open_asks_in_outline() {
        let id = AskId(1);
        let run = RunId(2);
        let outline = json!({"askId": id, "kind": "clarify", "stepId": "look", "title": "Look"});
        let asks = vec![question()];
        let active = ActiveRun { run, status: RunStatus::Waiting, asks: asks.clone() };
        for (code, name, detail) in [
            (
                RefusalCode::RunActive(Box::new(active)),
                "run_active",
                json!({"run": run, "status": "waiting", "asks": [outline]}),
            ),
            (RefusalCode::AskAmbiguous(asks.clone()), "ask_ambiguous", json!({"asks": [outline]})),
            (
                RefusalCode::RetryAmbiguous(asks),
                "ask_ambiguous",
                json!({"asks": [{"askId": id, "stepId": "look", "title": "Look"}]}),
            ),
            (
                RefusalCode::InputMisfit(Some(Box::new(question()))),
                "input_misfit",
                json!({"ask": outline}),
            ),
            (
                RefusalCode::BadAction(Box::new(question())),
                "bad_action",
                json!({"ask": outline, "actions": null}),
            ),
        ] {
            assert_eq!((code.name(), code.detail()), (name, Some(detail)));
        }
        assert_eq!(RefusalCode::InputMisfit(None).detail(), None);
    }

    #[test]
    fn a_closed_ask_refusal_has_its_state_and_decision() {
        let ask = AskId(1);
        let reply = Reply::Authorize { done: true };
        let decision = Decision::new("ann", Millis(0), reply);
        let told = json!({
            "by": "ann", "at": "1970-01-01T00:00:00.000Z",
            "reply": {"kind": "authorize", "done": true},
        });
        let by_mcp = Decision { via: Some("mcp".into()), ..decision.clone() };
        assert_eq!(shown(&by_mcp)["via"], "mcp");
        let decided = ClosedAsk { ask, decision: Some(decision.clone()) };
        assert_eq!(
            RefusalCode::AskDecided(Box::new(decided)).detail(),
            Some(json!({"askId": ask, "status": "decided", "decision": told}))
        );
        let withdrawn = ClosedAsk { ask, decision: None };
        assert_eq!(
            RefusalCode::AskWithdrawn(Box::new(withdrawn)).detail(),
            Some(json!({"askId": ask, "status": "withdrawn", "decision": null}))
        );
        assert_eq!(
            RefusalCode::NoOpenAsk(Some(Box::new((ask, decision)))).detail(),
            Some(json!({"askId": ask, "decision": told}))
        );
        assert_eq!(RefusalCode::NoOpenAsk(None).detail(), None);
    }

    #[test]
    fn a_forbidden_refusal_names_the_act() {
        let forbidden = RefusalCode::Forbidden(Act::Cancel);
        assert_eq!((forbidden.name(), forbidden.kind()), ("forbidden", RefusalKind::Forbidden));
        assert_eq!(forbidden.detail(), Some(json!({"act": "cancel"})));
        let out_of_scope = RefusalCode::OutOfScope(Act::Cancel);
        assert_eq!(out_of_scope.name(), "forbidden");
        assert_eq!(out_of_scope.detail(), Some(json!({"act": "cancel", "scope": "use"})));
    }

    #[test]
    fn a_rate_refusal_has_a_retry_time() {
        let later = |run| Box::new(TryLater { run, ..TryLater::after(7) });
        let alone = RefusalCode::RateLimited(later(None));
        assert_eq!(alone.detail(), Some(json!({"retryAfterMs": 7})));
        let run = RefusalCode::TooManyCalls(later(Some(RunId(2))));
        assert_eq!(run.detail(), Some(json!({"retryAfterMs": 7, "run": RunId(2)})));
        assert_eq!((run.retry_ms(), RefusalCode::DiskFull.retry_ms()), (Some(7), None));
        let open = RefusalCode::CircuitOpen(later(None));
        assert_eq!((open.name(), open.kind()), ("circuit_open", RefusalKind::Unavailable));
        assert_eq!((open.detail(), open.retry_ms()), (Some(json!({"retryAfterMs": 7})), Some(7)));
    }
}
