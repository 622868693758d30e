//! Which rule holds a failed step, which try of it this is, and when it acts. Rules are asked in
//! order: those of the step, of its plan, of the project, and the built-in one. What the supervisor
//! does when the time has come follows from the ask alone: `Session::due`.

use super::FrameContext;
use crate::ask::remedy::{Remedy, RemedyAttempt, RemedyResult, RuleHold};
use crate::definition::rule::{BUILT_IN, Failure, Retry, Rule, RuleAction, RuleList};
use crate::planted::{Switch, is_on, lost_ms};
use crate::session::OpenCall;
use crate::tool::call::CallProgress;
use crate::values::fault::Fault;
use crate::values::ids::{AskId, PlanId};
use std::sync::Arc;

/// A step that failed.
pub(super) struct FailedStep<'a> {
    pub(super) fault: &'a Fault,
    /// How far its call got.
    pub(super) how: CallProgress,
    /// The call, if it was one.
    pub(super) call: Option<&'a OpenCall>,
}

impl FailedStep<'_> {
    /// Whether the same may be done once more without asking anyone.
    pub(super) fn may_repeat(&self) -> bool {
        let known = self.how != CallProgress::Unknown || is_on(Switch::UnknownWriteRetried);
        known || self.call.is_none_or(OpenCall::repeatable)
    }

    /// Whether other arguments may be sent in the place of those that failed: not of a write that
    /// may have happened, which even a key of its own does not keep from being done twice then.
    pub(super) fn may_change(&self) -> bool {
        self.how != CallProgress::Unknown || self.call.is_none_or(OpenCall::only_reads)
    }
}

/// What the rules say about a failed step.
pub(super) enum RuleChoice {
    /// This rule acts.
    Held(RuleHold),
    /// The run fails.
    Fails,
    /// It is a person's.
    Asks,
}

impl<'e> FrameContext<'e> {
    /// The first rule that fits and is not used up. No rule repeats a write of unknown outcome.
    pub(super) fn ruled(&self, failed: &FailedStep<'_>) -> RuleChoice {
        let tool = failed.call.map(|call| &call.request.tool);
        let failure = Failure { fault: failed.fault, how: failed.how, tool };
        for (list, number, rule) in self.rules(failed) {
            if !rule.when.fits(&failure) {
                continue;
            }
            let name = || -> Arc<str> { format!("{} {number}", list.name()).into() };
            let held = match &rule.act {
                RuleAction::Ask => return RuleChoice::Asks,
                RuleAction::Fail => return RuleChoice::Fails,
                RuleAction::Retry(retry) => self.held_to_retry(name(), failed, retry),
                RuleAction::Plan(plan) if self.has_correction(plan) => {
                    self.held_once(name(), Remedy::Correct(plan.clone()))
                }
                RuleAction::Propose(model) if self.may_propose(failed) => {
                    self.held_once(name(), Remedy::Propose(model.clone()))
                }
                RuleAction::Draft(drafter) if self.may_draft() => {
                    self.held_once(name(), Remedy::Draft(drafter.clone()))
                }
                RuleAction::Plan(_) | RuleAction::Propose(_) | RuleAction::Draft(_) => None,
            };
            if let Some(held) = held {
                return RuleChoice::Held(held);
            }
        }
        RuleChoice::Asks
    }

    /// The rules that fit and would act, had the run not used up what it may: a person who is
    /// asked learns why they do not.
    pub(super) fn kept_from_acting(&self, failed: &FailedStep<'_>) -> Vec<RemedyAttempt> {
        let mut kept = Vec::new();
        if self.correction().is_some() {
            return kept;
        }
        let tool = failed.call.map(|call| &call.request.tool);
        let failure = Failure { fault: failed.fault, how: failed.how, tool };
        for (list, number, rule) in self.rules(failed) {
            if !rule.when.fits(&failure) {
                continue;
            }
            let (does, limit) = match &rule.act {
                RuleAction::Ask | RuleAction::Fail => break,
                RuleAction::Plan(plan) if self.closure.plans.contains_key(plan) => {
                    (Remedy::Correct(plan.clone()), self.corrections_used_up())
                }
                RuleAction::Propose(model) if failed.call.is_some() && failed.may_change() => {
                    (Remedy::Propose(model.clone()), self.proposals_used_up())
                }
                RuleAction::Draft(drafter) => {
                    let limit = self.proposals_used_up().or_else(|| self.corrections_used_up());
                    (Remedy::Draft(drafter.clone()), limit)
                }
                RuleAction::Retry(_) | RuleAction::Plan(_) | RuleAction::Propose(_) => continue,
            };
            let name: Arc<str> = format!("{} {number}", list.name()).into();
            let unused = self.frame.times_tried(&name) == 0;
            kept.extend(limit.filter(|_| unused).map(|limit| {
                let found = Some(Box::new(RemedyResult::nothing(limit)));
                RemedyAttempt { rule: name, does, times: 0, waits: 0, found }
            }));
        }
        kept
    }

