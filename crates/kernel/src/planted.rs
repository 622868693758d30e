//! Faults on purpose, all off: switches by which the simulation shows that it would notice. They
//! sit inside the rules, where no wrapper can reach, and exist in debug builds only.

use std::cell::Cell;

/// A rule that can be broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Children are merged in the order in which they ended.
    MergeByFinishOrder,
    /// An approval is good for every start of its step.
    ApprovalUsedTwice,
    /// A result that comes too late counts.
    LateResultApplied,
    /// A reply to a withdrawn ask is accepted.
    WithdrawnAskAnswered,
    /// A fork takes over approvals that were not used yet.
    ForkKeepsApproval,
    /// What policy says at the start of a call is not heard.
    DenyIgnoredAtStart,
    /// A call passes without being judged when it is requested.
    JudgementSkipped,
    /// What ends, a plan that is answered or an iteration that fails, leaves writes under way.
    AnswerLeavesWrites,
    /// A write that panicked counts as not sent, so that it may be repeated without a question.
    PanickedWriteRepeated,
    /// The limits of today apply to the plans that runs under way began with.
    PinnedPlansLimited,
    /// The death of a process is not counted against the run that it worked on.
    DeathsForgotten,
    /// A session that cannot be read is tried again at once, again and again.
    UnreadableNotParked,
    /// Rules repeat writes of unknown outcome.
    UnknownWriteRetried,
    /// A rule that is used up acts again.
    UsedUpRuleActs,
    /// What a run's first correction found is not taken, and it runs once more.
    CorrectionRunTwice,
    /// A rule holds an ask and acts in a year: nobody sees it until then.
    HeldByNobody,
    /// No one is woken when a rule has waited long enough.
    BackoffForgotten,
    /// A rule that waited when a process ended waits for its whole time again in the next one.
    BackoffRepeated,
    /// A rule acts before its time.
    RuleActsEarly,
    /// What a model proposes for a write is sent unasked.
    ProposedWriteActs,
    /// A correction that a model wrote runs unasked, whatever it may change.
    WritingDraftRuns,
}

thread_local! {
    /// A simulation is one thread, and several run at the same time.
    static ON: Cell<Option<Switch>> = const { Cell::new(None) };
    /// When the simulated process began, in milliseconds.
    static BEGAN_MS: Cell<i64> = const { Cell::new(i64::MIN) };
}

/// Breaks this rule on this thread, until told otherwise.
pub fn plant(switch: Option<Switch>) {
    ON.set(switch);
}

/// Whether this rule is broken on purpose.
pub fn is_on(switch: Switch) -> bool {
    cfg!(debug_assertions) && ON.get() == Some(switch)
}

/// A simulated process begins: some faults show after a restart alone.
pub fn begin_process(now_ms: i64) {
    BEGAN_MS.set(now_ms);
}

/// When the simulated process began, for what was there before it.
pub fn began_after(ms: i64) -> Option<i64> {
    Some(BEGAN_MS.get()).filter(|began_ms| *began_ms > ms)
}
