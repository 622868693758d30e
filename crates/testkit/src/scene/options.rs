//! Options of a scene: the project's rules, and limits.

use super::Scene;
use kernel::definition::plan::read::Origin;
use kernel::definition::plan::rules::read_rules;
use kernel::definition::plan::source::Node;
use kernel::definition::rule::Rules;
use kernel::limits::Limits;
use std::str::FromStr;

/// What runs of this scene pin for their failed steps; nothing where the scene says nothing of it.
pub(super) fn rules(scene: &Scene) -> Option<Rules> {
    let built_in = scene.options.get("built_in").is_some_and(|word| word == "on");
    if scene.rules.is_empty() {
        return built_in.then(Rules::default);
    }
    let limits = Limits::default();
    let node = Node::parse(&scene.rules, &limits);
    let node = node.unwrap_or_else(|error| panic!("rules of a scene are no YAML: {error:?}"));
    let read = read_rules(&node, &Origin::default(), &limits);
    let (project, _) = read.unwrap_or_else(|error| panic!("rules of a scene: {error:?}"));
    Some(Rules { project, built_in })
}

/// The limits that its options set.
pub(super) fn limits(scene: &Scene) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in &scene.options {
        match name.as_str() {
            "step_visits_max" => limits.step_visits_max = number(value),
            "run_calls_max" => limits.run_calls_max = number(value),
            "frames_max" => limits.frames_max = number(value),
            "loop_items_max" => limits.loop_items_max = number(value),
            "plan_depth_max" => limits.plan_depth_max = number(value),
            "context_keys_max" => limits.context_keys_max = number(value),
            "event_bytes_max" => limits.event_bytes_max = number(value),
            "call_wants_max" => limits.call_wants_max = number(value),
            "case_requests_read_max" => {
                limits.case_requests_read_max = number(value);
            }
            "turn_attempts_max" => limits.turn_attempts_max = number(value),
            "step_corrections_max" => {
                limits.step_corrections_max = number(value);
            }
            "refused_waits_max" => limits.refused_waits_max = number(value),
            "run_proposals_max" => limits.run_proposals_max = number(value),
            "run_corrections_max" => limits.run_corrections_max = number(value),
            "turn_calls_max" => limits.turn_calls_max = number(value),
            _ => {}
        }
    }
    limits
}

fn number<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}