    /// A rule that acts at once, and once for each visit of a step.
    fn held_once(&self, rule: Arc<str>, does: Remedy) -> Option<RuleHold> {
        let until = self.env.now;
        let unused = self.frame.times_tried(&rule) == 0;
        unused.then_some(RuleHold { rule, does, try_no: 1, of: 1, until })
    }

    fn has_correction(&self, plan: &PlanId) -> bool {
        self.may_correct() && self.closure.plans.contains_key(plan)
    }

    /// The plans that can correct this frame's step: those that its rules name, and those that a
    /// model wrote for it.
    pub(super) fn corrections(&self, failed: &FailedStep<'_>) -> Vec<PlanId> {
        let mut plans = self.drafts();
        for plan in self.rules(failed).into_iter().filter_map(|(_, _, rule)| rule.plan()) {
            if self.has_correction(plan) && !plans.contains(plan) {
                plans.push(plan.clone());
            }
        }
        plans
    }

    /// All rules for this frame's step, in order, each with its number in its list.
    fn rules(&self, failed: &FailedStep<'_>) -> Vec<(RuleList, usize, &'e Rule)> {
        let step = self.frame.step.as_ref().and_then(|step| self.plan.step(step));
        let of_step: &[Rule] = step.map_or(&[], |step| &step.rules);
        let pinned = self.run.rules.as_deref();
        let of_project: &[Rule] = pinned.map_or(&[], |rules| &rules.project);
        let repeatable = failed.call.is_some_and(OpenCall::repeatable);
        let built_in: &[Rule] = match pinned {
            Some(rules) if rules.built_in && repeatable => std::slice::from_ref(&BUILT_IN),
            _ => &[],
        };
        let lists = [
            (RuleList::Step, of_step),
            (RuleList::Plan, self.plan.rules.as_slice()),
            (RuleList::Project, of_project),
            (RuleList::BuiltIn, built_in),
        ];
        let numbered = |(list, rules): (RuleList, &'e [Rule])| {
            (1..).zip(rules).map(move |(number, rule)| (list, number, rule))
        };
        lists.into_iter().flat_map(numbered).collect()
    }

    /// Which try of this rule comes next, if one does. A try that was refused unsent is not used
    /// up: it is made again, so often and no more.
    fn next_try(&self, rule: &str, failed: &FailedStep<'_>, retry: &Retry) -> Option<u32> {
        if !failed.may_repeat() {
            return None;
        }
        let tried = self.frame.tried_by(rule);
        let (used, waits) = tried.map_or((0, 0), |tried| (tried.times, tried.waits));
        match failed.fault.refused_ms {
            Some(_) if used > 0 => (waits < self.env.limits.refused_waits_max).then_some(used),
            _ => (used < retry.times || is_on(Switch::UsedUpRuleActs)).then_some(used + 1),
        }
    }

    /// A call that is refused for a while waits for the end of that, too.
    fn held_to_retry(
        &self,
        rule: Arc<str>,
        failed: &FailedStep<'_>,
        retry: &Retry,
    ) -> Option<RuleHold> {
        let try_no = self.next_try(&rule, failed, retry)?;
        // Chance that a replay gives again: where the step is, and after how many events.
        let seq = self.session.seq.to_be_bytes();
        let chance = AskId::of(&[&self.id_seed(), &seq, b"wait"]).0 as u64;
        let wait_ms = retry.wait_ms(try_no, chance, self.env.limits.rule_wait_ms_max);
        let refused_ms = failed.fault.refused_ms.unwrap_or(0);
        let until = self.env.now.plus_ms(wait_ms.saturating_add(refused_ms).max(lost_ms()));
        Some(RuleHold { rule, does: Remedy::Retry, try_no, of: retry.times, until })
    }
}
