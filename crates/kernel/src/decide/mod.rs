//! `next` decides: one fact at a time, for the first frame that something happened to. Pure: what
//! it needs of the outside is in `Env` or named as a want. One file for each kind of step, and
//! `resolve` for the values that steps read. What a fact changes is in `session`.

use crate::decide::resolve::{FetchCache, FrameView};
use crate::definition::plan::{Closure, Plan, Step, StepKind};
use crate::event::{Closing, Fact, Outcome, TurnKind};
use crate::expression::pointer::{Fetch, Stop};
use crate::limits::Limits;
use crate::session::{CallState, Frame, FrameKind, FrameState, Run, Session};
use crate::tool::call::CallProgress;
use crate::values::datum::Datum;
use crate::values::fault::Fault;
use crate::values::ids::{CallId, ContentHash, FrameId, Millis, PlanId, StepId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub mod resolve;
mod wind_down;
mod ask_details;
mod correct;
mod supervise;
mod propose;
mod fix;
mod steps;
mod branches;
mod wants;
mod agent;
mod agent_calls;
mod turn_result;

use agent::AgentNext;
pub use agent::{TurnNumber, turn_to_start};
pub use turn_result::{TurnResult, turn_failed, turned};

/// What a decision may look at besides the session.
pub struct Env<'e> {
    /// The closures that the active runs pin.
    pub closures: &'e HashMap<ContentHash, Arc<Closure>>,
    /// The corrections under way that models wrote.
    pub drafted: &'e BTreeMap<PlanId, Arc<Plan>>,
    pub limits: &'e Limits,
    pub fetched: &'e FetchCache,
    /// Frames whose wants are being fetched: they are passed over.
    pub fetching: &'e BTreeSet<FrameId>,
    /// Now; what a decision uses of it becomes event data.
    pub now: Millis,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Record this.
    Fact(Box<Fact>),
    /// Fetch this for the frame, then ask again.
    Fetch(FrameId, Fetch),
    /// Render what the frame's agent asks its model, record `turn.started`, then ask it.
    Turn(FrameId, TurnKind),
    /// Waits for a fact.
    Idle,
}

/// Decides what comes next.
pub fn next(env: &Env<'_>, session: &Session) -> Next {
    if let Some(fact) = session.runs.values().find_map(|run| close(session, run)) {
        return Next::Fact(Box::new(fact));
    }
    for id in &session.ready {
        let Some(at) = FrameContext::of(env, session, *id) else { continue };
        if at.run.closing.is_some() || at.run.paused || env.fetching.contains(id) {
            continue;
        }
        match at.within_limits() {
            LimitCheck::Limits => {}
            LimitCheck::Hold => continue,
            LimitCheck::Fact(fact) => return Next::Fact(fact),
        }
        let frame = at.frame;
        if frame.state == FrameState::Agent && frame.answer.is_none() && frame.failing.is_none() {
            match at.agent_next() {
                AgentNext::Fact(fact) => return Next::Fact(Box::new(fact)),
                AgentNext::Turn(kind) => return Next::Turn(*id, kind),
                AgentNext::Idle => continue,
            }
        }
        match at.decide() {
            Ok(Some(fact)) => return Next::Fact(Box::new(fact)),
            Ok(None) => {}
            Err(Stop::Want(want)) => return Next::Fetch(*id, want),
            Err(Stop::Fault(fault)) => return Next::Fact(Box::new(at.failed(fault))),
        }
    }
    Next::Idle
}

/// A run that is being closed: asks are withdrawn, what is in flight is waited for, then it ends.
fn close(session: &Session, run: &Run) -> Option<Fact> {
    let closing = run.closing.as_ref()?;
    if let Some(ask) = session.open_asks(run.id).next() {
        return Some(Fact::AskWithdrawn { ask: ask.id });
    }
    if run.in_flight > 0 {
        return None;
    }
    let unknown: Vec<CallId> = session
        .calls
        .iter()
        .filter(|(_, call)| call.run == run.id && call.must_be_known())
        .map(|(id, _)| *id)
        .collect();
    let outcome = match closing {
        Closing::Failed(fault) => Outcome::Failed { fault: fault.clone().with_unknown(&unknown) },
        Closing::Cancelled(by) => Outcome::Cancelled { by: by.clone(), unknown },
    };
    Some(Fact::RunEnded { run: run.id, outcome })
}

