//! Rules for failed steps, and the corrections that they name. Which rules a step has follows from
//! its id alone, so that a seed draws the same plans with them and without.

use serde_json::{Value, json};

/// Looks, writes, and has the step tried again.
const MEND: &str = "sim/mend";
/// Looks, and continues without the step.
const LOOK: &str = "sim/look";
/// Looks twice, and says that the step did happen.
const FIND: &str = "sim/find";

/// The model that is asked about failed steps.
pub const ADVISER: &str = "adviser";

/// A number that follows from the id of a step.
fn number_of(step: &str) -> u32 {
    step.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

/// The rules of a step that asks a model, if it does.
pub fn advice_of(step: &str) -> Option<Value> {
    let rules = match number_of(step) % 4 {
        0 => json!([{"propose": {"model": ADVISER}}]),
        1 => json!([{"draft": {"model": ADVISER}}]),
        2 => json!([{"draft": {"model": ADVISER, "auto": "reads"}}]),
        _ => return None,
    };
    Some(rules)
}

/// The rules of a step, if it has some.
pub fn rules_of(step: &str) -> Option<Value> {
    let rules = match number_of(step) % 5 {
        0 => json!([{"retry": {"times": 2, "wait_ms": 300}}, "ask"]),
        1 => json!([
            {"when": {"how": ["not_sent", "failed"]}, "retry": {"times": 1, "wait_ms": 2_500}},
            {"plan": MEND},
        ]),
        2 => json!([{"plan": LOOK}, {"retry": {"times": 1, "wait_ms": 0}}]),
        3 => json!([
            {"when": {"how": "unknown"}, "plan": FIND},
            {"retry": {"times": 2, "wait_ms": 4_000, "factor": 1.5}},
        ]),
        _ => return None,
    };
    Some(rules)
}

/// The corrections, each with its id.
pub fn corrections() -> Vec<(&'static str, Value)> {
    let call = |id: &str, tool: &str, next: &str| {
        json!({"id": id, "type": "tool_call", "toolId": tool, "arguments": {"step": id},
               "saveAs": id, "nextStepId": next})
    };
    let end =
        |id: &str, message: Value| json!({"id": id, "type": "final_response", "message": message});
    let plan = |id: &'static str, steps: Value| (id, json!({"planId": id, "steps": steps}));
    vec![
        plan(
            MEND,
            json!([
                call("mend1", "sim::read", "mend2"),
                call("mend2", "sim::write", "mend3"),
                end("mend3", json!({"action": "retry", "why": "it is mended"})),
            ]),
        ),
        plan(
            LOOK,
            json!([
                call("look1", "sim::keyed", "look2"),
                end("look2", json!({"action": "skip", "output": {"n": 7}})),
            ]),
        ),
        plan(
            FIND,
            json!([
                call("find1", "sim::read", "find2"),
                call("find2", "sim::read", "find3"),
                end("find3", json!({"action": "settle", "output": {"n": 7}, "why": "seen"})),
            ]),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_rules_of_every_kind() {
        let drawn: Vec<Option<Value>> =
            (0..40).map(|number| rules_of(&format!("p0s{number}"))).collect();
        let mut kinds: Vec<String> = drawn.iter().map(|rules| format!("{rules:?}")).collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), 5, "{kinds:?}");
        let advised = (0..40).filter_map(|number| advice_of(&format!("p0s{number}")));
        let mut kinds: Vec<String> = advised.map(|rules| rules.to_string()).collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), 3, "{kinds:?}");
    }
}
