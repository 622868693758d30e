//! The calls of an agent's turn: questions first, then approvals, then all that may run together;
//! and what people reply to them.

use super::agent::AgentNext;
use super::ask_details::call_details;
use super::fix::asked_call;
use super::steps::title;
use super::{DecideResult, FrameContext};
use crate::ask::{Ask, AskBody, CallDecision, Question, Reply};
use crate::conversation::talk::{CallLine, CallSettlement};
use crate::definition::agent::Agent;
use crate::event::{CallRequest, Fact};
use crate::session::{AgentState, CallState, FrameKind, OpenAsk, OpenCall};
use crate::tool::call::{Judgement, Verdict};
use crate::values::datum::Datum;
use crate::values::fault::Fault;
use crate::values::ids::{AskId, CallId, ContextKey, FrameId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

impl<'e> FrameContext<'e> {
    /// The calls of the last turn: questions first, then approvals, then all that may run together.
    pub(super) fn calls_next(&self, state: &AgentState, agent: &Agent) -> AgentNext {
        let calls = state.talk.last_calls();
        let open: Vec<&CallLine> = calls.iter().filter(|line| line.settled.is_none()).collect();
        if open.is_empty() {
            return match done_with(state) {
                Some(output) => AgentNext::Fact(self.answers(output, None)),
                None => self.next_turn(state, agent),
            };
        }
        if state.made.values().any(|times| *times > agent.limits.repeats)
            && let Some(fact) = self.not_run(&open)
        {
            return AgentNext::Fact(fact);
        }
        let under_way = |line: &&CallLine| line.frame.and_then(|child| self.call_below(child));
        let judged: Vec<&OpenCall> = open
            .iter()
            .filter_map(under_way)
            .filter(|open| matches!(open.state, CallState::Judged(_)))
            .collect();
        if let Some(refused) = judged.iter().find_map(|open| refusal(open)) {
            return AgentNext::Fact(refused);
        }
        let questions: Vec<Question> = open.iter().filter_map(|line| question(line)).collect();
        if !questions.is_empty() {
            return AgentNext::Fact(self.ask_questions(questions));
        }
        let guarded: Vec<&OpenCall> =
            judged.iter().copied().filter(|open| needs_approval(open)).collect();
        if !guarded.is_empty() {
            return AgentNext::Fact(self.ask_approval(&guarded));
        }
        match judged.first() {
            Some(open) => AgentNext::Fact(Fact::CallStarted {
                call: open.request.call,
                grant: open.request.grant,
            }),
            None => AgentNext::Idle,
        }
    }

    /// Calls that are not even tried, because the agent goes in circles.
    fn not_run(&self, open: &[&CallLine]) -> Option<Fact> {
        let waits = |line: &&&CallLine| match line.frame.and_then(|child| self.call_below(child)) {
            Some(open) => matches!(open.state, CallState::Requested | CallState::Judged(_)),
            None => true,
        };
        let why: Arc<str> = "the very same call was made too often".into();
        let results: BTreeMap<CallId, CallSettlement> = open
            .iter()
            .filter(waits)
            .map(|line| (line.call, CallSettlement::NotRun(why.clone())))
            .collect();
        let frame = self.frame.id;
        (!results.is_empty()).then_some(Fact::ResultsGiven { frame, results })
    }

    fn call_below(&self, child: FrameId) -> Option<&'e OpenCall> {
        self.session.calls.values().find(|open| open.request.frame == child)
    }

    fn ask_questions(&self, questions: Vec<Question>) -> Fact {
        let texts: Vec<&str> = questions.iter().map(|asked| asked.question.as_str()).collect();
        let message = texts.join("\n");
        let title = title(&message);
        let step = self.current_step();
        let body = AskBody::Clarify { message, questions };
        Fact::AskOpened(Box::new(self.ask(step, title, body, Vec::new())))
    }

    fn ask_approval(&self, guarded: &[&OpenCall]) -> Fact {
        let tools: Vec<String> =
            guarded.iter().map(|open| format!("`{}`", open.request.tool)).collect();
        let title = title(&format!("approve {}", tools.join(", ")));
        let calls = guarded.iter().map(|open| asked_call(open)).collect();
        let specs = guarded.iter().filter_map(|open| open.pins.as_ref());
        let more = specs.flat_map(|pins| pins.spec.as_str().bytes()).collect();
        let ask = self.ask(self.current_step(), title, AskBody::Approve { calls }, more);
        let said = guarded.iter().filter_map(|open| match &open.state {
            CallState::Judged(Judgement::Admitted { answerers, .. }) => answerers.as_ref(),
            _ => None,
        });
        let about =
            guarded.iter().map(|open| call_details(open, self.approval_reason(open))).collect();
        Fact::AskOpened(Box::new(Ask { answerers: self.narrowed(said), about, ..ask }))
    }

    /// Acts upon a reply to an agent's own question or approval.
    pub(super) fn agent_replied(&self, open: &OpenAsk) -> DecideResult {
        let nobody = "nobody answered in time";
        match (&open.ask.body, open.decision.as_ref().map(|decision| &decision.reply)) {
            (AskBody::Clarify { questions, .. }, reply) => {
                let by = open.decision.as_ref().map_or("someone", |decision| &decision.by);
                let result = |asked: &Question| match reply {
                    Some(Reply::Clarify { answer: Some(answer) }) => {
                        CallSettlement::Answered(answer_to(answer, asked.call_id).into())
                    }
                    Some(_) => {
                        CallSettlement::Declined(format!("`{by}` declined to answer").into())
                    }
                    None => CallSettlement::Declined(nobody.into()),
                };
                let results = questions.iter().map(|asked| (asked.call_id, result(asked)));
                let results = results.collect();
                Ok(Some(Fact::ResultsGiven { frame: self.frame.id, results }))
            }
            (AskBody::Approve { calls }, Some(Reply::Approve { decisions })) => {
                let rejected = decisions.iter().filter(|decision| !decision.approve);
                let by = open.decision.as_ref().map_or("someone", |decision| &decision.by);
                let words = |decision: &CallDecision| match &decision.feedback {
                    Some(feedback) => feedback.clone(),
                    None => format!("`{by}` did not approve it"),
                };
                let rejected = rejected.map(|decision| (decision.call_id, words(decision)));
                if let Some(fact) = self.reject(rejected.collect()) {
                    return Ok(Some(fact));
                }
                let waits = |call: &CallId| self.judged_call(*call);
                let approved = calls.iter().find_map(|call| waits(&call.call_id));
                let Some(call) = approved else { return Ok(None) };
                let id = call.request.call;
                let edited = decisions.iter().find(|decision| decision.call_id == id);
                let grant = Some(open.ask.id);
                Ok(Some(match edited.and_then(|decision| decision.arguments.clone()) {
                    Some(arguments) => self.again_below(call, arguments, grant),
                    None => Fact::CallStarted { call: id, grant },
                }))
            }
            (AskBody::Approve { calls }, _) => {
                let all = calls.iter().map(|call| (call.call_id, nobody.to_owned())).collect();
                Ok(self.reject(all))
            }
            _ => Ok(None),
        }
    }

    fn judged_call(&self, call: CallId) -> Option<&'e OpenCall> {
        let open = self.session.calls.get(&call)?;
        matches!(open.state, CallState::Judged(_)).then_some(open)
    }

    /// The same call with other arguments, which a person wrote and approved.
    fn again_below(&self, call: &OpenCall, arguments: Arc<Value>, grant: Option<AskId>) -> Fact {
        let below = FrameContext::of(self.env, self.session, call.request.frame);
        match below {
            Some(below) => below.again(call, Some(arguments), grant),
            None => Fact::CallStarted { call: call.request.call, grant },
        }
    }

    /// Reports to the model what a person rejected.
    fn reject(&self, rejected: Vec<(CallId, String)>) -> Option<Fact> {
        let mut results = BTreeMap::new();
        for (call, words) in rejected {
            let Some(open) = self.judged_call(call) else { continue };
            let child = open.request.frame;
            let line = self.session.turn_calls(self.frame.id).iter();
            let line = line.clone().find(|line| line.frame == Some(child));
            if let Some(line) = line {
                results.insert(line.call, CallSettlement::Rejected(words.into()));
            }
        }
        let frame = self.frame.id;
        (!results.is_empty()).then_some(Fact::ResultsGiven { frame, results })
    }

    /// One call of a turn, before it is requested.
    pub(super) fn agent_call(&self) -> DecideResult {
        let FrameKind::Call { tool, arguments, approve, .. } = &self.frame.kind else {
            return Ok(None);
        };
        let step = self.current_step();
        Ok(Some(Fact::CallRequested(Box::new(CallRequest {
            call: self.call_id(&step, 1),
            frame: self.frame.id,
            step,
            try_no: 1,
            tool: tool.clone(),
            arguments: arguments.clone(),
            sources: BTreeMap::new(),
            save_as: ContextKey::from(""),
            next: None,
            approve: *approve,
            grant: None,
            replaces: None,
        }))))
    }

    /// A person skipped a call of a turn: the model gets what stands for its output.
    pub(super) fn skip_call(&self, output: Option<&Value>) -> Option<Fact> {
        let parent = self.frame.parent?;
        let lines = self.session.turn_calls(parent);
        let line = lines.iter().find(|line| line.frame == Some(self.frame.id))?;
        let commands = self.session.agent(parent).is_some_and(|agent| agent.commands);
        let settled = match output {
            Some(output) => CallSettlement::Skipped(Arc::new(output.clone())),
            // A command's output is what the agent answers: without it that is nothing.
            None if commands => CallSettlement::Skipped(Arc::new(Value::Null)),
            None => CallSettlement::NotRun("a person skipped it".into()),
        };
        let results = BTreeMap::from([(line.call, settled)]);
        Some(Fact::ResultsGiven { frame: parent, results })
    }
}

