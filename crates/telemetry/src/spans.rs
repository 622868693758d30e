//! Converts an observation into a span. Names, kinds and attributes follow the conventions; content
//! is included only if it was requested.

use crate::names::{MCP_CALL, error, key, operation};
use crate::otlp::{
    CLIENT, ERROR, INTERNAL, KeyValue, REMOTE, REMOTE_KNOWN, SAMPLED, Span, Status, count, list,
    number, text,
};
use kernel::contracts::observe::{Observation, ObservedWork, StepRef};
use kernel::tool::call::{Upstream, UpstreamProtocol};
use kernel::values::ids::Millis;

/// The span that this is; none where its trace is not recorded.
pub(crate) fn span(seen: &Observation) -> Option<Span> {
    let trace = seen.trace?;
    let (name, kind, mut attributes) = described(&seen.work);
    attributes.extend(placed(seen));
    attributes.extend(error_type(seen).map(|error| text(key::ERROR_TYPE, error)));
    attributes.extend(seen.content.iter().map(|(key, content)| text(key, content.as_str())));
    let parent = seen.parent.map(|parent| parent.to_be_bytes().to_vec());
    let remote = if is_remote(seen) { REMOTE } else { 0 };
    Some(Span {
        trace_id: trace.trace.to_be_bytes().to_vec(),
        span_id: trace.span.to_be_bytes().to_vec(),
        parent_span_id: parent.unwrap_or_default(),
        flags: SAMPLED | REMOTE_KNOWN | remote,
        name,
        kind,
        start_time_unix_nano: nanos(seen.began),
        end_time_unix_nano: nanos(seen.ended.max(seen.began)),
        attributes,
        status: seen.error.is_some().then(|| Status { message: String::new(), code: ERROR }),
    })
}

/// Whether all that is above it is a caller's, or nothing is: the parents of parts of a run are
/// ours.
pub(crate) fn is_first(seen: &Observation) -> bool {
    matches!(seen.work, ObservedWork::Run { .. }) || seen.session.is_none()
}

fn is_remote(seen: &Observation) -> bool {
    is_first(seen) && seen.parent.is_some()
}

/// The name of its fault, or the conventions' word where they have one.
fn error_type(seen: &Observation) -> Option<&str> {
    let mcp = matches!(&seen.work, ObservedWork::Call { upstream: Some(upstream), .. }
        if matches!(upstream.speaks, UpstreamProtocol::Mcp { .. }));
    match seen.error.as_deref() {
        Some(error::TOOL_FAILED) if mcp => Some(error::MCP_TOOL),
        other => other,
    }
}

fn nanos(at: Millis) -> u64 {
    at.0.max(0).unsigned_abs().saturating_mul(1_000_000)
}

/// Name, kind, and what belongs to its kind.
fn described(work: &ObservedWork) -> (String, i32, Vec<KeyValue>) {
    match work {
        ObservedWork::Run { plan, status, agent, turns, .. } => {
            let mut attributes = vec![
                text(key::OPERATION, operation::WORKFLOW),
                text(key::WORKFLOW, plan.as_str()),
                text(key::OUR_STATUS, *status),
                count(key::OUR_TURNS, u64::from(*turns)),
            ];
            attributes.extend(agent.as_ref().map(|agent| text(key::AGENT, agent.as_str())));
            (format!("{} {plan}", operation::WORKFLOW), INTERNAL, attributes)
        }
        ObservedWork::Agent { agent, turns, calls, stopped } => {
            let mut attributes = vec![
                text(key::OPERATION, operation::AGENT),
                text(key::AGENT, agent.as_str()),
                count(key::OUR_TURNS, u64::from(*turns)),
                count(key::OUR_CALLS, u64::from(*calls)),
            ];
            attributes.extend(stopped.as_deref().map(|limit| text(key::OUR_STOPPED, limit)));
            (format!("{} {agent}", operation::AGENT), INTERNAL, attributes)
        }
        ObservedWork::Turn { .. } => turn(work),
        ObservedWork::Call { tool, upstream, id, reach, outcome } => {
            let mut attributes = vec![
                text(key::OPERATION, operation::TOOL),
                text(key::TOOL, tool.as_str()),
                text(key::TOOL_CALL, id.to_string()),
                text(key::OUR_REACH, *reach),
                text(key::OUR_OUTCOME, *outcome),
            ];
            attributes.extend(upstream.iter().flat_map(of_upstream));
            (format!("{} {tool}", operation::TOOL), INTERNAL, attributes)
        }
        ObservedWork::Wait { ask, kind, ending } => {
            let attributes = vec![
                text(key::OUR_ASK, ask.to_string()),
                text(key::OUR_ASK_KIND, *kind),
                text(key::OUR_ASK_ENDING, *ending),
            ];
            (format!("{} {kind}", operation::WAIT), INTERNAL, attributes)
        }
    }
}

