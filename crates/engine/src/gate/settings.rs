//! What is set for a realm and no verdict says: how many records a search gives, and which agents
//! work there.

use super::{Gate, OutgoingCall};
use crate::catalog::registry::Listed;
use kernel::definition::pipeline::PIPELINES;
use kernel::tool::search::limited;
use kernel::values::fault::Fault;
use kernel::values::ids::{AgentName, RealmId};
use serde_json::Value;
use std::sync::Arc;

/// Fault of a turn of an agent that its realm does not have.
const AGENT_NOT_ENABLED: &str = "AgentNotEnabled";

impl Gate {
    /// The arguments that are sent: those of the call, within the find limit of its realm. It is
    /// looked up here, so that a call that waited is sent within the limit of this moment.
    pub(super) fn within_find_limit(&self, call: &OutgoingCall, listed: &Listed) -> Arc<Value> {
        let (tool, arguments) = (call.tool.as_str(), &call.arguments);
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
}
