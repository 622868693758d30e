//! Rules for failed steps that apply in a realm beside those of plans, and the correction plans
//! that rules name.

use super::Catalog;
use crate::refusal::Result;
use kernel::definition::plan::Plan;
use kernel::definition::plan::mistake::{Mistake, Position};
use kernel::definition::rule::{Rule, Rules};
use kernel::values::ids::{PlanId, RealmId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the rules of a project's settings stand: those of each list in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RulePlaces {
    /// Those of `[supervisor]`.
    pub project: Vec<RulePlace>,
    /// Those of `[realms.<name>.supervisor]`.
    pub realms: BTreeMap<RealmId, Vec<RulePlace>>,
}

/// Where one rule stands; one that runs a plan where it names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePlace {
    /// The file, as a person would name it.
    pub file: String,
    pub position: Position,
}

impl RulePlace {
    fn mistake(&self, mistake: Mistake) -> Mistake {
        Mistake { file: Some(self.file.clone()), ..mistake.at(self.position, "") }
    }
}

/// The rules of one list of a project's settings.
pub(crate) struct ListedRules<'a> {
    pub(super) rules: &'a Rules,
    /// Where they stand; none for rules of no file.
    pub(super) places: &'a [RulePlace],
    /// The realm whose own they are, if they are not every realm's.
    pub(super) realm: Option<&'a RealmId>,
}

impl Catalog {
    /// What is done about failed steps of this realm's runs, beside what their plans say.
    pub(crate) fn rules(&self, realm: &RealmId) -> Arc<Rules> {
        self.known(realm, |known| known.rules.clone())
    }

    /// The same from now on, for runs that begin; or what is wrong with them.
    pub(crate) fn set_rules(
        &self,
        realm: &RealmId,
        listed: &ListedRules<'_>,
    ) -> Result<(), Vec<Mistake>> {
        let wrong = lost_plans(listed, |id| self.plan(realm, id).is_some());
        if !wrong.is_empty() {
            return Err(wrong);
        }
        self.change(realm, |known| {
            known.rules = Arc::new(listed.rules.clone());
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
pub(super) fn lost_plans(
    listed: &ListedRules<'_>,
    is_there: impl Fn(&PlanId) -> bool,
) -> Vec<Mistake> {
    let table = match listed.realm {
        Some(realm) => format!("[realms.{realm}.supervisor]"),
        None => "[supervisor]".to_owned(),
    };
    let mut lost = Vec::new();
    for (index, rule) in listed.rules.project.iter().enumerate() {
        let Some(plan) = rule.plan().filter(|plan| !is_there(plan)) else { continue };
        let message = format!("rule {} of `{table}`: there is no plan `{plan}`", index + 1);
        let mistake = Mistake::error(message).hint("`waypost plan ls` lists the plans");
        lost.push(match listed.places.get(index) {
            Some(place) => place.mistake(mistake),
            None => mistake,
        });
    }
    lost
}
