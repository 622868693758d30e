//! Frames: a run is a tree of them. A frame sees its own writes, its ancestors' as of the fork
//! (they wait while it runs) and never a sibling's.

use super::{Context, Session};
use crate::ask::remedy::{RemedyAttempt, RuleHold};
use crate::conversation::llm::Stop;
use crate::conversation::talk::{AgentUsage, Talk};
use crate::event::{Route, TurnKind};
use crate::values::datum::{Datum, DatumValue};
use crate::values::history::{Entry, EntryResult, FramePath};
use crate::values::ids::{
    AgentName, AskId, CallId, ContentHash, ContextKey, FrameId, Millis, PlanId, RunId, StepId,
    ToolName,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How many of the newest entries a frame keeps at hand. Part of the event format: replaying a
/// journal must rebuild the same state, so this is not configurable.
pub const RECENT_ENTRIES: usize = 16;

/// The context key under which human input is kept by step.
pub const INPUTS: &str = "inputs";

/// One frame of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    pub id: FrameId,
    pub run: RunId,
    /// The frame that waits for it.
    pub parent: Option<FrameId>,
    /// Its place in the run.
    pub path: FramePath,
    /// The plan whose steps it takes.
    pub plan: PlanId,
    pub kind: FrameKind,
    /// The step it is at; none once its list is at its end.
    pub step: Option<StepId>,
    /// How many steps it has entered.
    pub ordinal: u32,
    pub state: FrameState,
    /// How often it entered each step.
    pub visits: BTreeMap<StepId, u32>,
    pub context: Context,
    /// Its newest entries, newest last.
    pub recent: VecDeque<Arc<Entry>>,
    /// Whether older ones exist that are not at hand.
    pub older: bool,
    /// The latest successful entry of each step.
    pub latest: BTreeMap<StepId, Arc<Entry>>,
    /// The output of its last tool call.
    pub last_output: Option<Arc<Datum>>,
    /// The answer, once `final_response` gave it; of plan frames only.
    pub answer: Option<Arc<Datum>>,
    /// Why the iteration is failing; of collecting loops' items only.
    pub failing: Option<crate::values::fault::Fault>,
    /// The agent that works here, while its step is not done.
    pub agent: Option<Box<AgentState>>,
    /// It is answered or failing and waits for a call below it.
    pub waits: bool,
    /// Attempts of rules at its current step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<RemedyAttempt>,
    /// It corrects its parent's step, and may take until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrects: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FrameKind {
    /// The run's plan.
    Root,
    /// A branch of a parallel step.
    Branch { index: u32 },
    /// An iteration of a loop.
    Item {
        index: u32,
        /// Whether its failure is collected.
        collect: bool,
    },
    /// One call of an agent's turn.
    Call {
        /// Which, of all calls of its agent.
        index: u32,
        tool: ToolName,
        arguments: Arc<Value>,
        /// Whether the agent wants a person's approval.
        approve: bool,
    },
    /// A plan as a step.
    SubPlan {
        input: Arc<Datum>,
        /// How deep plans called plans.
        depth: u32,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FrameState {
    /// Its step can be decided.
    AtStep,
    /// Its step failed before any call.
    Faulted(crate::values::fault::Fault),
    Calling(CallId),
    /// A person.
    Asking(AskId),
    /// A correction of its step.
    Correcting {
        /// The correction's frame.
        child: FrameId,
        /// The ask that chose it.
        ask: AskId,
    },
    /// A model, asked what could be done about its step.
    Proposing {
        /// The ask that chose it.
        ask: AskId,
        attempt: u32,
        /// The process that asked is gone.
        lost: bool,
    },
    /// Branches or items.
    Joining(Box<Join>),
    /// An agent: its turns and its calls.
    Agent,
    /// A sub-plan.
    InPlan {
        child: FrameId,
        /// The context key for its answer.
        save_as: ContextKey,
        /// Where the frame goes then.
        next: Option<StepId>,
    },
}

/// Where an agent stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// The agent, which the run's closure pins.
    pub agent: AgentName,
    pub input: Arc<Datum>,
    /// Whether its conversation is the session's.
    pub continues: bool,
    /// Whether its model speaks in commands.
    pub commands: bool,
    /// The context key for its answer.
    pub save_as: ContextKey,
    /// Where the frame goes then.
    pub next: Option<StepId>,
    /// The conversation.
    pub talk: Talk,
    pub phase: AgentPhase,
    /// Where the router led, once it did.
    pub route: Option<Route>,
    /// How many turns were begun, those of the router included.
    pub turns: u32,
    /// How many calls were made.
    pub calls: u32,
    /// Whether it is done once the calls of the last turn gave their outputs.
    pub stops: bool,
    /// Output of its last call.
    pub output: Option<Arc<Datum>>,
    pub spent: AgentUsage,
    /// How many tokens the last turn read: how long the conversation is.
    pub last_input: u64,
    /// How often it made each call, by a digest of tool and arguments.
    pub made: BTreeMap<ContentHash, u32>,
    /// When its step began.
    pub entered_at: Option<Millis>,
    /// Since when it works, while it does.
    pub working_since: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AgentPhase {
    /// Its next turn can begin.
    Between,
    /// A model.
    Turn { turn: u32, attempt: u32, kind: TurnKind },
    /// The time to ask a model again.
    Resting {
        turn: u32,
        /// How many attempts there were.
        attempts: u32,
        kind: TurnKind,
    },
    /// The calls of the last turn.
    Calls,
    /// It has answered.
    Said(Arc<str>, Stop),
    /// It cannot continue by itself.
    Failed(crate::values::fault::Fault),
}

/// A fork that waits to be joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// The step that forked.
    pub step: StepId,
    /// Where the frame goes after the join.
    pub next: Option<StepId>,
    /// Branches or a loop.
    pub kind: JoinKind,
    /// The children that run.
    pub live: BTreeSet<FrameId>,
    /// Results of ended children, by branch or item, until the join merges them.
    pub left: BTreeMap<u32, BranchResult>,
}

/// Branches or a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JoinKind {
    /// Branches, by their ids in declared order.
    Branches(Vec<String>),
    Loop(LoopState),
}

