//! Direct calls that are not kept, as observers see them. There is no journal that would know
//! their spans: their ids are made up.

use crate::gate::admission::AdmittedCall;
use crate::observe::content::called;
use crate::observe::observers::Tracing;
use crate::shared::Shared;
use kernel::contracts::observe::{Observation, ObservedWork};
use kernel::tool::call::{ToolError, ToolOutput, Upstream};
use kernel::values::ids::{CallId, Millis, RealmId, ToolName};
use kernel::values::trace::TraceParent;

/// A call that is under way.
pub(crate) struct ObservedCall {
    call: CallId,
    /// Its span, for the next call.
    pub(crate) span: Option<TraceParent>,
    parent: Option<u64>,
    /// None where no one observes.
    began: Option<Millis>,
}

impl Shared {
    /// A call begins. It costs nothing where no one observes and no trace came with it.
    pub(crate) fn watch_call(&self, call: CallId, caller: Option<TraceParent>) -> ObservedCall {
        let unseen = self.observers.are_none();
        if unseen && caller.is_none() {
            return ObservedCall { call, span: None, parent: None, began: None };
        }
        let tracing = self.observers.trace(call.0, caller);
        // The format forbids zero.
        let own = || (self.entropy.bits() as u64).max(1);
        let span = |tracing: Tracing| match tracing.parent {
            Some(parent) => self.observers.outward(tracing.at(parent), own),
            None => tracing.at(own()),
        };
        ObservedCall {
            call,
            span: tracing.map(span),
            parent: tracing.and_then(|tracing| tracing.parent),
            began: (!unseen).then(|| self.clock.now()),
        }
    }

    /// The server that a tool is of, as far as the tool is there still.
    pub(crate) fn upstream_of(&self, realm: &RealmId, tool: &ToolName) -> Option<Upstream> {
        self.gate.catalog.tool(realm, tool.as_str())?.tool.upstream()
    }

    /// It came back. One that wants something first has not ended yet.
    pub(crate) fn call_ended(
        &self,
        watched: ObservedCall,
        call: &AdmittedCall<'_>,
        result: &Result<ToolOutput, ToolError>,
    ) {
        let Some(began) = watched.began else { return };
        let AdmittedCall { caller, listed, arguments, reach, .. } = call;
        let (output, error) = match result {
            Ok(ToolOutput::Value(output)) => (Some(output), None),
            Ok(ToolOutput::Blob(_)) => (None, None),
            Ok(ToolOutput::Wants(_)) => return,
            Err(error) => (None, Some(error)),
        };
        let content = match self.observers.want_content() {
            true => called(arguments, output, self.limits.span_content_bytes_max),
            false => Vec::new(),
        };
        let trace = watched.span.filter(|span| span.sampled);
        self.observers.see(&Observation {
            realm: caller.realm.clone(),
            subject: caller.owner(),
            actor: caller.actor.clone(),
            session: None,
            run: None,
            at: None,
            trace,
            parent: trace.and(watched.parent),
            began,
            ended: self.clock.now(),
            work: ObservedWork::Call {
                tool: listed.tool.spec().name.clone(),
                upstream: listed.tool.upstream(),
                id: watched.call,
                reach: reach.name(),
                outcome: error.map_or("ok", |error| error.how.name()),
            },
            error: error.map(|error| error.fault.name.as_str().into()),
            content,
        });
    }
}
