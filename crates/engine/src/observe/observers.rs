//! Who sees what the engine does, and the ids of the spans that they record. An id is made of
//! what its span is about, so that a process that takes a run over continues with the same trace.

use kernel::contracts::observe::{Observation, Observer};
use kernel::decide::TurnNumber;
use kernel::session::Frame;
use kernel::values::ids::{AskId, CallId, RunId};
use kernel::values::trace::{TraceParent, span_id};
use std::sync::Arc;

/// All who see what the engine does.
pub(crate) struct Observers {
    all: Vec<Arc<dyn Observer>>,
    content: bool,
    traces: bool,
}

/// A trace that something here belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tracing {
    pub(crate) trace: u128,
    /// The caller's span; none where the trace begins here.
    pub(crate) parent: Option<u64>,
    /// Whether it is recorded.
    pub(crate) sampled: bool,
}

impl Tracing {
    /// Seen from this span.
    pub(crate) fn at(self, span: u64) -> TraceParent {
        TraceParent { trace: self.trace, span, sampled: self.sampled }
    }
}

impl Observers {
    pub(crate) fn new(all: Vec<Arc<dyn Observer>>) -> Self {
        let content = all.iter().any(|observer| observer.wants_content());
        let traces = all.iter().any(|observer| observer.records_traces());
        Self { all, content, traces }
    }

    /// Whether no one sees anything.
    pub(crate) fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether someone wants content as well.
    pub(crate) fn want_content(&self) -> bool {
        self.content
    }

    /// The trace context that an outgoing call carries: the calling span. If nobody records it, the
    /// incoming context is passed on.
    pub(crate) fn outward(&self, trace: TraceParent, span: impl FnOnce() -> u64) -> TraceParent {
        if self.traces { trace.at(span()) } else { trace }
    }

    /// Something ended.
    pub(crate) fn see(&self, seen: &Observation) {
        for observer in &self.all {
            observer.saw(seen);
        }
    }

    /// The trace of what begins now: the caller's, which is passed on even where no one records it,
    /// or this new one if it is recorded.
    pub(crate) fn trace(&self, new: u128, caller: Option<TraceParent>) -> Option<Tracing> {
        let recorded = |trace: u128, caller: Option<bool>| {
            let says = self.all.iter().filter_map(|observer| observer.samples(trace, caller));
            says.reduce(|one, other| one || other)
        };
        match caller {
            Some(TraceParent { trace, span, sampled }) => {
                let sampled = recorded(trace, Some(sampled)).unwrap_or(sampled);
                Some(Tracing { trace, parent: Some(span), sampled })
            }
            None => recorded(new, None).filter(|sampled| *sampled).map(|sampled| Tracing {
                trace: new,
                parent: None,
                sampled,
            }),
        }
    }

    /// The trace context that a run records: its parent span, or its own if the trace begins with
    /// it.
    pub(crate) fn trace_of_run(
        &self,
        run: RunId,
        caller: Option<TraceParent>,
    ) -> Option<TraceParent> {
        let tracing = self.trace(run.0, caller)?;
        Some(tracing.at(tracing.parent.unwrap_or_else(|| run_span(run))))
    }
}

/// The span of a run.
pub(crate) fn run_span(run: RunId) -> u64 {
    span_id(&[b"run", &run.0.to_be_bytes()])
}

/// The span of an agent's step. A frame that reaches another agent is at another step by then.
pub(crate) fn agent_span(frame: &Frame) -> u64 {
    let run = frame.run.0.to_be_bytes();
    let id = frame.id.0.to_be_bytes();
    span_id(&[b"agent", &run, &id, &frame.ordinal.to_be_bytes()])
}

/// The span of one attempt at one turn of a frame's agent.
pub(crate) fn turn_span(frame: &Frame, number: TurnNumber) -> u64 {
    let TurnNumber { turn, attempt } = number;
    let agent = agent_span(frame).to_be_bytes();
    span_id(&[b"turn", &agent, &turn.to_be_bytes(), &attempt.to_be_bytes()])
}

/// The span of a call. One that is requested again under its id is another span.
pub(crate) fn call_span(call: CallId, requested_seq: u64) -> u64 {
    span_id(&[b"call", &call.0.to_be_bytes(), &requested_seq.to_be_bytes()])
}

pub(crate) fn ask_span(ask: AskId) -> u64 {
    span_id(&[b"ask", &ask.0.to_be_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Says(Option<bool>);

    impl Observer for Says {
        fn records_traces(&self) -> bool {
            self.0.is_some()
        }
        fn samples(&self, _trace: u128, caller: Option<bool>) -> Option<bool> {
            self.0.map(|own| caller.unwrap_or(own))
        }
        fn saw(&self, _seen: &Observation) {}
    }

    fn observers(says: &[Option<bool>]) -> Observers {
        let one = |says: &Option<bool>| -> Arc<dyn Observer> { Arc::new(Says(*says)) };
        Observers::new(says.iter().map(one).collect())
    }

    #[test]
    fn a_callers_trace_continues_for_any_observer() {
        for sampled in [false, true] {
            let caller = TraceParent { trace: 7, span: 8, sampled };
            let cases: [&[Option<bool>]; 3] = [&[], &[None], &[None, Some(false)]];
            for says in cases {
                let trace = observers(says).trace_of_run(RunId(1), Some(caller));
                assert_eq!(trace, Some(caller), "{says:?}");
            }
        }
    }

    #[test]
    fn an_unrecorded_span_reaches_no_observer() {
        let caller = TraceParent { trace: 7, span: 8, sampled: true };
        let cases: [&[Option<bool>]; 2] = [&[], &[None]];
        for says in cases {
            assert_eq!(observers(says).outward(caller, || 9), caller, "{says:?}");
        }
        assert_eq!(observers(&[None, Some(true)]).outward(caller, || 9), caller.at(9));
    }

    #[test]
    fn a_new_trace_exists_only_if_an_observer_records_it() {
        let cases: [&[Option<bool>]; 3] = [&[], &[None], &[Some(false)]];
        for says in cases {
            assert_eq!(observers(says).trace_of_run(RunId(1), None), None, "{says:?}");
        }
        let trace = observers(&[None, Some(false), Some(true)]).trace_of_run(RunId(1), None);
        let own = TraceParent { trace: 1, span: run_span(RunId(1)), sampled: true };
        assert_eq!(trace, Some(own), "a run whose trace begins with it is its own beginning");
    }
}
