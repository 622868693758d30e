//! The agents of a realm in the catalog. A change of one drops the closures that pin it: runs that
//! began keep theirs.

use super::{Catalog, ListChanges, in_file, sound};
use crate::catalog::roster::{KnownAgent, Roster, TalkPlan, talk_plan};
use kernel::definition::agent::Agent;
use kernel::definition::agent_reader::read_text;
use kernel::definition::plan::mistake::{Mistake, Position};
use kernel::definition::plan::source::{Node, child_pointer};
use kernel::values::ids::{AgentName, RealmId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An agent's text and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// The file, as a person would name it.
    pub file: String,
    pub text: String,
}

/// The keys under which an agent names tools.
const NAMING_TOOLS: [&str; 3] = ["enabledTools", "tool_types", "approve"];

impl Catalog {
    pub(crate) fn agent(&self, realm: &RealmId, name: &str) -> Option<KnownAgent> {
        self.known(realm, |known| known.agents.agent(name))
    }

    /// All of them, by name.
    pub(crate) fn agents(&self, realm: &RealmId) -> Vec<KnownAgent> {
        self.known(realm, |known| known.agents.all())
    }

    /// The files bring these agents now, and no others. All mistakes of all of them are reported,
    /// and nothing changes if one is wrong.
    pub(crate) fn set_filed_agents(
        &self,
        realm: &RealmId,
        files: &[AgentFile],
    ) -> Result<Vec<Mistake>, Vec<Mistake>> {
        let (agents, mistakes) = self.read_agents(files);
        let mistakes = sound(mistakes)?;
        self.change_agents(realm, |roster| {
            roster.set_filed(agents);
        });
        Ok(mistakes)
    }

    /// Reads agents that came as files, without adding them, and says all that is wrong with them.
    pub(super) fn read_agents(&self, files: &[AgentFile]) -> (Vec<TalkPlan>, Vec<Mistake>) {
        let mut mistakes = Vec::new();
        let mut read: BTreeMap<AgentName, (TalkPlan, &str)> = BTreeMap::new();
        for file in files {
            match self.read_filed(file) {
                Ok((talked, warnings)) => {
                    mistakes.extend(warnings);
                    let name = talked.0.name.clone();
                    match read.get(&name) {
                        Some((_, first)) => mistakes.push(twice(&name, first, file)),
                        None => {
                            read.insert(name, (talked, &file.file));
                        }
                    }
                }
                Err(found) => mistakes.extend(found),
            }
        }
        (read.into_values().map(|(talked, _)| talked).collect(), mistakes)
    }

    fn read_filed(&self, file: &AgentFile) -> Result<(TalkPlan, Vec<Mistake>), Vec<Mistake>> {
        let (agent, warnings) = read_text(&file.text, &file.file, &self.limits)?;
        let filed = |found: Vec<Mistake>| -> Vec<Mistake> {
            // Read once more, for the lines alone.
            let node = Node::parse(&file.text, &self.limits).ok();
            let placed = |mistake: Mistake| {
                let pointer = mistake.pointer.clone();
                let at = node.as_ref().map(|node| node.position(&pointer)).unwrap_or_default();
                in_file(mistake.at(at, pointer), &file.file)
            };
            found.into_iter().map(placed).collect()
        };
        Ok((self.talked(agent).map_err(filed)?, warnings))
    }

    /// An agent with the plan by which it is talked to, unless it names a tool that the settings
    /// leave out.
    pub(crate) fn talked(&self, agent: Agent) -> Result<TalkPlan, Vec<Mistake>> {
        let mut left_out = Vec::new();
        for key in NAMING_TOOLS {
            self.note_left_out(&agent.source[key], &format!("/{key}"), &mut left_out);
        }
        if !left_out.is_empty() {
            return Err(left_out);
        }
        let plan = talk_plan(&agent.name)?;
        Ok((Arc::new(agent), plan))
    }

    /// Notes the tools below a key that have a switch, and that no one else brings.
    fn note_left_out(&self, value: &Value, pointer: &str, found: &mut Vec<Mistake>) {
        match value {
            Value::String(name) => {
                let Some(switch) = self.registry.switch_of(name) else { return };
                let mistake = Mistake::error(format!("there is no tool `{name}`")).hint(switch);
                found.push(mistake.at(Position::default(), pointer));
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.note_left_out(item, &format!("{pointer}/{index}"), found);
                }
            }
            Value::Object(fields) => {
                // A type of tools has a description in words.
                for (key, field) in fields.iter().filter(|(key, _)| *key != "description") {
                    self.note_left_out(field, &child_pointer(pointer, key), found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The store has this agent in this version now.
    pub(crate) fn set_stored_agent(&self, realm: &RealmId, version: u64, talked: TalkPlan) {
        self.change_agents(realm, |roster| roster.set_stored(version, talked));
    }

    /// The store does not have it any more.
    pub(crate) fn remove_stored_agent(&self, realm: &RealmId, name: &str) {
        self.change_agents(realm, |roster| roster.remove_stored(name));
    }

    fn change_agents(&self, realm: &RealmId, change: impl FnOnce(&mut Roster)) {
        self.change(realm, |known| {
            change(&mut known.agents);
            known.changed();
        });
        // Agents are prompts of MCP clients, which are notified when there are others.
        self.tell(realm, ListChanges::AGENTS);
    }
}

fn twice(name: &AgentName, first: &str, file: &AgentFile) -> Mistake {
    let message = format!("agent `{name}` is already defined in {first}");
    in_file(Mistake::error(message).hint("give one of them another refName"), &file.file)
}