/// Where a loop stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopState {
    /// The pinned items.
    pub items: Arc<Datum>,
    pub count: u32,
    /// The context key of the item.
    pub alias: ContextKey,
    /// How many run at the same time.
    pub concurrency: u32,
    /// Whether failures are collected.
    pub collect: bool,
    /// The first step of an iteration.
    pub start: Option<StepId>,
    /// How many iterations began.
    pub started: u32,
    /// How many ended.
    pub ended: u32,
    /// One element per ended iteration, in item order once all ended.
    pub results: BTreeMap<u32, Arc<Datum>>,
}

/// Result of an ended branch or iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchResult {
    pub context: Context,
    /// Its newest entries.
    pub recent: VecDeque<Arc<Entry>>,
    /// Whether older ones exist.
    pub older: bool,
    /// The latest successful entry of each of its steps.
    pub latest: BTreeMap<StepId, Arc<Entry>>,
}

impl Frame {
    /// Enters a step, or reaches the end of its list.
    pub fn enter(&mut self, step: Option<StepId>) {
        self.state = FrameState::AtStep;
        self.tried.clear();
        if let Some(step) = &step {
            *self.visits.entry(step.clone()).or_default() += 1;
            self.ordinal += 1;
        }
        self.step = step;
    }

    /// How often this rule has held the step that it is at.
    pub fn times_tried(&self, rule: &str) -> u32 {
        self.tried_by(rule).map_or(0, |tried| tried.times)
    }

    /// The last attempt of this rule at the current step.
    pub fn tried_by(&self, rule: &str) -> Option<&RemedyAttempt> {
        self.tried.iter().find(|tried| *tried.rule == *rule)
    }

    /// A rule holds the step: one of its tries is used.
    pub fn note_try(&mut self, held: &RuleHold) {
        match self.tried.iter_mut().find(|tried| tried.rule == held.rule) {
            // The try before was refused unsent.
            Some(tried) if tried.times == held.try_no => tried.waits += 1,
            Some(tried) => tried.times = held.try_no,
            None => {
                let rule = held.rule.clone();
                let does = held.does.clone();
                let times = held.try_no;
                self.tried.push(RemedyAttempt { rule, does, times, waits: 0, found: None });
            }
        }
    }

