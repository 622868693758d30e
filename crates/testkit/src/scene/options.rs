//! What a scene sets around its plans: the project's rules, and limits.

use super::Scene;
use kernel::definition::plan::read::Origin;
use kernel::definition::plan::rules::read_rules;
use kernel::definition::plan::source::Node;
use kernel::definition::rule::Rules;
use kernel::limits::Limits;

/// What runs of this scene pin for their failed steps; nothing, like runs of earlier releases,
/// where the scene says nothing of it.
pub(super) fn rules(scene: &Scene) -> Option<Rules> {
    let built_in = scene.options.get("built_in").is_some_and(|word| word == "on");
    if scene.rules.is_empty() {
        return built_in.then(Rules::default);
    }
    let limits = Limits::default();
    let node = Node::parse(&scene.rules, &limits).expect("rules are YAML");
    let (project, _) = read_rules(&node, &Origin::default(), &limits).expect("the rules are right");
    Some(Rules { project, built_in })
}

/// The limits that its options set.
pub(super) fn limits(scene: &Scene) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in &scene.options {
        match name.as_str() {
            "step_visits_max" => limits.step_visits_max = value.parse().expect("a number"),
            "run_calls_max" => limits.run_calls_max = value.parse().expect("a number"),
            "frames_max" => limits.frames_max = value.parse().expect("a number"),
            "loop_items_max" => limits.loop_items_max = value.parse().expect("a number"),
            "plan_depth_max" => limits.plan_depth_max = value.parse().expect("a number"),
            "context_keys_max" => limits.context_keys_max = value.parse().expect("a number"),
            "event_bytes_max" => limits.event_bytes_max = value.parse().expect("a number"),
            "call_wants_max" => limits.call_wants_max = value.parse().expect("a number"),
            "case_requests_read_max" => {
                limits.case_requests_read_max = value.parse().expect("a number");
            }
            "turn_attempts_max" => limits.turn_attempts_max = value.parse().expect("a number"),
            "step_corrections_max" => {
                limits.step_corrections_max = value.parse().expect("a number");
            }
            "refused_waits_max" => limits.refused_waits_max = value.parse().expect("a number"),
            "run_proposals_max" => limits.run_proposals_max = value.parse().expect("a number"),
            "run_corrections_max" => limits.run_corrections_max = value.parse().expect("a number"),
            "turn_calls_max" => limits.turn_calls_max = value.parse().expect("a number"),
            _ => {}
        }
    }
    limits
}
