//! What is done about failed steps of a realm's runs, beside what their plans say, and the plans
//! that rules name.

use super::Catalog;
use crate::refusal::Result;
use kernel::definition::plan::Plan;
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::rule::{Rule, Rules};
use kernel::values::ids::{PlanId, RealmId};
use std::sync::Arc;

impl Catalog {
    /// What is done about failed steps of this realm's runs, beside what their plans say.
    pub(crate) fn rules(&self, realm: &RealmId) -> Arc<Rules> {
        self.known(realm, |known| known.rules.clone())
    }

    /// The same from now on, for runs that begin; or what is wrong with them.
    pub(crate) fn set_rules(&self, realm: &RealmId, rules: Rules) -> Result<(), Vec<Mistake>> {
        let wrong = lost_plans(&rules, |id| self.plan(realm, id).is_some());
        if !wrong.is_empty() {
            return Err(wrong);
        }
        self.change(realm, |known| {
            known.rules = Arc::new(rules);
            known.changed();
        });
        Ok(())
    }
}

/// The plans that a plan's rules name.
pub(super) fn rule_plans(plan: &Plan) -> impl Iterator<Item = &PlanId> {
    let steps = plan.index.keys().filter_map(move |id| plan.step(id));
    steps.flat_map(|step| &step.rules).chain(&plan.rules).filter_map(Rule::plan)
}

/// The plans that a project's rules name and that are not there.
pub(super) fn lost_plans(rules: &Rules, is_there: impl Fn(&PlanId) -> bool) -> Vec<Mistake> {
    let named = (1..).zip(&rules.project).filter_map(|(number, rule)| Some((number, rule.plan()?)));
    let lost = named.filter(|(_, plan)| !is_there(plan));
    let told = |(number, plan): (usize, &PlanId)| {
        let message = format!("rule {number} of `[supervisor]`: there is no plan `{plan}`");
        Mistake::error(message).hint("`waypost plan ls` lists the plans")
    };
    lost.map(told).collect()
}
