//! `plan`: another plan as a step, with a context of its own.

use super::{At, Decided};
use crate::decide::resolve::Notes;
use crate::definition::plan::{Expr, Step};
use crate::event::{Fact, PlanEntry};
use crate::expression::pointer::Stop;
use crate::values::datum::{Datum, Origin};
use crate::values::fault::Fault;
use crate::values::ids::{ContextKey, PlanId, StepId};
use std::sync::Arc;

impl At<'_> {
    pub(super) fn sub_plan(
        &self,
        step: &Step,
        plan: &PlanId,
        arguments: &Expr,
        (save_as, next): (&ContextKey, Option<&StepId>),
    ) -> Decided {
        let Some(entered) = self.closure.plans.get(plan) else {
            let message = format!("plan `{plan}` is not pinned by this run");
            return Err(Stop::Fault(Fault::new("PlanError", message)));
        };
        let depth = self.session.plan_depth(self.frame.id) as usize + 1;
        let max = self.env.limits.plan_depth_max;
        if depth > max {
            let message = format!("plans call plans {depth} deep, more than {max}");
            return Ok(Some(self.fixed_limit(message)));
        }
        if let Some(limit) = self.too_many_frames(1) {
            return Ok(Some(limit));
        }
        let input = self.view().value(arguments, &mut Notes::default())?.unwrap_or_default();
        Ok(Some(Fact::PlanEntered(Box::new(PlanEntry {
            frame: self.frame.id,
            step: step.id.clone(),
            child: self.new_frame_id(0),
            plan: plan.clone(),
            input: Arc::new(Datum::inline(input, Origin::Plan)),
            start: entered.start.clone(),
            save_as: save_as.clone(),
            next: self.after(&step.id, next),
        }))))
    }
}
