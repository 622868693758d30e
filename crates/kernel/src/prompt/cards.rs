//! The tools that an agent's model sees, under names that every provider takes.

use crate::conversation::llm::ToolCard;
use crate::definition::agent::{Agent, CLARIFY};
use crate::event::Route;
use crate::tool::call::ToolSpec;
use crate::values::ids::ToolName;
use crate::values::names::for_models;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tools of one prompt.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cards {
    /// As the model sees them.
    pub shown: Vec<ToolCard>,
    /// What each of its names stands for.
    pub tools: BTreeMap<String, ToolName>,
}

impl Cards {
    /// What this agent sees of these tools where its router led so; nothing after a refusal.
    pub fn of(agent: &Agent, route: Option<&Route>, specs: &[Arc<ToolSpec>]) -> Self {
        let mut cards = Self::default();
        if route.is_some_and(|route| !route.allow) {
            return cards;
        }
        let allowed = route.map(|route| route.types.as_slice());
        for spec in specs.iter().filter(|spec| agent.sees(&spec.name, allowed)) {
            let name = for_models(spec.name.as_str());
            // The agent's own question has that name, and one name is one tool's.
            if name == CLARIFY || cards.tools.contains_key(&name) {
                continue;
            }
            cards.shown.push(ToolCard {
                name: name.clone(),
                description: spec.description.clone(),
                input_schema: spec.input_schema.clone(),
            });
            cards.tools.insert(name, spec.name.clone());
        }
        cards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::agent::{AgentLimits, ToolType};
    use crate::tool::call::{Pace, Reach, Yields};
    use crate::tool::rules::Pattern;
    use crate::values::ids::ContentHash;
    use serde_json::{Value, json};

    fn spec(name: &str) -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: name.into(),
            title: name.into(),
            description: name.into(),
            input_schema: Arc::new(json!({})),
            output_schema: None,
            reach: Reach::Reads,
            idempotent: false,
            tags: Vec::new(),
            pace: Pace::Quick,
            yields: Yields::Value,
            unrecorded: false,
            listed: None,
        })
    }

    fn agent(types: &[(&str, &str)]) -> Agent {
        let kind = |(name, tools): &(&str, &str)| {
            let tools = vec![Pattern::new(tools).unwrap()];
            ((*name).to_owned(), ToolType { description: String::new(), tools })
        };
        Agent {
            name: "a".into(),
            title: "A".into(),
            description: String::new(),
            model: "m".into(),
            router_model: None,
            commands: false,
            routed: !types.is_empty(),
            prompt: Vec::new(),
            enabled: None,
            types: types.iter().map(kind).collect(),
            approve: Vec::new(),
            limits: AgentLimits::default(),
            zone: None,
            source: Arc::new(Value::Null),
            hash: ContentHash::of(b""),
        }
    }

    fn names(agent: &Agent, route: Option<&Route>) -> Vec<String> {
        let specs = ["events::list", "maps::find", CLARIFY].map(spec);
        Cards::of(agent, route, &specs).tools.into_keys().collect()
    }

    #[test]
    fn an_agent_sees_what_its_router_allows() {
        assert_eq!(names(&agent(&[]), None), ["events__list", "maps__find"]);
        let typed = agent(&[("calendar", "events::*"), ("maps", "maps::*")]);
        let to = |types: &[&str]| Route {
            allow: true,
            note: String::new(),
            types: types.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(names(&typed, Some(&to(&["maps"]))), ["maps__find"]);
        assert_eq!(names(&typed, Some(&to(&[]))), Vec::<String>::new());
        let refused = Route { allow: false, ..to(&["maps"]) };
        assert_eq!(names(&typed, Some(&refused)), Vec::<String>::new());
        assert_eq!(names(&agent(&[]), Some(&refused)), Vec::<String>::new());
    }
}
