//! The tools that a model sees, under names that every provider accepts, and which tool a name of
//! the model means.

use crate::conversation::llm::ToolCard;
use crate::definition::agent::{Agent, CLARIFY};
use crate::event::Route;
use crate::tool::call::ToolSpec;
use crate::values::ids::ToolName;
use crate::values::names::{escaped_for_models, for_models};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The tools of one prompt.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCards {
    /// As the model sees them.
    pub shown: Vec<ToolCard>,
    pub tools: SeenTools,
}

/// The tools that a model sees, by the names under which it sees them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeenTools(BTreeMap<String, ToolName>);

/// How a model's tool name resolves.
#[derive(Debug, PartialEq)]
pub enum ToolMatch<'a> {
    Tool(&'a ToolName),
    /// Tools that read alike; it sees them under these names.
    Unclear(Vec<&'a str>),
    /// No tool that it sees.
    Nothing,
}

impl ToolCards {
    /// The tools that this agent sees after its router's decision; none after a refusal.
    pub fn of(agent: &Agent, route: Option<&Route>, specs: &[Arc<ToolSpec>]) -> Self {
        let mut cards = Self::default();
        if route.is_some_and(|route| !route.allow) {
            return cards;
        }
        // Of all tools of the agent, so that a name is the same whatever the router allows.
        let all = specs.iter().filter(|spec| agent.sees(&spec.name, None));
        let claims = claims(all.map(|spec| spec.name.as_str()));
        let allowed = route.map(|route| route.types.as_slice());
        for spec in specs.iter().filter(|spec| agent.sees(&spec.name, allowed)) {
            let short = for_models(spec.name.as_str());
            let is_clear = claims.get(&short) == Some(&1);
            let name = if is_clear { short } else { escaped_for_models(spec.name.as_str()) };
            // The agent's own question has that name, and one name is one tool's.
            if name == CLARIFY || cards.tools.0.contains_key(&name) {
                continue;
            }
            cards.shown.push(ToolCard {
                name: name.clone(),
                description: spec.description.clone(),
                input_schema: spec.input_schema.clone(),
            });
            cards.tools.0.insert(name, spec.name.clone());
        }
        cards
    }
}

/// How many of these tools could be meant by a name, short or escaped.
fn claims<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<String, usize> {
    let mut claims: HashMap<String, usize> = HashMap::new();
    for name in names {
        let short = for_models(name);
        let escaped = escaped_for_models(name);
        if escaped != short {
            *claims.entry(escaped).or_default() += 1;
        }
        *claims.entry(short).or_default() += 1;
    }
    claims
}

impl SeenTools {
    /// The names that the model sees.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The name under which it sees a tool of ours.
    pub fn name_of(&self, tool: &str) -> Option<&str> {
        let own = |(_, own): &(&String, &ToolName)| own.as_str() == tool;
        self.0.iter().find(own).map(|(seen, _)| seen.as_str())
    }

    /// What it means by this name: as it sees it, or escaped, as a conversation or a prompt may
    /// have it from when two short names were alike. A short name that was clear once and is not
    /// any more is no tool's.
    pub fn meant(&self, said: &str) -> ToolMatch<'_> {
        if let Some(tool) = self.0.get(said) {
            return ToolMatch::Tool(tool);
        }
        let escaped = |tool: &&ToolName| escaped_for_models(tool.as_str()) == said;
        if let Some(tool) = self.0.values().find(escaped) {
            return ToolMatch::Tool(tool);
        }
        let alike = self.0.iter().filter(|(_, tool)| for_models(tool.as_str()) == said);
        let alike: Vec<&str> = alike.map(|(seen, _)| seen.as_str()).collect();
        if alike.is_empty() { ToolMatch::Nothing } else { ToolMatch::Unclear(alike) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::agent::{AgentLimits, ToolType};
    use crate::tool::call::{OutputKind, Pace, Reach};
    use crate::tool::rules::Pattern;
    use crate::values::ids::ContentHash;
    use serde_json::{Value, json};
    use std::slice::from_ref;

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
            yields: OutputKind::Value,
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

    fn seen(agent: &Agent, route: Option<&Route>, specs: &[Arc<ToolSpec>]) -> Vec<String> {
        ToolCards::of(agent, route, specs).tools.names().map(str::to_owned).collect()
    }

    fn names(agent: &Agent, route: Option<&Route>) -> Vec<String> {
        let specs = ["events::list", "maps::find", CLARIFY].map(spec);
        seen(agent, route, &specs)
    }

    #[test]
    fn an_agent_sees_only_tools_that_its_router_allows() {
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

    #[test]
    fn tool_names_are_short_unless_ambiguous() {
        let dotted = spec("github.create_event");
        assert_eq!(seen(&agent(&[]), None, from_ref(&dotted)), ["github__create_event"]);
        let both = [dotted.clone(), spec("github__create_event")];
        let escaped = ["github_-2ecreate_event", "github_-5f_create_event"];
        assert_eq!(seen(&agent(&[]), None, &both), escaped);
        let colons = [dotted.clone(), spec("github::create_event")];
        let names = ["github_-2ecreate_event", "github__create_event"];
        assert_eq!(seen(&agent(&[]), None, &colons), names);
        // What its router leaves out counts, for a name must not change from request to request;
        // what the agent can never see does not.
        let typed = agent(&[("one", "github.*"), ("other", "github__*")]);
        let one = Route { allow: true, note: String::new(), types: vec!["one".to_owned()] };
        assert_eq!(seen(&typed, Some(&one), &both), ["github_-2ecreate_event"]);
        assert_eq!(seen(&agent(&[("one", "github.*")]), None, &both), ["github__create_event"]);
    }

    #[test]
    fn a_short_name_never_matches_another_tool() {
        let letters = ["_", "-", "::", "/", ".", "a", "2", "e"];
        let mut names = vec!["a".to_owned()];
        for _ in 0..4 {
            let longer = |name: &String| letters.map(|letter| format!("{name}{letter}"));
            let more: Vec<String> = names.iter().flat_map(longer).collect();
            names.extend(more);
            names.sort();
            names.dedup();
        }
        let specs: Vec<Arc<ToolSpec>> = names.iter().map(|name| spec(name)).collect();
        let cards = ToolCards::of(&agent(&[]), None, &specs);
        assert_eq!(cards.shown.len(), specs.len(), "every tool is shown");
        for card in &cards.shown {
            let ToolMatch::Tool(tool) = cards.tools.meant(&card.name) else {
                panic!("{}", card.name)
            };
            assert_eq!(card.description, tool.as_str());
        }
    }

    #[test]
    fn escaped_names_are_understood_and_unclear_ones_are_not_guessed() {
        let dotted = spec("github.create_event");
        let alone = ToolCards::of(&agent(&[]), None, from_ref(&dotted)).tools;
        for said in ["github__create_event", "github_-2ecreate_event"] {
            assert_eq!(alone.meant(said), ToolMatch::Tool(&dotted.name), "{said}");
        }
        assert_eq!(alone.meant("github.create_event"), ToolMatch::Nothing);
        assert_eq!(alone.name_of("github.create_event"), Some("github__create_event"));
        let both = [dotted.clone(), spec("github__create_event")];
        let both = ToolCards::of(&agent(&[]), None, &both).tools;
        let names = vec!["github_-2ecreate_event", "github_-5f_create_event"];
        assert_eq!(both.meant("github__create_event"), ToolMatch::Unclear(names));
        assert_eq!(both.meant("github_-2ecreate_event"), ToolMatch::Tool(&dotted.name));
        // A name that is too long for models cannot be turned back, and is understood all the same.
        let long = spec(&format!("github.{}", "a".repeat(60)));
        let cards = ToolCards::of(&agent(&[]), None, from_ref(&long)).tools;
        let escaped = escaped_for_models(long.name.as_str());
        assert_eq!(cards.meant(&escaped), ToolMatch::Tool(&long.name));
    }
}
