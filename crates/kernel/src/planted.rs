//! Faults on purpose, all off: switches by which the simulation shows that it would notice. They
//! sit inside the rules, where no wrapper can reach. In a release build
//! nothing is ever on.

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
    /// What ends, a plan that is answered or an iteration that fails, leaves writes under way.
    AnswerLeavesWrites,
    /// A write that panicked counts as not sent, so that it may be repeated without a question.
    PanickedWriteRepeated,
    /// The limits of today apply to the plans that runs under way began with.
    PinnedPlansLimited,
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

/// By how many milliseconds a rule that acts early is too early.
const EARLY_MS: u64 = 2_000;
/// After how many a rule acts that is lost: longer than anyone waits.
const YEAR_MS: u64 = 365 * 24 * 60 * 60 * 1_000;

/// How far ahead a rule looks: not at all, unless it acts early on purpose.
pub fn early_ms() -> u64 {
    if is_on(Switch::RuleActsEarly) { EARLY_MS } else { 0 }
}

/// How long a rule waits at least: not at all, unless it is lost on purpose.
pub fn lost_ms() -> u64 {
    if is_on(Switch::HeldByNobody) { YEAR_MS } else { 0 }
}

thread_local! {
    /// A simulation is one thread, and several run at the same time.
    static ON: Cell<Option<Switch>> = const { Cell::new(None) };
    /// When the simulated process began, in milliseconds.
    static BEGAN_MS: Cell<i64> = const { Cell::new(i64::MIN) };
}

/// Breaks this rule on this thread, until told otherwise. A release build refuses: a simulation that
/// wants a fault would wait for it in vain.
pub fn plant(switch: Option<Switch>) {
    assert!(cfg!(debug_assertions) || switch.is_none(), "{switch:?} takes a debug build");
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
