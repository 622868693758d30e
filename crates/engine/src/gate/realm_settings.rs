//! Realm settings that no policy verdict covers: how many records a search returns, and which
//! agents are enabled.

use super::arrivals::MissingUpstream;
use super::{Gate, OutgoingCall, TOOL_NOT_FOUND};
use crate::catalog::registry::ListedTool;
use kernel::contracts::policy::Resource;
use kernel::definition::agent::Agent;
use kernel::definition::pipeline::PIPELINES;
use kernel::tool::call::Caller;
use kernel::tool::rules::Pattern;
use kernel::tool::search::limited;
use kernel::values::fault::Fault;
use kernel::values::ids::{AgentName, RealmId, ToolName};
use serde_json::Value;
use std::sync::Arc;

/// Fault of a turn of an agent that its realm does not have.
const AGENT_NOT_ENABLED: &str = "AgentNotEnabled";
/// Fault of a turn of an agent whose tools are not there yet.
const UPSTREAM_NOT_READY: &str = "UpstreamNotReady";
/// Hint for an absent upstream.
const RETRY_LATER: &str = "`waypost mcp ls` shows how it is; once it is ready, retry";

impl Gate {
    /// The arguments that are sent: those of the call, within the find limit of its realm. It is
    /// looked up here, so that a call that waited is sent within the limit of this moment.
    pub(super) fn within_find_limit(&self, call: &OutgoingCall, listed: &ListedTool) -> Arc<Value> {
        let tool = call.tool.as_str();
        let arguments = &call.arguments;
        // Those on records know the limit themselves, and report where it cut.
        if listed.tool.spec().only_reads_records() {
            return arguments.clone();
        }
        let schema = &listed.tool.spec().input_schema;
        let settings = self.policy.settings(&call.caller.realm);
        let within =
            settings.max_find_limit.and_then(|most| limited(tool, schema, arguments, most));
        within.map_or_else(|| arguments.clone(), Arc::new)
    }

    /// Why an agent does not work in a realm; none where it does. Plans have agents as steps, so
    /// the right to start the plan says nothing of it.
    pub(crate) fn disabled_agent(&self, realm: &RealmId, agent: &AgentName) -> Option<Fault> {
        // The agent of a pipeline is the pipeline's own, and that is asked about as a whole.
        let is_of_pipeline = agent.as_str().starts_with(PIPELINES);
        let is_enabled = || self.policy.settings(realm).enables_agent(agent.as_str());
        (!is_of_pipeline && !is_enabled()).then(|| {
            let message = format!("agent `{agent}` is not enabled in this realm");
            let hint = "add it to `enabled_agents` of the realm and retry, or abort the run";
            Fault::new(AGENT_NOT_ENABLED, message).hint(hint)
        })
    }

    /// Whether tools that an agent may call are still on their way: those that it names and that
    /// are not there, or any where it names none.
    pub(crate) fn may_lack(&self, realm: &RealmId, agent: &Agent) -> bool {
        if self.arrivals.are_over() {
            return false;
        }
        let Some(named) = named(agent) else { return true };
        let specs = self.catalog.specs(realm);
        named.into_iter().any(|pattern| match beginning(pattern.as_str()) {
            "" => true,
            head => {
                let is_there = specs.iter().any(|spec| pattern.fits(spec.name.as_str()));
                !is_there && self.catalog.awaits(realm, head)
            }
        })
    }

    /// Why an agent cannot be asked yet: tools that it names are of a server that has brought none
    /// so far, or there are no tools at all because of that. Its model would make something up.
    pub(crate) fn unready(&self, caller: &Caller, agent: &Agent) -> Option<Fault> {
        let missing = self.arrivals.missing();
        if missing.is_empty() {
            return None;
        }
        let specs = self.catalog.specs(&caller.realm);
        let is_there =
            |pattern: &Pattern| specs.iter().any(|spec| pattern.fits(spec.name.as_str()));
        let wanted: Vec<&str> = match named(agent) {
            None if specs.is_empty() => missing.iter().map(String::as_str).collect(),
            None => Vec::new(),
            Some(named) => {
                named.into_iter().filter(|one| !is_there(one)).map(Pattern::as_str).collect()
            }
        };
        let away = |wanted: &str| Some((wanted.to_owned(), self.away(&caller.realm, wanted)?));
        let (wanted, away) = wanted.into_iter().find_map(away)?;
        let why = match self.may_know(caller, &away) {
            true => away.why,
            false => "they are not there yet".to_owned(),
        };
        let message = format!("agent `{}` needs tools `{wanted}`, and {why}", agent.name);
        Some(Fault::new(UPSTREAM_NOT_READY, message).hint(RETRY_LATER))
    }

    /// A fault of a call, with the reason why its tool is not there, if its server is away and the
    /// caller may know of that server.
    pub(crate) fn with_reason(&self, caller: &Caller, tool: &ToolName, fault: Fault) -> Fault {
        if fault.name != TOOL_NOT_FOUND {
            return fault;
        }
        let away = self.away(&caller.realm, tool.as_str());
        match away.filter(|away| self.may_know(caller, away)) {
            Some(MissingUpstream { why, .. }) => {
                let message = format!("{}: {why}", fault.message);
                Fault { message, hint: Some(RETRY_LATER.to_owned()), ..fault }
            }
            None => fault,
        }
    }

    /// The server of tools of this name or pattern, if it is away.
    fn away(&self, realm: &RealmId, wanted: &str) -> Option<MissingUpstream> {
        let head = beginning(wanted);
        self.arrivals.away_of(head).filter(|_| self.catalog.awaits(realm, head))
    }

    fn may_know(&self, caller: &Caller, away: &MissingUpstream) -> bool {
        self.read_of(caller, &[Resource::Upstream(&away.upstream)]) == [true]
    }
}

/// The tools that an agent names; none where it may call whatever there is.
fn named(agent: &Agent) -> Option<Vec<&Pattern>> {
    match &agent.enabled {
        Some(enabled) => Some(enabled.iter().collect()),
        None => {
            let of_types = agent.types.values().flat_map(|kind| &kind.tools);
            Some(of_types.collect::<Vec<_>>()).filter(|named| !named.is_empty())
        }
    }
}

/// The literal prefix of a pattern.
fn beginning(pattern: &str) -> &str {
    pattern.split('*').next().unwrap_or_default()
}
