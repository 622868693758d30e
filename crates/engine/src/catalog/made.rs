//! Plans that the engine makes itself, for calls that have a run of their own: the tool, then its
//! output as the answer. They follow from the tool's name alone, so each is made once.

use crate::refusal::{Refusal, RefusalCode, Result};
use crate::system::locks::lock;
use kernel::definition::plan::Closure;
use kernel::definition::plan::flow::read_made;
use kernel::limits::Limits;
use kernel::values::ids::{PlanId, ToolName};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// How many are kept. Then all are forgotten: to make one takes some ten microseconds.
const MADE_MAX: usize = 1_024;

/// Those that were made.
#[derive(Debug, Default)]
pub(crate) struct MadePlans {
    kept: Mutex<HashMap<MadeFor, Arc<Closure>>>,
}

/// What a plan is made for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum MadeFor {
    /// A direct call.
    Direct(ToolName),
    /// A call for an agent of others.
    Proxied(ToolName),
}

impl MadePlans {
    /// The plan for this; `source` writes it where it is not known.
    pub(crate) fn get(
        &self,
        made_for: MadeFor,
        limits: &Limits,
        source: impl FnOnce() -> Value,
    ) -> Result<Arc<Closure>> {
        if let Some(known) = lock(&self.kept).get(&made_for) {
            return Ok(known.clone());
        }
        let made = closure(&source(), limits)?;
        let mut kept = lock(&self.kept);
        if kept.len() >= MADE_MAX {
            kept.clear();
        }
        kept.insert(made_for, made.clone());
        Ok(made)
    }
}

/// A plan of the engine's own making, alone.
pub(crate) fn closure(source: &Value, limits: &Limits) -> Result<Arc<Closure>> {
    let plan = read_made(source, limits)
        .map_err(|_| Refusal::new(RefusalCode::DirectCall, "no plan can be made for this call"))?;
    let plan = Arc::new(plan);
    let plans: BTreeMap<PlanId, _> = BTreeMap::from([(plan.id.clone(), plan.clone())]);
    Ok(Arc::new(Closure::new(plan, plans, BTreeMap::new())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answering(text: &str) -> Value {
        json!({"planId": "made", "description": "an answer", "startStepId": "answer",
            "steps": [{"id": "answer", "type": "final_response", "message": text}]})
    }

    #[test]
    fn a_plan_is_made_once_for_each_tool_and_purpose() {
        let (made, limits) = (MadePlans::default(), Limits::default());
        let tool = |name: &str| ToolName::from(name);
        let get = |made_for, text| made.get(made_for, &limits, || answering(text)).unwrap();
        let first = get(MadeFor::Direct(tool("a")), "first");
        assert!(Arc::ptr_eq(&first, &get(MadeFor::Direct(tool("a")), "second")));
        assert_ne!(first, get(MadeFor::Direct(tool("b")), "second"));
        assert_ne!(first, get(MadeFor::Proxied(tool("a")), "second"));
    }

    #[test]
    fn so_many_are_kept_and_no_more() {
        let (made, limits) = (MadePlans::default(), Limits::default());
        for number in 0..=MADE_MAX {
            let tool = ToolName::from(number.to_string());
            made.get(MadeFor::Direct(tool), &limits, || answering("one")).unwrap();
        }
        assert_eq!(lock(&made.kept).len(), 1);
    }

    #[test]
    fn what_is_no_plan_is_refused_and_not_kept() {
        let (made, limits) = (MadePlans::default(), Limits::default());
        let wrong = made.get(MadeFor::Direct("a".into()), &limits, || json!({"description": "x"}));
        assert_eq!(wrong.unwrap_err().code, RefusalCode::DirectCall);
        assert!(lock(&made.kept).is_empty());
    }
}
