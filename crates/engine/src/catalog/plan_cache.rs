//! Plans that the engine makes itself, for calls that have a run of their own: the tool, then its
//! output as the answer. They follow from the tool's name alone, so each is made once.

use crate::catalog::registry::bad_name;
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::definition::plan::flow::read_made;
use kernel::definition::plan::{Closure, PROXY};
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

/// What a plan is made for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum PlanCacheKey {
    /// A direct call.
    Direct(ToolName),
    /// A call for an agent of others.
    Proxied(ToolName),
}

impl PlanCacheKey {
    fn tool(&self) -> &ToolName {
        match self {
            Self::Direct(tool) | Self::Proxied(tool) => tool,
        }
    }

    /// The plan as it is written.
    fn source(&self) -> Value {
        let output = json!({"jsonPath": "$.context.output"});
        let (tool, id, description, arguments, answer) = match self {
            Self::Direct(tool) => {
                let description = format!("a direct call of {tool}");
                (tool, format!("call/{tool}"), description, "$.promptInput", output)
            }
            Self::Proxied(tool) => {
                let description = format!("a call of {tool} for an agent of others");
                let answer = json!({"success": true, "mcp_result": output});
                let arguments = "$.promptInput.instruction.arguments";
                (tool, PROXY.to_owned(), description, arguments, answer)
            }
        };
        json!({
            "planId": id,
            "description": description,
            "startStepId": "call",
            "steps": [
                // A caller learns of a failure and can call again. Only an outcome of a direct call
                // that no one knows is for a person.
                {"id": "call", "type": "tool_call", "toolId": tool, "on_error": "fail",
                 "arguments": {"jsonPath": arguments}, "saveResultAs": "output",
                 "nextStepId": "answer"},
                {"id": "answer", "type": "final_response", "message": answer},
            ],
        })
    }
}

impl PlanCache {
    pub(crate) fn get(&self, made_for: PlanCacheKey, limits: &Limits) -> Result<Arc<Closure>> {
        let made = self.0.get_or_insert_with(&made_for, || closure(&made_for.source(), limits));
        made.map_err(|refusal| match bad_name(made_for.tool().as_str()) {
            Some(why) => {
                let message = format!("no tool can be called so: {why}");
                Refusal::new(RefusalCode::InputMisfit(None), message)
            }
            None => refusal,
        })
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

    #[test]
    fn a_plan_is_made_once_for_each_tool_and_purpose() {
        let made = PlanCache::default();
        let limits = Limits::default();
        let tool = |name: &str| ToolName::from(name);
        let get = |made_for| made.get(made_for, &limits).unwrap();
        let first = get(PlanCacheKey::Direct(tool("a")));
        assert!(Arc::ptr_eq(&first, &get(PlanCacheKey::Direct(tool("a")))));
        assert_ne!(first, get(PlanCacheKey::Direct(tool("b"))));
        assert_ne!(first, get(PlanCacheKey::Proxied(tool("a"))));
    }

    #[test]
    fn so_many_are_kept_and_no_more() {
        let made = PlanCache::default();
        let limits = Limits::default();
        for number in 0..2 * MADE_MAX {
            let tool = ToolName::from(number.to_string());
            made.get(PlanCacheKey::Direct(tool), &limits).unwrap();
        }
        // Each shard rounds its part of the limit up.
        assert!(made.0.len() < MADE_MAX + made.0.num_shards());
    }

    #[test]
    fn a_name_that_no_tool_can_have_is_the_callers_mistake() {
        let made = PlanCache::default();
        let limits = Limits::default();
        let tool = ToolName::from("a\0b");
        for made_for in [PlanCacheKey::Direct(tool.clone()), PlanCacheKey::Proxied(tool)] {
            let refusal = made.get(made_for, &limits).unwrap_err();
            assert_eq!(refusal.code, RefusalCode::InputMisfit(None));
            assert!(refusal.message.contains("control character"), "{}", refusal.message);
        }
    }

    #[test]
    fn what_is_no_plan_is_refused_and_not_kept() {
        let made = PlanCache::default();
        let limits = Limits { plan_steps_max: 1, ..Limits::default() };
        let wrong = made.get(PlanCacheKey::Direct("a".into()), &limits);
        assert_eq!(wrong.unwrap_err().code, RefusalCode::DirectCall);
        assert!(made.0.is_empty());
    }
}
