//! Plans that are made for one call that has a run of its own: the tool, then its output as the
//! answer. They follow from the tool's name and from who makes them, so each is made once.

use crate::catalog::registry::bad_name;
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::definition::plan::Closure;
use kernel::definition::plan::flow::read_generated;
use kernel::definition::plan::steps::REPORTS_CALLS;
use kernel::limits::Limits;
use kernel::values::ids::{PlanId, ToolName};
use quick_cache::sync::Cache;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many are kept. To make one again takes some ten microseconds.
const MADE_MAX: usize = 1_024;

/// Cache of the plans that were made.
#[derive(Debug)]
pub(crate) struct PlanCache(Cache<PlanCacheKey, Arc<Closure>>);

impl Default for PlanCache {
    fn default() -> Self {
        Self(Cache::new(MADE_MAX))
    }
}

/// A plan that an endpoint makes for calls whose runs report what became of them: nobody is asked
/// about such a call, also where its outcome is unknown.
#[derive(Debug, Clone, Copy)]
pub struct ReportedPlan {
    /// Its id, which is that of no other plan.
    pub id: &'static str,
    /// The plan as it is written, without its id, for a tool; without one it calls nothing.
    pub written: fn(Option<&ToolName>) -> Value,
}

impl ReportedPlan {
    fn source(self, tool: Option<&ToolName>) -> Value {
        let mut source = (self.written)(tool);
        source["planId"] = json!(self.id);
        source[REPORTS_CALLS] = json!(true);
        source
    }
}

/// What a plan is made for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PlanCacheKey {
    /// A direct call.
    Direct(ToolName),
    /// A call that its run reports, by the id of the endpoint's plan.
    Reported(&'static str, Option<ToolName>),
}

impl PlanCacheKey {
    fn tool(&self) -> Option<&ToolName> {
        match self {
            Self::Direct(tool) => Some(tool),
            Self::Reported(_, tool) => tool.as_ref(),
        }
    }
}

/// The plan of a direct call, as it is written.
fn direct(tool: &ToolName) -> Value {
    json!({
        "planId": format!("call/{tool}"),
        "description": format!("a direct call of {tool}"),
        "startStepId": "call",
        "steps": [
            // A caller learns of a failure and can call again. Only an outcome that no one knows
            // is for a person.
            {"id": "call", "type": "tool_call", "toolId": tool, "on_error": "fail",
             "arguments": {"jsonPath": "$.promptInput"}, "saveResultAs": "output",
             "nextStepId": "answer"},
            {"id": "answer", "type": "final_response",
             "message": {"jsonPath": "$.context.output"}},
        ],
    })
}

impl PlanCache {
    /// The plan of a direct call.
    pub(crate) fn direct(&self, tool: &ToolName, limits: &Limits) -> Result<Arc<Closure>> {
        self.get(PlanCacheKey::Direct(tool.clone()), || direct(tool), limits)
    }

    /// An endpoint's plan for a call of this tool, or for one that is not made.
    pub(crate) fn reported(
        &self,
        plan: ReportedPlan,
        tool: Option<&ToolName>,
        limits: &Limits,
    ) -> Result<Arc<Closure>> {
        let made_for = PlanCacheKey::Reported(plan.id, tool.cloned());
        self.get(made_for, || plan.source(tool), limits)
    }

    fn get(
        &self,
        made_for: PlanCacheKey,
        source: impl FnOnce() -> Value,
        limits: &Limits,
    ) -> Result<Arc<Closure>> {
        let made = self.0.get_or_insert_with(&made_for, || closure(&source(), limits));
        made.map_err(|refusal| match made_for.tool().and_then(|tool| bad_name(tool.as_str())) {
            Some(why) => {
                let message = format!("no tool can be called so: {why}");
                Refusal::new(RefusalCode::InputMisfit(None), message)
            }
            None => refusal,
        })
    }
}

/// A plan of the engine's own making, alone.
fn closure(source: &Value, limits: &Limits) -> Result<Arc<Closure>> {
    let plan = read_generated(source, limits)
        .map_err(|_| Refusal::new(RefusalCode::DirectCall, "no plan can be made for this call"))?;
    let plan = Arc::new(plan);
    let plans: BTreeMap<PlanId, _> = BTreeMap::from([(plan.id.clone(), plan.clone())]);
    Ok(Arc::new(Closure::new(plan, plans, BTreeMap::new())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORTED: ReportedPlan = ReportedPlan { id: "reports/call", written };

    fn written(tool: Option<&ToolName>) -> Value {
        tool.map_or_else(
            || json!({"steps": [{"id": "end", "type": "final_response", "message": "no"}]}),
            direct,
        )
    }

    #[test]
    fn a_plan_is_made_once_for_each_tool_and_purpose() {
        let made = PlanCache::default();
        let limits = Limits::default();
        let tool = |name: &str| ToolName::from(name);
        let get = |name: &str| made.direct(&tool(name), &limits).unwrap();
        let first = get("a");
        assert!(Arc::ptr_eq(&first, &get("a")));
        assert_ne!(first, get("b"));
        assert_ne!(first, made.reported(REPORTED, Some(&tool("a")), &limits).unwrap());
    }

    #[test]
    fn only_a_plan_of_an_endpoint_reports_its_call() {
        let made = PlanCache::default();
        let limits = Limits::default();
        let tool = ToolName::from("a");
        for tool in [Some(&tool), None] {
            let closure = made.reported(REPORTED, tool, &limits).unwrap();
            assert_eq!(closure.main.id.as_str(), "reports/call");
            assert!(closure.main.reports_calls, "{closure:?}");
        }
        assert!(!made.direct(&tool, &limits).unwrap().main.reports_calls);
    }

    #[test]
    fn the_plan_cache_is_bounded() {
        let made = PlanCache::default();
        let limits = Limits::default();
        for number in 0..2 * MADE_MAX {
            made.direct(&ToolName::from(number.to_string()), &limits).unwrap();
        }
        // Each shard rounds its part of the limit up.
        assert!(made.0.len() < MADE_MAX + made.0.num_shards());
    }

    #[test]
    fn an_invalid_tool_name_is_a_caller_error() {
        let made = PlanCache::default();
        let limits = Limits::default();
        let tool = ToolName::from("a\0b");
        let refused = [made.direct(&tool, &limits), made.reported(REPORTED, Some(&tool), &limits)];
        for refusal in refused.map(Result::unwrap_err) {
            assert_eq!(refusal.code, RefusalCode::InputMisfit(None));
            assert!(refusal.message.contains("control character"), "{}", refusal.message);
        }
    }

    #[test]
    fn an_invalid_plan_is_refused_and_not_cached() {
        let made = PlanCache::default();
        let limits = Limits { plan_steps_max: 1, ..Limits::default() };
        let wrong = made.direct(&"a".into(), &limits);
        assert_eq!(wrong.unwrap_err().code, RefusalCode::DirectCall);
        assert!(made.0.is_empty());
    }
}
