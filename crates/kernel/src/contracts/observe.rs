//! What can be seen of the work from outside: each thing that ended, with how long it took and
//! where it stands in its trace. Metrics and traces are both made of this. No texts, arguments or
//! outputs are in it, unless an observer asked for content.

use crate::conversation::llm::Usage;
use crate::tool::call::Upstream;
use crate::values::ids::{
    AgentName, AskId, CallId, Millis, PlanId, RealmId, RunId, SessionKey, StepId, ToolName,
};
use crate::values::trace::TraceParent;
use std::sync::Arc;

/// Sees what the engine does. It is called on the way of every run: it must not block.
pub trait Observer: Send + Sync {
    /// Whether it records traces at all. Where no one does, a caller's trace is passed on as it
    /// came: a span that no one records would be a gap in it.
    fn records_traces(&self) -> bool {
        false
    }

    /// Whether this trace is recorded, asked once when the first of it begins here. `caller` is
    /// what a caller decided who sent the trace. None where the observer records no traces.
    fn samples(&self, _trace: u128, _caller: Option<bool>) -> Option<bool> {
        None
    }

    /// Whether it wants what is said, called and answered as well.
    fn wants_content(&self) -> bool {
        false
    }

    /// Something ended.
    fn saw(&self, seen: &Observation);
}

/// Something that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    pub realm: RealmId,
    /// The subject; `None` in local mode.
    pub subject: Option<Arc<str>>,
    /// The actor, if it is not the subject.
    pub actor: Option<Arc<str>>,
    /// `None` for a direct call without a run.
    pub session: Option<SessionKey>,
    pub run: Option<RunId>,
    /// Its step; `None` for a run as a whole, and where there is no plan.
    pub at: Option<StepRef>,
    /// Its trace and its own span; `None` if the trace is not recorded.
    pub trace: Option<TraceParent>,
    /// Its parent span; that of the caller if the caller traces.
    pub parent: Option<u64>,
    pub began: Millis,
    pub ended: Millis,
    pub work: ObservedWork,
    /// Name of its error.
    pub error: Option<Arc<str>>,
    /// Content, if an observer wants it: JSON texts by attribute name, truncated.
    pub content: Vec<(&'static str, String)>,
}

/// Reference to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRef {
    /// The innermost plan that contains the step.
    pub plan: PlanId,
    pub step: StepId,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ObservedWork {
    Run {
        plan: PlanId,
        /// How it ended: `completed`, `failed`, `cancelled`.
        status: &'static str,
        /// The agent that it is a conversation with.
        agent: Option<AgentName>,
        /// How many turns of models it took.
        turns: u32,
        /// Whether its own plan came to a step that is an agent's.
        agent_step: bool,
    },
    /// An agent's step.
    Agent {
        agent: AgentName,
        /// How many turns of models it took.
        turns: u32,
        /// How many calls it made.
        calls: u32,
        /// The limit that stopped it, if one did.
        stopped: Option<Arc<str>>,
    },
    /// A turn of a model.
    Turn {
        agent: AgentName,
        /// The model, by its name in this project.
        model: Arc<str>,
        /// Provider by the GenAI conventions: `openai`, `anthropic`.
        provider: Option<Arc<str>>,
        /// The model, by the name that its provider knows.
        provider_model: Option<Arc<str>>,
        /// `route`, `act` or `sum`.
        kind: &'static str,
        usage: Usage,
        /// What that cost, in millionths of a dollar, where the price is known.
        cost_micros: Option<u64>,
        /// Why it stopped, in the words of the conventions; none where it failed.
        stop: Option<&'static str>,
        /// Milliseconds until its first piece arrived, where it streamed.
        first_piece_ms: Option<u64>,
    },
    /// A tool call.
    Call {
        tool: ToolName,
        /// The server that it is of, where it is not ours.
        upstream: Option<Upstream>,
        id: CallId,
        /// `reads`, `writes` or `runs`.
        reach: &'static str,
        /// The outcome: `ok`, `failed`, `unknown`, `not_sent`.
        outcome: &'static str,
    },
    /// A person was asked.
    Wait {
        ask: AskId,
        /// What for: `clarify`, `approve`, `fill`, `authorize`, `fix`.
        kind: &'static str,
        /// How it ended: `decided`, `declined` where someone said no, `expired`, `withdrawn`.
        ending: &'static str,
    },
}

impl Observation {
    /// How long it took, in seconds; a clock that was set back makes it zero.
    pub fn seconds(&self) -> f64 {
        let ms = self.ended.0.saturating_sub(self.began.0).max(0);
        ms as f64 / 1_000.0
    }
}
