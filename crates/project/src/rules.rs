//! Reports rules for failed steps that name unknown models, when a server starts.

use crate::models::instead;
use engine::{PlanFile, ProjectFiles};
use kernel::definition::plan::Plan;
use kernel::definition::plan::flow::read_generated;
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::plan::source::Node;
use kernel::definition::rule::Rule;
use kernel::limits::Limits;

/// The model that the only one stands for.
const DEFAULT_MODEL: &str = "default";

/// Warnings of rules that ask models which are not there: those of the project, of its realms, and
/// of its plans.
pub fn without_models(files: &ProjectFiles, models: &[String], limits: &Limits) -> Vec<Mistake> {
    let missing = |rule: &Rule| missing(rule, models);
    let all = std::iter::once(&files.rules).chain(files.realm_rules.values());
    let mut warnings: Vec<Mistake> =
        all.flat_map(|rules| &rules.project).filter_map(missing).collect();
    for PlanFile { file, text, .. } in &files.plans {
        // Its reader reports what cannot be read.
        let Some(plan) = read(text, limits) else { continue };
        let steps = plan.index.keys().filter_map(|id| plan.step(id));
        let rules = steps.flat_map(|step| &step.rules).chain(&plan.rules);
        let found = rules.filter_map(missing);
        warnings.extend(found.map(|mistake| Mistake { file: Some(file.clone()), ..mistake }));
    }
    warnings
}

fn read(text: &str, limits: &Limits) -> Option<Plan> {
    let node = Node::parse(text, limits).ok()?;
    read_generated(&node.to_value(), limits).ok()
}

fn missing(rule: &Rule, models: &[String]) -> Option<Mistake> {
    let model = rule.model()?;
    let stands_in = &**model == DEFAULT_MODEL && models.len() == 1;
    if stands_in || models.iter().any(|known| **known == **model) {
        return None;
    }
    let what = format!("a rule asks the model `{model}`, which is not there: it proposes nothing");
    Some(Mistake::warning(what).hint(instead(model, models)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::definition::rule::{RuleAction, Rules};

    #[test]
    fn an_unknown_model_is_reported_with_its_file() {
        let text = "planId: a/b\non_error: [{propose: {model: fsat}}]\nsteps:\n  \
                    - id: c\n    type: tool_call\n    toolId: x\n    arguments: {}\n    \
                    on_error: [{draft: {}}]\n    nextStepId: e\n  \
                    - {id: e, type: final_response, message: ok}\n";
        let file = PlanFile {
            file: "plans/a/b.yaml".to_owned(),
            text: text.to_owned(),
            default_id: "a/b".into(),
        };
        let project = vec![Rule::always(RuleAction::Propose("gone".into()))];
        let rules = Rules { project, ..Rules::default() };
        let files = ProjectFiles { plans: vec![file], rules, ..ProjectFiles::default() };
        let told = |models: &[&str]| -> Vec<String> {
            let models: Vec<String> = models.iter().map(|name| (*name).to_owned()).collect();
            let found = without_models(&files, &models, &Limits::default());
            found.iter().map(Mistake::to_string).collect()
        };
        let one = told(&["fast"]);
        assert_eq!(one.len(), 2, "the only model stands for `default`: {one:?}");
        assert!(one[0].contains("the model `gone`"), "{one:?}");
        assert!(one[1].starts_with("plans/a/b.yaml"), "{one:?}");
        assert!(one[1].contains("did you mean `fast`?"), "{one:?}");
        assert_eq!(told(&["fast", "slow"]).len(), 3);
        assert_eq!(told(&["fsat", "gone", "default"]), Vec::<String>::new());
    }
}
