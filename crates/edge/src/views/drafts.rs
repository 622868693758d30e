//! Plans that a model wrote, as clients read them.

use super::rows::{plan_mistake, plan_summary};
use engine::{Draft, DraftOutcome, DraftWrite};
use kernel::definition::plan::graph::mermaid;
use kernel::definition::plan::mistake::Mistake;
use wire::rest;

/// Plans for a goal.
pub fn drafted(drafted: DraftOutcome) -> rest::DraftAnswer {
    rest::DraftAnswer {
        existing: drafted.existing.iter().map(|plan| plan_summary(plan)).collect(),
        draft: drafted.draft.map(draft),
    }
}

fn draft(draft: Draft) -> rest::PlanDraft {
    let (errors, warnings): (Vec<Mistake>, Vec<Mistake>) =
        draft.mistakes.into_iter().partition(Mistake::is_error);
    let plan = draft.plan.as_ref();
    rest::PlanDraft {
        valid: plan.is_some(),
        errors: errors.into_iter().map(plan_mistake).collect(),
        warnings: warnings.into_iter().map(plan_mistake).collect(),
        reach: plan.map(|drafted| drafted.reach.name().to_owned()),
        writes: plan.map(|drafted| drafted.writes.iter().map(write).collect()).unwrap_or_default(),
        graph: plan.map(|drafted| mermaid(&drafted.plan)),
        digest: plan.map(|drafted| drafted.plan.hash.as_str().to_owned()),
        // A plan that can be used is shown as it would be kept, with its id.
        plan: plan.map_or(draft.source, |drafted| (*drafted.plan.source).clone()),
        model: draft.model,
        turns: draft.turns,
        input_tokens: draft.usage.input,
        output_tokens: draft.usage.output,
        cost_micros: draft.cost_micros,
    }
}

fn write(write: &DraftWrite) -> rest::DraftWrite {
    rest::DraftWrite {
        step: write.step.to_string(),
        calls: write.calls.clone(),
        reach: write.reach.name().to_owned(),
        approve: write.approve,
    }
}
