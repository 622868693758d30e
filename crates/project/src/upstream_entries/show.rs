//! An upstream as `/api/v1` and the command line show it. What went wrong is said in words of other
//! libraries and other servers, so what was given to the upstream is taken out of them.

use serde_json::Value;
use upstreams::{UpstreamConfig, UpstreamStatus};
use wire::mcp::MODERN;
use wire::rest::{Fault, Upstream, UpstreamAgent, UpstreamServer};

/// What is shown of an upstream, and how it is while it runs.
pub fn shown(facts: &Upstream, running: Option<(&UpstreamConfig, UpstreamStatus)>) -> Upstream {
    let upstream = facts.clone();
    let Some((config, status)) = running else { return upstream };
    let era = |version: &String| if version == MODERN { "modern" } else { "legacy" }.to_owned();
    let count = |items: usize| u64::try_from(items).unwrap_or(u64::MAX);
    Upstream {
        state: status.state.word().to_owned(),
        since: Some(status.since.rfc3339()),
        // Only MCP has them.
        era: status.version.as_ref().filter(|_| facts.era_setting.is_some()).map(era),
        version: status.version,
        server: status.server.as_ref().and_then(server),
        agent: status.agent.map(|agent| UpstreamAgent {
            card_digest: agent.card.as_str().to_owned(),
            signed: agent.is_signed,
            address: agent.address,
            card_changes: agent.changes,
        }),
        tools: count(status.tools),
        prompts: count(status.prompts),
        resources: count(status.resources),
        restarts: status.restarts,
        last_error: status.last_error.map(|fault| {
            let kernel::values::fault::Fault { name, message, hint, .. } = cleaned(fault, config);
            Fault { name, message, hint, detail: None }
        }),
        ..upstream
    }
}

/// What went wrong with an upstream, without what it was given. A detail could have that anywhere,
/// and is left out.
pub fn cleaned(
    fault: kernel::values::fault::Fault,
    config: &UpstreamConfig,
) -> kernel::values::fault::Fault {
    let hidden = config.hidden();
    kernel::values::fault::Fault {
        message: hidden.told(&fault.message),
        hint: fault.hint.map(|hint| hidden.told(&hint)),
        detail: None,
        ..fault
    }
}

/// Only what a person reads: the rest is whatever the server likes.
fn server(said: &Value) -> Option<UpstreamServer> {
    let text = |key: &str| said.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(UpstreamServer { name: text("name")?, version: text("version") })
}