/// One frame, seen with all that its decision may look at.
#[derive(Clone, Copy)]
struct FrameContext<'e> {
    env: &'e Env<'e>,
    session: &'e Session,
    run: &'e Run,
    frame: &'e Frame,
    closure: &'e Closure,
    plan: &'e Plan,
}

/// Whether a frame may be decided for, as far as its run's limits go.
enum LimitCheck {
    /// It may.
    Limits,
    /// Not now: another frame of its run asks a person.
    Hold,
    /// Not before this is recorded.
    Fact(Box<Fact>),
}

type DecideResult = Result<Option<Fact>, Stop>;

impl<'e> FrameContext<'e> {
    /// A frame as a decision sees it: the plan is one that its run pins, or that a model wrote.
    fn of(env: &'e Env<'e>, session: &'e Session, frame: FrameId) -> Option<Self> {
        let frame = session.frames.get(&frame)?;
        let run = session.runs.get(&frame.run)?;
        let closure = env.closures.get(&run.closure)?;
        let plan = closure.plans.get(&frame.plan).or_else(|| env.drafted.get(&frame.plan))?;
        Some(Self { env, session, run, frame, closure, plan })
    }

    fn decide(&self) -> DecideResult {
        if let Some(answer) = &self.frame.answer {
            return self.answered(answer);
        }
        if let Some(fault) = &self.frame.failing {
            return self.failing(fault);
        }
        match &self.frame.state {
            FrameState::AtStep if matches!(self.frame.kind, FrameKind::Call { .. }) => {
                self.agent_call()
            }
            FrameState::AtStep => self.at_step(),
            FrameState::Faulted(fault) => self.stuck(fault, CallProgress::NotSent, None).map(Some),
            FrameState::Calling(call) => match self.session.calls.get(call) {
                Some(open) => match &open.state {
                    // Its agent decides for all calls of a turn.
                    CallState::Judged(_) if matches!(self.frame.kind, FrameKind::Call { .. }) => {
                        Ok(None)
                    }
                    CallState::Judged(judgement) => self.judged(open, judgement),
                    CallState::Wanting(wanting) => self.wanting(open, wanting),
                    CallState::Failed(how, fault) => self.stuck(fault, *how, Some(open)).map(Some),
                    CallState::Requested | CallState::Started => Ok(None),
                },
                None => Ok(None),
            },
            FrameState::Asking(ask) => match self.session.asks.get(ask) {
                Some(open) if !open.is_open() => self.replied(open),
                _ => Ok(None),
            },
            FrameState::Proposing { ask, attempt, lost: true } => {
                self.propose_again(*ask, *attempt)
            }
            FrameState::Proposing { .. } => Ok(None),
            FrameState::Joining(join) => self.joining(join),
            FrameState::InPlan { .. } | FrameState::Correcting { .. } | FrameState::Agent => {
                Ok(None)
            }
        }
    }

    /// Whether the run may continue: steps begin only while it is within its own limits, and while
    /// it is held nothing of it moves but the frame that asks.
    fn within_limits(&self) -> LimitCheck {
        let used = &self.run.used;
        if let Some(held) = used.held {
            return if held == self.frame.id { LimitCheck::Limits } else { LimitCheck::Hold };
        }
        let begins = self.frame.state == FrameState::AtStep
            && self.frame.answer.is_none()
            && self.frame.failing.is_none()
            && !matches!(self.frame.kind, FrameKind::Call { .. });
        let (Some(step), true) = (&self.frame.step, begins) else { return LimitCheck::Limits };
        let kind = self.plan.step(step).map(|step| &step.kind);
        let over = match kind {
            Some(StepKind::ToolCall(_)) => used.over_calls(self.env.limits),
            _ => None,
        };
        match over.or_else(|| used.over(self.env.limits)) {
            None => LimitCheck::Limits,
            Some(fault) => LimitCheck::Fact(Box::new(Fact::RunHeld {
                run: self.run.id,
                frame: self.frame.id,
                step: step.clone(),
                fault,
            })),
        }
    }

    fn at_step(&self) -> DecideResult {
        let Some(id) = &self.frame.step else { return self.end_of_list() };
        let Some(step) = self.plan.step(id) else {
            let message = format!("plan `{}` has no step `{id}`", self.plan.id);
            return Err(Stop::Fault(Fault::new("PlanError", message)));
        };
        if let Some(fact) = self.over_limit(id) {
            return Ok(Some(fact));
        }
        self.step(step)
    }

