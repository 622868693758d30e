//! What rules, models and people do about a failed step, as `/api/v1` shows it in its ask.

use kernel::ask::proposal::{Change, changes_of, newest};
use kernel::ask::remedy::{RemedyAttempt, RuleHold};
use kernel::ask::{Ask, FixAction, Reply};
use wire::rest;

/// The rule that holds an ask.
pub(super) fn rule_hold(by: RuleHold) -> rest::HeldAsk {
    let RuleHold { rule, does, try_no, of, until } = by;
    rest::HeldAsk {
        rule: rule.to_string(),
        does: does.name().to_owned(),
        plan: does.plan().map(ToString::to_string),
        model: does.model().map(ToString::to_string),
        try_no,
        of,
        until: until.rfc3339(),
    }
}

/// What was done about the failed step before.
pub(super) fn tried(tried: RemedyAttempt) -> rest::TriedRule {
    let RemedyAttempt { rule, does, times, waits, found } = tried;
    rest::TriedRule {
        rule: rule.to_string(),
        does: does.name().to_owned(),
        plan: does.plan().map(ToString::to_string),
        model: does.model().map(ToString::to_string),
        times,
        waits: (waits > 0).then_some(waits),
        // What was found is plain data; writing it as JSON cannot fail.
        found: found.and_then(|found| serde_json::to_value(found).ok()),
    }
}

/// What is proposed, if something is.
pub(super) fn proposal(ask: &Ask) -> Option<rest::Proposal> {
    let found = newest(ask)?;
    let Some(Reply::Fix { action, arguments, plan_id, .. }) = &found.reply else { return None };
    let change = |change: Change| {
        let Change { path, before, after } = change;
        rest::ProposedChange { path, before, after }
    };
    Some(rest::Proposal {
        action: fix_action(*action),
        why: found.why.clone(),
        arguments: arguments.as_deref().cloned(),
        changes: changes_of(ask, found).into_iter().map(change).collect(),
        plan_id: plan_id.as_ref().map(ToString::to_string),
        plan: found.plan.as_deref().cloned(),
    })
}

/// What can be done about a failed step.
pub(super) fn fix_action(action: FixAction) -> rest::FixAction {
    match action {
        FixAction::Retry => rest::FixAction::Retry,
        FixAction::Edit => rest::FixAction::Edit,
        FixAction::Skip => rest::FixAction::Skip,
        FixAction::Abort => rest::FixAction::Abort,
        FixAction::Settle => rest::FixAction::Settle,
        FixAction::Correct => rest::FixAction::Correct,
        FixAction::Propose => rest::FixAction::Propose,
    }
}
