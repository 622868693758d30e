//! `match` and `conditional_branch`: which way to go.

use super::{At, Decided};
use crate::decide::resolve::Notes;
use crate::definition::plan::{Case, Expr, Step};
use crate::event::Fact;
use crate::expression::condition::{Condition, same};
use crate::expression::pointer::{Stop, View};
use crate::values::ids::StepId;

impl At<'_> {
    pub(super) fn matching(
        &self,
        step: &Step,
        value: &Expr,
        cases: &[Case],
        default: Option<&StepId>,
    ) -> Decided {
        let view = self.view();
        let value = view.value(value, &mut Notes::default())?;
        let mut next = default;
        for case in cases {
            let wanted = view.value(&case.equals, &mut Notes::default())?;
            if let (Some(value), Some(wanted)) = (&value, &wanted)
                && same(value, wanted)
            {
                next = case.next.as_ref();
                break;
            }
        }
        Ok(Some(self.chosen(step, next)))
    }

    pub(super) fn conditional(
        &self,
        step: &Step,
        condition: &Condition<Expr>,
        on_true: Option<&StepId>,
        on_false: Option<&StepId>,
    ) -> Decided {
        let view = self.view();
        let left = view.value(&condition.left, &mut Notes::default())?;
        let right = match &condition.right {
            Some(right) => view.value(right, &mut Notes::default())?,
            None => None,
        };
        let holds = condition.operator.holds(left.as_ref(), right.as_ref(), view.budget());
        let holds = holds.map_err(Stop::Fault)?;
        Ok(Some(self.chosen(step, if holds { on_true } else { on_false })))
    }

    fn chosen(&self, step: &Step, next: Option<&StepId>) -> Fact {
        Fact::StepChosen {
            frame: self.frame.id,
            step: step.id.clone(),
            next: self.after(&step.id, next),
        }
    }
}
