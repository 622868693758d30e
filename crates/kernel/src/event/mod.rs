//! Events are facts: each carries what was decided, so that replaying them needs no plan. A
//! released (type, v) pair never changes its meaning; upgrades of old ones live in `journal`.

use crate::ask::{Ask, Decision};
use crate::conversation::published::PublishedEvent;
use crate::conversation::talk::CallSettlement;
use crate::definition::rule::Rules;
use crate::tool::call::{CallProgress, InputRequest, InputResponses, Judgement, Scopes};
use crate::values::datum::{BlobRef, Datum};
use crate::values::fault::Fault;
use crate::values::ids::{
    AskId, CallId, ContentHash, ContextKey, FrameId, Millis, PlanId, RunId, SessionId, SessionKey,
    StepId,
};
use crate::values::trace::TraceParent;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

mod parts;
mod received;
mod journal;
mod values;
pub use journal::{Event, Unreadable, VERSION, read, read_one};
pub use parts::{
    AgentEntry, Base, BranchStart, CallMade, CallRequest, Closing, CorrectionEnd, CorrectionEntry,
    LoopStart, OCCASION_CHARS_MAX, Occasion, Outcome, PlanEntry, ProposalEnd, ProposalStart,
    QueuedRun, Route, StepAgain, TimerStart, Topic, TurnEnd, TurnKind, TurnStart,
};
pub use received::ReceivedMessage;

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all_fields = "camelCase")]
pub enum Fact {
    /// A session began.
    #[serde(rename = "session.created")]
    SessionCreated {
        /// Its id.
        id: SessionId,
        /// Its key.
        key: SessionKey,
        /// Who made it, where that is not the key's owner, nor local mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<Arc<str>>,
    },
    /// A session began as a copy of another.
    #[serde(rename = "session.forked")]
    SessionForked {
        /// The other session.
        from: SessionId,
        /// Up to which of its events.
        at: u64,
    },
    /// A run began, at its plan's first step.
    #[serde(rename = "run.started")]
    RunStarted {
        /// The run.
        run: RunId,
        /// Its plan.
        plan: PlanId,
        /// The pinned closure.
        closure: ContentHash,
        /// Its input.
        input: Arc<Datum>,
        /// Who started it.
        by: Arc<str>,
        /// The root frame.
        frame: FrameId,
        /// The first step.
        start: StepId,
        /// The span that it is a part of: the caller's, or its own where its trace begins with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceParent>,
        /// For whom it acts, where that is not who started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<Arc<str>>,
        /// Who really called, where that is not who started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<Arc<str>>,
        /// The most that the credential allowed; none is no ceiling.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scopes: Option<Scopes>,
        /// What caused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<Box<Occasion>>,
        /// What is done about its failed steps, beside what its plans say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rules: Option<Arc<Rules>>,
    },
    /// The run reached a limit of its own: a person decides whether it may use as much again.
    #[serde(rename = "run.held")]
    RunHeld {
        /// The run.
        run: RunId,
        /// The frame that asks for it.
        frame: FrameId,
        /// That frame's step.
        step: StepId,
        /// Which limit, and what can be done.
        fault: Fault,
    },
    /// The run continues once another one is over that came first and talks with the same agent.
    #[serde(rename = "run.queued")]
    RunQueued(QueuedRun),
    /// A process took the run over after a crash.
    #[serde(rename = "run.claimed")]
    RunClaimed {
        /// The run.
        run: RunId,
        /// How many times without progress.
        attempt: u32,
        /// The process before died, or its driver panicked, while it worked on this very run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        died: bool,
    },
    /// Someone asked the run to stop at the next step.
    #[serde(rename = "run.paused")]
    RunPaused {
        /// The run.
        run: RunId,
        /// Who.
        by: Arc<str>,
    },
    /// Someone continued it.
    #[serde(rename = "run.continued")]
    RunContinued {
        /// The run.
        run: RunId,
        /// Who.
        by: Arc<str>,
    },
    /// A client that reads its messages back sent one to the run.
    #[serde(rename = "message.received")]
    MessageReceived(Box<ReceivedMessage>),
    /// The run will end without an answer: from here on no new effect starts.
    #[serde(rename = "run.closing")]
    RunClosing {
        /// The run.
        run: RunId,
        /// Why.
        why: Closing,
    },
    /// The run is over, for good.
    #[serde(rename = "run.ended")]
    RunEnded {
        /// The run.
        run: RunId,
        /// How.
        outcome: Outcome,
    },
    /// A `match` or `conditional_branch` chose.
    #[serde(rename = "step.chosen")]
    StepChosen {
        /// The frame.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// Where it goes; none ends the list.
        next: Option<StepId>,
    },
    /// A step failed before any call.
    #[serde(rename = "step.failed")]
    StepFailed {
        /// The frame.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// Why.
        fault: Fault,
    },
    /// A step told the world something.
    #[serde(rename = "event.published")]
    EventPublished {
        /// The frame.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// What.
        published: PublishedEvent,
        /// Where it goes.
        next: Option<StepId>,
    },
    /// A person skipped the step.
    #[serde(rename = "step.skipped")]
    StepSkipped {
        /// The frame.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// What stands for its output, and under which key.
        save: Option<(ContextKey, Arc<Datum>)>,
        /// Where it goes.
        next: Option<StepId>,
    },
    /// A person said no, and the plan says where that leads.
    #[serde(rename = "step.diverted")]
    StepDiverted {
        /// The frame.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// Where it goes.
        next: StepId,
    },
    /// A person said try the step again.
    #[serde(rename = "step.retried")]
    StepRetried(StepAgain),
    /// A step wants to call a tool.
    #[serde(rename = "call.requested")]
    CallRequested(Box<CallRequest>),
    /// The gate's first half spoke.
    #[serde(rename = "call.judged")]
    CallJudged {
        /// The call.
        call: CallId,
        /// What it said.
        judgement: Judgement,
    },
    /// The call is about to be sent; from here on it may have happened.
    #[serde(rename = "call.started")]
    CallStarted {
        /// The call.
        call: CallId,
        /// The approval that this start consumes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<AskId>,
    },
    /// The call came back and needs something first; it has done nothing yet.
    #[serde(rename = "call.wants")]
    CallWants {
        /// The call.
        call: CallId,
        /// What it needs, by the tool's keys.
        inputs: BTreeMap<String, InputRequest>,
        /// What the tool wants to be given back with it.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        state: Value,
    },
    /// It is about to be sent again, with what it wanted; from here on it may have happened.
    #[serde(rename = "call.resumed")]
    CallResumed {
        /// The call.
        call: CallId,
        /// The answers to what it wanted.
        given: Arc<InputResponses>,
    },
    /// The call came back.
    #[serde(rename = "call.finished")]
    CallFinished {
        /// The call.
        call: CallId,
        /// Its output.
        output: Arc<Datum>,
        /// The ask by which a person, or a late result, settled it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settled: Option<AskId>,
        /// What it published.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        published: Vec<PublishedEvent>,
    },
    /// The call failed.
    #[serde(rename = "call.failed")]
    CallFailed {
        /// The call.
        call: CallId,
        /// How far it got.
        how: CallProgress,
        /// Why.
        fault: Fault,
        /// Of a direct call, or one that its run reports: what the other side said (`RawFailure`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<Arc<Datum>>,
    },
    /// A result that came too late to count.
    #[serde(rename = "call.late")]
    CallLate {
        /// The call.
        call: CallId,
        /// What came.
        result: Result<Arc<Datum>, Fault>,
    },
    /// A person is asked.
    #[serde(rename = "ask.opened")]
    AskOpened(Box<Ask>),
    /// A reply won.
    #[serde(rename = "ask.decided")]
    AskDecided {
        /// The ask.
        ask: AskId,
        /// The reply.
        decision: Box<Decision>,
    },
    /// No one answered in time.
    #[serde(rename = "ask.expired")]
    AskExpired {
        /// The ask.
        ask: AskId,
    },
    /// The run ended, or the ask was settled otherwise.
    #[serde(rename = "ask.withdrawn")]
    AskWithdrawn {
        /// The ask.
        ask: AskId,
    },
    /// A person's answer became input.
    #[serde(rename = "input.given")]
    InputGiven {
        /// The frame.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// The answer.
        value: Arc<Datum>,
        /// Where it goes.
        next: Option<StepId>,
    },
    /// A parallel step began.
    #[serde(rename = "branches.started")]
    BranchesStarted {
        /// The frame that waits for them.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// The branches, in declared order.
        branches: Vec<BranchStart>,
        /// Where the parent goes after the join.
        next: Option<StepId>,
    },
    /// A loop began; its items are pinned.
    #[serde(rename = "loop.started")]
    LoopStarted(Box<LoopStart>),
    /// An iteration began.
    #[serde(rename = "item.started")]
    ItemStarted {
        /// The frame that loops.
        frame: FrameId,
        /// The iteration's frame.
        child: FrameId,
        /// Which item.
        index: u32,
        /// The item.
        item: Arc<Datum>,
    },
    /// An iteration or a correction is failing: what runs inside it is cut off first.
    #[serde(rename = "item.failing")]
    ItemFailing {
        /// The iteration's frame.
        frame: FrameId,
        /// Why.
        fault: Fault,
    },
    /// A frame that is answered or failing waits for a call below it that must be known.
    #[serde(rename = "frame.waits")]
    FrameWaits {
        /// The frame.
        frame: FrameId,
    },
    /// An iteration failed and its loop collects failures.
    #[serde(rename = "item.failed")]
    ItemFailed {
        /// The iteration's frame.
        frame: FrameId,
        /// Why.
        fault: Fault,
    },
    /// A branch or iteration came to its end.
    #[serde(rename = "frame.ended")]
    FrameEnded {
        /// The frame.
        frame: FrameId,
    },
    /// A frame was cut off, because the run or sub-plan was answered elsewhere.
    #[serde(rename = "frame.cancelled")]
    FrameCancelled {
        /// The frame.
        frame: FrameId,
    },
    /// All branches or items are done and merged.
    #[serde(rename = "frames.joined")]
    FramesJoined {
        /// The frame that waited.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// Where the joined value lies if it is large; else it is made of what the children left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<BlobRef>,
    },
    /// A plan runs as a step.
    #[serde(rename = "plan.entered")]
    PlanEntered(Box<PlanEntry>),
    /// It came back.
    #[serde(rename = "plan.returned")]
    PlanReturned {
        /// The frame that waited.
        frame: FrameId,
        /// The plan's frame.
        child: FrameId,
        /// Its answer.
        answer: Arc<Datum>,
    },
    /// A plan runs to correct a failed step.
    #[serde(rename = "correction.entered")]
    CorrectionEntered(Box<CorrectionEntry>),
    /// It came to something, or to nothing.
    #[serde(rename = "correction.ended")]
    CorrectionEnded(Box<CorrectionEnd>),
    /// A model is about to be asked what could be done about a failed step; it may cost money.
    #[serde(rename = "proposal.asked")]
    ProposalAsked(Box<ProposalStart>),
    /// It proposed something, or nothing.
    #[serde(rename = "proposal.given")]
    ProposalGiven(Box<ProposalEnd>),
    /// `final_response`: the answer of the run or of the sub-plan.
    #[serde(rename = "answer.given")]
    AnswerGiven {
        /// The frame.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// The answer.
        answer: Arc<Datum>,
    },
    /// An agent step began.
    #[serde(rename = "agent.entered")]
    AgentEntered(Box<AgentEntry>),
    /// A model is about to be asked; from here on it may cost money.
    #[serde(rename = "turn.started")]
    TurnStarted(Box<TurnStart>),
    /// It did not answer, or not in a way that can be used.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// The agent's frame.
        frame: FrameId,
        /// Which turn of the agent.
        turn: u32,
        /// Which attempt.
        attempt: u32,
        /// Why.
        fault: Fault,
        /// When it is asked again; none leaves it to a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again_at: Option<Millis>,
    },
    /// It answered.
    #[serde(rename = "turn.finished")]
    TurnFinished(Box<TurnEnd>),
    /// Calls of the last turn got results without being sent: answers, rejections.
    #[serde(rename = "results.given")]
    ResultsGiven {
        /// The agent's frame.
        frame: FrameId,
        /// The results.
        results: BTreeMap<CallId, CallSettlement>,
    },
    /// Older lines of the conversation became a summary.
    #[serde(rename = "talk.compacted")]
    TalkCompacted {
        /// How many lines, from the oldest.
        lines: u32,
        /// The turn whose text they came down to.
        turn: Box<TurnEnd>,
    },
    /// The agent is done.
    #[serde(rename = "agent.answered")]
    AgentAnswered {
        /// The frame.
        frame: FrameId,
        /// The step.
        step: StepId,
        /// Its answer.
        answer: Arc<Datum>,
        /// The limit that stopped it, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stopped: Option<String>,
    },
    /// A timer runs.
    #[serde(rename = "timer.set")]
    TimerSet(TimerStart),
    /// A timer fired.
    #[serde(rename = "timer.fired")]
    TimerFired {
        /// Its name.
        timer: String,
    },
    /// Older runs were removed; what they left.
    #[serde(rename = "base.set")]
    BaseSet(Box<Base>),
}