/// What an agent answers whose last turn said that its call is the last one. What a person refused
/// gave nothing: the model hears of that, and continues.
fn done_with(state: &AgentState) -> Option<Arc<Datum>> {
    let gave = |line: &CallLine| {
        matches!(line.settled, Some(CallSettlement::Output(_) | CallSettlement::Skipped(_)))
    };
    let is_done = state.stops && state.talk.last_calls().iter().all(gave);
    state.output.clone().filter(|_| is_done)
}

/// A call that the gate does not let through fails.
fn refusal(open: &OpenCall) -> Option<Fact> {
    let CallState::Judged(judgement) = &open.state else { return None };
    let fault = match judgement {
        Judgement::Refused(fault) => fault.clone(),
        Judgement::Admitted { verdict: Verdict::Deny(why), .. } => {
            let message = format!("policy refuses `{}`: {why}", open.request.tool);
            Fault::new("PolicyDenied", message)
        }
        Judgement::Admitted { .. } => return None,
    };
    let call = open.request.call;
    let how = open.unsent();
    Some(Fact::CallFailed { call, how, fault, said: None })
}

fn needs_approval(open: &OpenCall) -> bool {
    let CallState::Judged(Judgement::Admitted { verdict, .. }) = &open.state else { return false };
    let asked = open.request.approve || matches!(verdict, Verdict::Ask(_));
    asked && open.request.grant.is_none()
}

fn question(line: &CallLine) -> Option<Question> {
    let asked = line.question.as_ref()?;
    Some(Question {
        call_id: line.call,
        question: asked.question.to_string(),
        context: asked.context.to_string(),
    })
}

/// The answer to one question: by its call's id, or the only one.
fn answer_to(answer: &Value, call: CallId) -> String {
    let own = answer.get(call.to_string()).unwrap_or(answer);
    match own {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
