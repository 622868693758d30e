//! The agents of a realm: those of the project's files, which go first, and stored ones. For each
//! there is a plan by which it is talked to.

use kernel::contracts::policy::Resource;
use kernel::definition::agent::{Agent, TALKS, talk_id};
use kernel::definition::pipeline::PIPELINES;
use kernel::definition::plan::Plan;
use kernel::definition::plan::flow::read_generated;
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use kernel::values::caller::Act;
use kernel::values::ids::{AgentName, PlanId};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An agent that is there.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownAgent {
    pub agent: Arc<Agent>,
    /// Its newest version in the store; none for one of the project's files.
    pub version: Option<u64>,
}

/// The act and resource of starting a plan of this id: plans of agents are talked to, and plans of
/// pipelines get cases.
pub(crate) fn starting(plan: &PlanId) -> (Act, Resource<'_>) {
    let id = plan.as_str();
    if let Some(agent) = id.strip_prefix(TALKS) {
        return (Act::Talk, Resource::Agent(agent));
    }
    match id.strip_prefix(PIPELINES) {
        Some(pipeline) => (Act::Submit, Resource::Pipeline(pipeline)),
        None => (Act::Run, Resource::Plan(id)),
    }
}

/// That plan: one step, and its answer.
pub(crate) fn talk_plan(agent: &AgentName) -> Result<Arc<Plan>, Vec<Mistake>> {
    let source = json!({
        "planId": talk_id(agent),
        "description": format!("says something to agent {agent}"),
        "parameters": {
            "type": "object",
            "properties": {"user_request": {"type": "string"}},
            "required": ["user_request"],
        },
        "startStepId": "work",
        "steps": [
            {"id": "work", "type": "agent", "agent": agent,
             "input": {"jsonPath": "$.promptInput.user_request"}, "saveAs": "answer",
             "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.answer"}},
        ],
    });
    // Ours, whatever limits plans of others have.
    read_generated(&source, &Limits::unbounded_plans()).map(Arc::new)
}

/// An agent and the plan by which it is talked to.
pub(crate) type TalkPlan = (Arc<Agent>, Arc<Plan>);

/// The agents of one realm.
#[derive(Default)]
pub(crate) struct Roster {
    filed: BTreeMap<AgentName, TalkPlan>,
    stored: BTreeMap<AgentName, (u64, TalkPlan)>,
}

impl Roster {
    pub(crate) fn agent(&self, name: &str) -> Option<KnownAgent> {
        if let Some((agent, _)) = self.filed.get(name) {
            return Some(KnownAgent { agent: agent.clone(), version: None });
        }
        let (version, (agent, _)) = self.stored.get(name)?;
        Some(KnownAgent { agent: agent.clone(), version: Some(*version) })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filed.is_empty() && self.stored.is_empty()
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<KnownAgent> {
        let mut names: Vec<&AgentName> = self.filed.keys().chain(self.stored.keys()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| self.agent(name.as_str())).collect()
    }

    /// The plan with this id, if one of them is talked to by it.
    pub(crate) fn plan(&self, id: &PlanId) -> Option<Arc<Plan>> {
        let name = id.as_str().strip_prefix(TALKS)?;
        let stored = || self.stored.get(name).map(|(_, talked)| talked);
        let (_, plan) = self.filed.get(name).or_else(stored)?;
        Some(plan.clone())
    }

    /// The names of those that are there whatever the files bring.
    pub(crate) fn unfiled(&self) -> Vec<AgentName> {
        let all = self.all().into_iter().map(|known| known.agent.name.clone());
        let stays =
            |name: &AgentName| !self.filed.contains_key(name) || self.stored.contains_key(name);
        all.filter(stays).collect()
    }

    /// The files bring these now, and no others. Says whether that is something else than before.
    pub(crate) fn set_filed(&mut self, agents: Vec<TalkPlan>) -> bool {
        let named = |talked: TalkPlan| (talked.0.name.clone(), talked);
        let filed: BTreeMap<AgentName, TalkPlan> = agents.into_iter().map(named).collect();
        let before = std::mem::replace(&mut self.filed, filed);
        // How they are talked to follows from who they are.
        let agents = self.filed.values().map(|(agent, _)| agent);
        !agents.eq(before.values().map(|(agent, _)| agent))
    }

    /// The store has this version now. Of two that come at once the newer one stays.
    pub(crate) fn set_stored(&mut self, version: u64, talked: TalkPlan) {
        let name = talked.0.name.clone();
        let known = self.stored.get(&name).map_or(0, |(known, _)| *known);
        if version > known {
            self.stored.insert(name, (version, talked));
        }
    }

    /// The store has none of this name any more.
    pub(crate) fn remove_stored(&mut self, name: &str) {
        self.stored.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::definition::agent::AgentLimits;
    use kernel::values::ids::ContentHash;
    use serde_json::Value;

    fn talked(name: &str, title: &str) -> TalkPlan {
        let agent = Agent {
            name: name.into(),
            title: title.into(),
            description: String::new(),
            model: "m".into(),
            router_model: None,
            commands: false,
            routed: false,
            prompt: Vec::new(),
            enabled: None,
            types: BTreeMap::new(),
            approve: Vec::new(),
            limits: AgentLimits::default(),
            zone: None,
            source: Arc::new(Value::Null),
            hash: ContentHash::of(title.as_bytes()),
        };
        let plan = talk_plan(&agent.name).unwrap();
        (Arc::new(agent), plan)
    }

    fn shown(roster: &Roster) -> Vec<(String, Option<u64>)> {
        let all = roster.all();
        all.iter().map(|known| (known.agent.title.clone(), known.version)).collect()
    }

    #[test]
    fn a_filed_agent_shadows_a_stored_one() {
        let mut roster = Roster::default();
        let filed = || vec![talked("a", "filed a"), talked("b", "filed b")];
        assert!(roster.set_filed(filed()));
        assert!(!roster.set_filed(filed()), "they are the same");
        roster.set_stored(2, talked("b", "stored b"));
        roster.set_stored(1, talked("b", "older b"));
        roster.set_stored(1, talked("c", "stored c"));
        let all = [("filed a", None), ("filed b", None), ("stored c", Some(1))];
        assert_eq!(shown(&roster), all.map(|(title, version)| (title.to_owned(), version)));
        assert_eq!(roster.plan(&"agent/b".into()).unwrap().id.as_str(), "agent/b");
        let unfiled: Vec<String> = roster.unfiled().iter().map(ToString::to_string).collect();
        assert_eq!(unfiled, ["b", "c"]);
        roster.remove_stored("c");
        assert!(roster.set_filed(Vec::new()));
        assert_eq!(shown(&roster), [("stored b".to_owned(), Some(2))]);
        assert!(roster.plan(&"agent/a".into()).is_none());
        assert!(roster.plan(&"agent/c".into()).is_none());
    }
}