    fn step(&self, step: &Step) -> DecideResult {
        match &step.kind {
            StepKind::ToolCall(call) => self.tool_call(step, call),
            StepKind::Match { value, cases, default } => {
                self.matching(step, value, cases, default.as_ref())
            }
            StepKind::Conditional { condition, on_true, on_false } => {
                self.conditional(step, condition, on_true.as_ref(), on_false.as_ref())
            }
            StepKind::Parallel { branches, next } => self.parallel(step, branches, next.as_ref()),
            StepKind::Loop(looping) => self.looping(step, looping),
            StepKind::Human { message, schema, .. } => self.human(step, message, schema.as_ref()),
            StepKind::Plan { plan, arguments, save_as, next } => {
                self.sub_plan(step, plan, arguments, save_as, next.as_ref())
            }
            StepKind::Agent { agent, input, save_as, next, .. } => {
                self.enter_agent(step, agent, input, save_as, next.as_ref())
            }
            StepKind::Publish { event, next } => self.publish(step, event, next.as_ref()),
            StepKind::Final { message } => {
                let answer = self.view().text(message)?;
                let answer = Datum::inline(answer, crate::values::datum::Origin::Plan);
                Ok(Some(Fact::AnswerGiven {
                    frame: self.frame.id,
                    step: step.id.clone(),
                    answer: Arc::new(answer),
                }))
            }
        }
    }

    /// The end of a list: a branch or item ends; a plan that gave no answer answers null.
    fn end_of_list(&self) -> DecideResult {
        match self.frame.kind {
            FrameKind::Branch { .. } | FrameKind::Item { .. } | FrameKind::Call { .. } => {
                Ok(Some(Fact::FrameEnded { frame: self.frame.id }))
            }
            FrameKind::Root | FrameKind::SubPlan { .. } => {
                let null =
                    Datum::inline(serde_json::Value::Null, crate::values::datum::Origin::Plan);
                self.answered(&Arc::new(null))
            }
        }
    }

    fn over_limit(&self, step: &StepId) -> Option<Fact> {
        let visits = self.frame.visits.get(step).copied().unwrap_or_default();
        let max = self.env.limits.step_visits_max;
        if visits > max {
            let message = format!("step `{step}` was entered more than {max} times");
            return Some(self.limit("step_visits_max", message));
        }
        let keys = self.frame.context.len();
        let max = self.env.limits.context_keys_max;
        if keys > max {
            let message = format!("the context holds {keys} keys, more than {max}");
            return Some(self.fixed_limit(message));
        }
        None
    }

    /// A limit reached ends the run, or the correction that reached it, honestly.
    fn limit(&self, limit: &str, message: String) -> Fact {
        let hint = format!("raise `{limit}` in [limits], or change the plan");
        self.fail(Fault::new("LimitReached", message).hint(hint))
    }

    /// The same for a limit that nobody can raise.
    fn fixed_limit(&self, message: String) -> Fact {
        self.fail(Fault::new("LimitReached", message).hint("change the plan"))
    }

    fn close_failed(&self, fault: Fault) -> Fact {
        Fact::RunClosing { run: self.run.id, why: Closing::Failed(fault) }
    }

    fn failed(&self, fault: Fault) -> Fact {
        let step = self.frame.step.clone().unwrap_or_else(|| StepId::from(""));
        Fact::StepFailed { frame: self.frame.id, step, fault }
    }

    fn view(&self) -> FrameView<'e> {
        FrameView::new(self.session, self.frame, self.env.fetched, self.env.limits)
    }

    fn new_frame_id(&self, offset: usize) -> FrameId {
        FrameId(self.session.frames_made + 1 + offset as u32)
    }

    /// The limit that is hit where the run would have too many frames.
    fn too_many_frames(&self, more: usize) -> Option<Fact> {
        let own = self.session.frames.values().filter(|frame| frame.run == self.run.id);
        let frames = own.count() + more;
        let max = self.env.limits.frames_max;
        if frames <= max {
            return None;
        }
        let message = format!("the run would have {frames} frames at once, more than {max}");
        Some(self.fixed_limit(message))
    }

    /// Where the frame goes after a step.
    fn after(&self, step: &StepId, next: Option<&StepId>) -> Option<StepId> {
        self.plan.after(step, next)
    }

    /// The bytes that an id of something made here is hashed from.
    fn id_seed(&self) -> Vec<u8> {
        let mut seed = self.frame.path.position(self.run.no, self.frame.ordinal);
        seed.extend(self.run.id.0.to_be_bytes());
        seed.extend(self.session.id.0.to_be_bytes());
        seed
    }
}