/// The server that a tool is of. There is no second span for the request: where one for the tool is
/// there, the conventions want it told here.
fn of_upstream(upstream: &Upstream) -> Vec<KeyValue> {
    let mut attributes = vec![text(key::OUR_UPSTREAM, &*upstream.name)];
    if let UpstreamProtocol::Mcp { version } = &upstream.speaks {
        attributes.push(text(key::MCP_METHOD, MCP_CALL));
        attributes.extend(version.as_deref().map(|version| text(key::MCP_VERSION, version)));
    }
    attributes
}

fn turn(work: &ObservedWork) -> (String, i32, Vec<KeyValue>) {
    let ObservedWork::Turn {
        agent,
        model,
        provider,
        provider_model,
        kind,
        usage,
        cost_micros,
        stop,
        first_piece_ms,
    } = work
    else {
        return (operation::CHAT.to_owned(), CLIENT, Vec::new());
    };
    let asked = provider_model.as_ref().unwrap_or(model);
    let mut attributes = vec![
        text(key::OPERATION, operation::CHAT),
        text(key::REQUEST_MODEL, &**asked),
        text(key::AGENT, agent.as_str()),
        text(key::OUR_MODEL, &**model),
        text(key::OUR_TURN, *kind),
    ];
    attributes.extend(provider.as_deref().map(|provider| text(key::PROVIDER, provider)));
    if let Some(stop) = stop {
        attributes.extend([
            list(key::FINISH_REASONS, stop),
            count(key::INPUT_TOKENS, usage.input),
            count(key::OUTPUT_TOKENS, usage.output),
        ]);
        if usage.cached > 0 {
            attributes.push(count(key::CACHED_TOKENS, usage.cached));
        }
        if usage.cache_written > 0 {
            attributes.push(count(key::CACHE_WRITTEN_TOKENS, usage.cache_written));
        }
    }
    attributes.extend(cost_micros.map(|cost| count(key::OUR_COST, cost)));
    let first = first_piece_ms.map(|ms| number(key::FIRST_CHUNK, ms as f64 / 1_000.0));
    attributes.extend(first);
    (format!("{} {asked}", operation::CHAT), CLIENT, attributes)
}

/// Attributes of place and subject.
fn placed(seen: &Observation) -> Vec<KeyValue> {
    let mut attributes = vec![text(key::OUR_REALM, seen.realm.as_str())];
    attributes.extend(seen.subject.as_deref().map(|subject| text(key::OUR_SUBJECT, subject)));
    attributes.extend(seen.actor.as_deref().map(|actor| text(key::OUR_ACTOR, actor)));
    attributes.extend(seen.run.map(|run| text(key::OUR_RUN, run.to_string())));
    if let Some(StepRef { plan, step }) = &seen.at {
        attributes.extend([text(key::OUR_PLAN, plan.as_str()), text(key::OUR_STEP, step.as_str())]);
    }
    if let Some(session) = &seen.session {
        attributes.extend([
            text(key::CONVERSATION, &*session.id),
            text(key::SESSION, &*session.id),
            text(key::OUR_SESSION, &*session.id),
            text(key::OUR_SPACE, session.space.as_str()),
        ]);
    }
    attributes
}

#[cfg(test)]
mod tests;
