//! Agents as endpoints see them: brought by files, stored, listed, removed.

use crate::catalog::AgentFile;
use crate::catalog::roster::{KnownAgent, TalkPlan};
use crate::handles::Catalog;
use crate::refusal::{Refusal, RefusalCode, RefusalKind, Result};
use crate::request::RegisteredAgent;
use kernel::contracts::policy::Resource;
use kernel::contracts::{Definition, Precondition};
use kernel::definition::agent_reader::read_value;
use kernel::definition::plan::mistake::Mistake;
use kernel::tool::call::Caller;
use kernel::values::ids::{AgentName, RealmId};
use serde_json::Value;

const AGENT: &str = "agent";

impl Catalog<'_> {
    /// A project's files bring these agents now, in place of those that they brought before: all
    /// of them or none. Gives warnings, or all mistakes. Load them before the plans that name them.
    pub fn set_agents_from_files(
        self,
        realm: &RealmId,
        files: Vec<AgentFile>,
    ) -> Result<Vec<Mistake>, Vec<Mistake>> {
        self.shared.catalog.set_filed_agents(realm, &files)
    }

    /// All agents of a realm, by name: for the server itself, which is nobody's caller.
    pub fn all_agents(self, realm: &RealmId) -> Vec<KnownAgent> {
        self.shared.catalog.agents(realm)
    }

    /// The agents of the caller's realm, by name.
    pub fn agents(self, caller: &Caller) -> Vec<KnownAgent> {
        self.shared.gate.readable_agents(caller)
    }

    pub fn agent(self, caller: &Caller, name: &AgentName) -> Option<KnownAgent> {
        let known = self.shared.catalog.agent(&caller.realm, name.as_str())?;
        self.shared.gate.reads(caller, Resource::Agent(name.as_str())).then_some(known)
    }

    /// Stores an agent and adds it to the catalog, if `expected` is the newest version now (0:
    /// there is none) or nothing is expected. Runs that began keep the version that they pin.
    pub async fn register_agent(
        self,
        caller: &Caller,
        source: Value,
        expected: Option<u64>,
    ) -> Result<RegisteredAgent> {
        let (talked, _) = self.read_agent(&source).map_err(|found| invalid_agent(&found))?;
        let agent = talked.0.clone();
        let judged = self.may_define(caller, AGENT, agent.name.as_str()).await?;
        let definition = Definition {
            kind: AGENT.to_owned(),
            name: agent.name.to_string(),
            version: 0,
            body: (*agent.source).clone(),
            updated_at: self.shared.clock.now(),
            by: caller.owner(),
        };
        let against = Precondition { version: expected, owner: judged };
        let stored = self.store(caller, definition, against).await?;
        self.shared.catalog.set_stored_agent(&caller.realm, stored.version, talked);
        Ok(RegisteredAgent { agent, version: stored.version, updated_at: stored.updated_at })
    }

    /// Removes a stored agent. One that is only in a file cannot be removed here.
    pub async fn remove_agent(self, caller: &Caller, name: &AgentName) -> Result<()> {
        let realm = &caller.realm;
        let resource = Resource::Agent(name.as_str());
        let refused = |refusal: Refusal| {
            let is_denied = refusal.kind() == RefusalKind::Forbidden;
            match is_denied && !self.shared.gate.could_read(caller, resource) {
                true => no_agent(name),
                false => refusal,
            }
        };
        let judged = self.may_define(caller, AGENT, name.as_str()).await.map_err(refused)?;
        let removed = self.discard(caller, AGENT, name.as_str(), judged).await.map_err(refused)?;
        self.shared.catalog.remove_stored_agent(realm, name.as_str());
        if removed {
            return Ok(());
        }
        Err(match self.agent(caller, name) {
            Some(_) => {
                let message = format!("agent `{name}` is in a file of the project");
                Refusal::new(RefusalCode::AgentInFile, message).hint("remove the file")
            }
            None => no_agent(name),
        })
    }

    /// Adds the realm's stored agents to the catalog. One that no longer fits is left out and
    /// logged: the others must still serve.
    pub async fn load_stored_agents(self, realm: &RealmId) -> Result<()> {
        for definition in self.shared.definitions.list(realm, AGENT).await? {
            match self.read_agent(&definition.body) {
                Ok((talked, _)) => {
                    self.shared.catalog.set_stored_agent(realm, definition.version, talked);
                }
                Err(found) => {
                    let refusal = invalid_agent(&found);
                    tracing::warn!(%realm, agent = definition.name, "{}", refusal.message);
                }
            }
        }
        Ok(())
    }

    fn read_agent(self, source: &Value) -> Result<(TalkPlan, Vec<Mistake>), Vec<Mistake>> {
        let (agent, warnings) = read_value(source)?;
        Ok((self.shared.catalog.talked(agent)?, warnings))
    }
}

/// There is no such agent.
pub(crate) fn no_agent(name: &AgentName) -> Refusal {
    Refusal::not_found("agent", name).hint("`waypost agent ls` lists the agents")
}

fn invalid_agent(mistakes: &[Mistake]) -> Refusal {
    Refusal::of_mistakes(RefusalCode::InvalidAgent, "agent", mistakes)
}
