//! Search for tools and plans by text, among those that a caller can see.

use crate::catalog::ranking::{at, of_tool};
use crate::handles::Catalog;
use kernel::definition::plan::Plan;
use kernel::definition::text_search::{SearchItem, find, find_fitting};
use kernel::tool::call::{Caller, ToolSpec};
use std::sync::Arc;

/// What fits a text, best first.
#[derive(Debug, Default)]
pub struct SearchResults {
    pub tools: Vec<Arc<ToolSpec>>,
    pub plans: Vec<Arc<Plan>>,
}

impl Catalog<'_> {
    /// The tools and plans that this caller sees and that fit a text, at most so many together.
    pub fn find(self, caller: &Caller, text: &str, most: usize) -> SearchResults {
        let tools = self.shared.gate.visible(caller);
        let plans = self.plans(caller);
        let items: Vec<SearchItem<'_>> =
            tools.iter().map(|spec| of_tool(spec)).chain(plans.iter().map(of_plan)).collect();
        let mut found = SearchResults::default();
        for position in find(text, &items, most) {
            match position.checked_sub(tools.len()) {
                None => found.tools.extend(tools.get(position).cloned()),
                Some(position) => found.plans.extend(plans.get(position).cloned()),
            }
        }
        found
    }

    /// The plans that this caller sees and that fit a text, at most so many.
    pub fn find_plans(self, caller: &Caller, text: &str, most: usize) -> Vec<Arc<Plan>> {
        let plans = self.plans(caller);
        let items: Vec<SearchItem<'_>> = plans.iter().map(of_plan).collect();
        at(&plans, find(text, &items, most))
    }

    /// The plans that this caller sees and that do all that a text says, as far as words can tell.
    pub(crate) fn fitting_plans(self, caller: &Caller, text: &str, most: usize) -> Vec<Arc<Plan>> {
        let plans = self.plans(caller);
        let items: Vec<SearchItem<'_>> = plans.iter().map(of_plan).collect();
        at(&plans, find_fitting(text, &items, most))
    }
}

fn of_plan(plan: &Arc<Plan>) -> SearchItem<'_> {
    SearchItem {
        id: plan.id.as_str(),
        description: &plan.description,
        parameters: plan.parameters.as_deref(),
        examples: plan.examples.iter().map(|example| example.name.as_str()).collect(),
    }
}