    /// Keeps a finished call at hand.
    pub fn remember(&mut self, entry: Arc<Entry>) {
        if let EntryResult::Output(_) = entry.result {
            self.latest.insert(entry.step.clone(), entry.clone());
        }
        self.recent.push_back(entry);
        self.trim();
    }

    /// Inputs by step are united, not replaced: two branches may both have asked.
    pub fn add_inputs(&mut self, more: &Datum) {
        let DatumValue::Object(more) = &more.held else { return };
        let mut all = match self.context.get(INPUTS).map(|datum| &datum.held) {
            Some(DatumValue::Object(inputs)) => inputs.clone(),
            _ => BTreeMap::new(),
        };
        all.extend(more.iter().map(|(step, datum)| (step.clone(), datum.clone())));
        self.context.insert(INPUTS.into(), Arc::new(Datum::joined(DatumValue::Object(all))));
    }

    fn trim(&mut self) {
        while self.recent.len() > RECENT_ENTRIES {
            self.recent.pop_front();
            self.older = true;
        }
    }

    /// Takes over what an ended child left: the later wins.
    pub fn merge(&mut self, mut remains: BranchResult) {
        if let Some(inputs) = remains.context.remove(INPUTS) {
            self.add_inputs(&inputs);
        }
        self.context.extend(remains.context);
        if remains.older {
            // Entries between ours and the child's are not at hand: ours are out of reach.
            self.recent.clear();
            self.older = true;
        }
        self.recent.extend(remains.recent);
        self.latest.extend(remains.latest);
        self.trim();
    }

    /// Its result for the parent, without the loop's own keys.
    pub fn remains(self, without: Option<&ContextKey>) -> BranchResult {
        let mut context = self.context;
        if let Some(alias) = without {
            context.remove(alias);
            context.remove(&index_key(alias));
        }
        BranchResult { context, recent: self.recent, older: self.older, latest: self.latest }
    }
}

impl Join {
    /// The value of the step in the context: branches by id, or results in item order.
    pub fn value(&self) -> DatumValue {
        match &self.kind {
            JoinKind::Branches(ids) => DatumValue::Object(
                ids.iter()
                    .zip(0..)
                    .filter_map(|(id, index)| Some((id.clone(), self.left.get(&index)?.as_datum())))
                    .collect(),
            ),
            JoinKind::Loop(state) => DatumValue::Array(state.results.values().cloned().collect()),
        }
    }
}

impl BranchResult {
    pub fn as_datum(&self) -> Arc<Datum> {
        let fields =
            self.context.iter().map(|(key, datum)| (key.to_string(), datum.clone())).collect();
        Arc::new(Datum::joined(DatumValue::Object(fields)))
    }
}

/// The context key of a loop's index.
pub fn index_key(alias: &ContextKey) -> ContextKey {
    ContextKey::from(format!("{alias}_index"))
}

impl Session {
    /// The frame that holds the answer of this frame's plan: the root or a sub-plan's frame.
    pub fn plan_frame(&self, frame: &Frame) -> FrameId {
        let mut at = frame;
        while !matches!(at.kind, FrameKind::Root | FrameKind::SubPlan { .. }) {
            match at.parent.and_then(|parent| self.frames.get(&parent)) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at.id
    }

    /// Whether `below` is a descendant of `above`.
    pub fn descends(&self, below: &Frame, above: FrameId) -> bool {
        let mut at = below.parent;
        while let Some(parent) = at {
            if parent == above {
                return true;
            }
            at = self.frames.get(&parent).and_then(|frame| frame.parent);
        }
        false
    }

    /// The frame and its ancestors up to its plan's frame, nearest first.
    pub fn scope<'s>(&'s self, frame: &'s Frame) -> impl Iterator<Item = &'s Frame> {
        let mut at = Some(frame);
        std::iter::from_fn(move || {
            let here = at?;
            at = match here.kind {
                FrameKind::Root | FrameKind::SubPlan { .. } => None,
                FrameKind::Branch { .. } | FrameKind::Item { .. } | FrameKind::Call { .. } => {
                    here.parent.and_then(|parent| self.frames.get(&parent))
                }
            };
            Some(here)
        })
    }
}
