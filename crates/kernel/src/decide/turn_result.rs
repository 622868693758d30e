//! Interprets a model's answer: a route, a summary, an answer, or calls with ids of their own.

use super::{Env, FrameContext};
use crate::conversation::command::{Command, NoCommand, must_command, read_command};
use crate::conversation::llm::{LlmError, ModelCall, Stop, Turn};
use crate::conversation::talk::AgentQuestion;
use crate::definition::agent::{Agent, CLARIFY};
use crate::event::{CallMade, Fact, Route, TurnEnd, TurnKind};
use crate::prompt::tool_cards::{SeenTools, ToolMatch};
use crate::session::{AgentPhase, AgentState, Frame, Session};
use crate::values::fault::Fault;
use crate::values::history::{ForkMode, PathSegment};
use crate::values::ids::{CallId, FrameId};
use serde_json::Value;
use std::sync::Arc;

/// The longest wait before a failed turn is tried again.
const BACKOFF_MS_MAX: u64 = 30_000;
/// The longest wait that a provider may ask for; with a longer one the turn has failed.
const RETRY_AFTER_MS_MAX: u64 = 120_000;

/// What a model answered, and what it was shown.
pub struct TurnResult<'a> {
    /// The answer.
    pub turn: Turn,
    /// The tools of the prompt.
    pub seen_tools: &'a SeenTools,
    /// `None` if the price is unknown.
    pub cost_micros: Option<u64>,
    /// Cost without the provider's cache, if one was used and the price is known.
    pub uncached_micros: Option<u64>,
}

/// What an answer of a model results in: `turn.finished`, `talk.compacted`, or `turn.failed` where
/// it cannot be used. None if no one waits for it any more.
pub fn turned(
    env: &Env<'_>,
    session: &Session,
    frame: FrameId,
    turned: TurnResult<'_>,
) -> Option<Fact> {
    let at = FrameContext::of(env, session, frame)?;
    let state = session.agent(frame)?;
    let AgentPhase::Turn { turn, attempt, kind } = state.phase else { return None };
    let agent = at.closure.agents.get(&state.agent)?;
    let TurnResult { turn: answer, seen_tools, cost_micros, uncached_micros } = turned;
    let end = |text: &str, calls, route| TurnEnd {
        frame,
        turn,
        attempt,
        kind,
        text: text.into(),
        calls,
        route,
        stops: false,
        stop: answer.stop,
        usage: answer.usage,
        cost_micros,
        uncached_micros,
        native: answer.native.clone(),
    };
    Some(match kind {
        TurnKind::Route => match read_route(&answer.text, agent) {
            Ok(route) => Fact::TurnFinished(Box::new(end(&answer.text, Vec::new(), Some(route)))),
            Err(why) => {
                let message = format!("the router of agent `{}` gave no route: {why}", agent.name);
                let fault = Fault::new("ModelUnreadable", message);
                at.turn_failed(state, fault, true, None)
            }
        },
        TurnKind::Sum => {
            let lines = state.talk.compactable(agent.limits.keep_turns);
            Fact::TalkCompacted { lines, turn: Box::new(end(&answer.text, Vec::new(), None)) }
        }
        TurnKind::Act => {
            let reply = match state.commands {
                true => commanded(state, &answer, seen_tools),
                false => Ok(model_reply(&answer, seen_tools)),
            };
            match reply {
                Ok(ModelReply { text, calls, stops }) => {
                    let calls = at.calls_made(state, agent, calls, seen_tools);
                    let end = TurnEnd { stops, ..end(&text, calls, None) };
                    Fact::TurnFinished(Box::new(end))
                }
                // A model that speaks only in commands is not asked again what it meant.
                Err(fault) => at.turn_failed(state, fault, false, None),
            }
        }
    })
}

/// A turn that failed: when it is tried again, if it is.
pub fn turn_failed(
    env: &Env<'_>,
    session: &Session,
    frame: FrameId,
    error: &LlmError,
) -> Option<Fact> {
    let at = FrameContext::of(env, session, frame)?;
    let state = session.agent(frame)?;
    let mut fault = Fault::new(error.kind.name(), error.message.clone());
    fault.hint = error.hint.clone();
    Some(at.turn_failed(state, fault, error.kind.may_pass(), error.retry_after_ms))
}

/// How much of a name that a model made up is shown.
const NAME_CHARS_MAX: usize = 100;

/// What a model said and called.
struct ModelReply {
    text: String,
    calls: Vec<ModelCall>,
    /// Whether these calls are the last.
    stops: bool,
}

/// A text that is a command as a whole is a call; only a `stop` that is written counts.
fn model_reply(answer: &Turn, seen_tools: &SeenTools) -> ModelReply {
    let command = if answer.calls.is_empty() { read_command(&answer.text) } else { None };
    let Some(command) = command else {
        return ModelReply { text: answer.text.clone(), calls: answer.calls.clone(), stops: false };
    };
    let stops = command.stop == Some(true);
    ModelReply { text: String::new(), calls: vec![as_call(command, seen_tools)], stops }
}

/// The same in command mode, in which nothing else is taken. The command stays in the conversation
/// as it was said, so that a model that continues sees how it spoke. Calls of the provider's own
/// kind say nothing about an end; words after them do.
fn commanded(
    state: &AgentState,
    answer: &Turn,
    seen_tools: &SeenTools,
) -> Result<ModelReply, Fault> {
    let text = answer.text.clone();
    let (calls, stops) = match must_command(&answer.text) {
        _ if !answer.calls.is_empty() => (answer.calls.clone(), false),
        Ok(command) => {
            let stops = command.stop.unwrap_or(true);
            (vec![as_call(command, seen_tools)], stops)
        }
        // It has done something and is done, or it was cut off, or it refuses.
        Err(NoCommand::Text) if state.calls > 0 || answer.stop != Stop::Done => (Vec::new(), false),
        Err(why) => return Err(no_command(why)),
    };
    calls.iter().try_for_each(|call| may_call(call, seen_tools))?;
    Ok(ModelReply { text, calls, stops })
}

/// A command as a call. It names a tool as we do; the model saw it under a name of its own
/// alphabet.
fn as_call(command: Command, seen_tools: &SeenTools) -> ModelCall {
    let seen = seen_tools.name_of(&command.tool).map(str::to_owned);
    let tool = seen.unwrap_or(command.tool);
    ModelCall { id: String::new(), tool, arguments: Arc::new(Value::Object(command.args)) }
}

fn no_command(why: NoCommand) -> Fault {
    let unsupported = |intent: &str| {
        let message = format!("Unsupported intent: {}", shown(intent));
        Fault::new("UnsupportedIntent", message)
            .hint("the only intent is `CALL_TOOL`; look at the agent's prompt, then retry")
    };
    match why {
        NoCommand::Text | NoCommand::Intent(None) => unsupported("none"),
        NoCommand::Intent(Some(intent)) => unsupported(&intent),
        NoCommand::Malformed(why) => {
            Fault::new("InvalidCommand", format!("the command cannot be used: {why}"))
                .hint("it is `{intent, tool, args, stop}`; look at the agent's prompt, then retry")
        }
    }
}

fn may_call(call: &ModelCall, seen_tools: &SeenTools) -> Result<(), Fault> {
    match seen_tools.meant(&call.tool) {
        ToolMatch::Tool(_) => {}
        ToolMatch::Unclear(alike) => {
            return Err(unclear(&call.tool, &alike).hint("retry asks the model again"));
        }
        ToolMatch::Nothing => {
            let message = format!("Tool not allowlisted: {}", shown(&call.tool));
            let hint = "let the agent's tools have it, or retry for another command";
            return Err(Fault::new("ToolNotAllowlisted", message).hint(hint));
        }
    }
    if !call.arguments.is_object() {
        let message = format!("the arguments of `{}` are not a JSON object", call.tool);
        return Err(Fault::new("InvalidArguments", message).hint("retry asks the model again"));
    }
    Ok(())
}

/// Why a name that was clear once is not taken for one of the tools that it may mean now.
fn unclear(said: &str, alike: &[&str]) -> Fault {
    let names = alike.join(", ");
    let message = format!("`{said}` is not clear any more; call the one that is meant: {names}");
    Fault::new("UnclearTool", message)
}

fn shown(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

fn read_route(text: &str, agent: &Agent) -> Result<Route, String> {
    let value: Value = serde_json::from_str(text.trim()).map_err(|error| error.to_string())?;
    let allow = match value["decision"].as_str() {
        Some("allow") => true,
        Some("refuse") => false,
        _ => return Err("`decision` is neither `allow` nor `refuse`".to_owned()),
    };
    let types = value["allowed_tool_types"].as_array().ok_or("`allowed_tool_types` is no list")?;
    let known = |name: &&str| agent.types.contains_key(*name);
    let mut types: Vec<String> =
        types.iter().filter_map(Value::as_str).filter(known).map(str::to_owned).collect();
    types.dedup();
    if !allow {
        types.clear();
    }
    let note = value["note"].as_str().unwrap_or_default().to_owned();
    Ok(Route { allow, note, types })
}

impl FrameContext<'_> {
    /// The calls of a turn, each with an id that a replay gives again.
    fn calls_made(
        &self,
        state: &AgentState,
        agent: &Agent,
        calls: Vec<ModelCall>,
        seen_tools: &SeenTools,
    ) -> Vec<CallMade> {
        let mut max = self.env.limits.turn_calls_max;
        if state.commands {
            // Each counts as a step, and there are only so many left.
            max = max.min(agent.limits.steps.saturating_sub(state.calls) as usize);
        }
        let names = || seen_tools.names().collect::<Vec<&str>>().join(", ");
        let mut frames = 0;
        let mut made = Vec::new();
        for (index, call) in calls.into_iter().enumerate() {
            let number = state.calls + u32::try_from(index).unwrap_or(u32::MAX);
            let meant = seen_tools.meant(&call.tool);
            let is_question = call.tool == CLARIFY;
            let refused = if index >= max {
                Some(Fault::new("TooManyCalls", format!("one turn may call {max} tools at most")))
            } else if is_question {
                None
            } else if let ToolMatch::Unclear(alike) = &meant {
                Some(unclear(&call.tool, alike))
            } else if meant == ToolMatch::Nothing {
                let message =
                    format!("there is no tool `{}`; the tools are: {}", call.tool, names());
                Some(Fault::new("UnknownTool", message))
            } else if !call.arguments.is_object() {
                Some(Fault::new("InvalidArguments", "the arguments are not a JSON object"))
            } else if self.session.frames.len() + frames >= self.env.limits.frames_max {
                Some(Fault::new("TooManyCalls", "too much is under way; try fewer calls"))
            } else {
                None
            };
            let question = is_question.then(|| asked(&call.arguments));
            let goes_out = refused.is_none() && !is_question;
            let frame = goes_out.then(|| self.new_frame_id(frames));
            frames += usize::from(goes_out);
            let tool = match meant {
                ToolMatch::Tool(tool) => Some(tool.clone()),
                ToolMatch::Unclear(_) | ToolMatch::Nothing => None,
            };
            made.push(CallMade {
                call: self.call_below_id(number),
                frame,
                said: call.tool.as_str().into(),
                approve: tool.as_ref().is_some_and(|tool| agent.asks_before(tool)),
                tool,
                arguments: call.arguments,
                question,
                refused,
            });
        }
        made
    }

    /// The id of a call of this agent: the one that its frame will give it.
    fn call_below_id(&self, number: u32) -> CallId {
        let segment =
            PathSegment { ordinal: self.frame.ordinal, child: number, mode: ForkMode::Apart };
        let path = self.frame.path.child(segment);
        let child = Frame { path, ordinal: 1, ..self.frame.clone() };
        FrameContext { frame: &child, ..*self }.call_id(&self.current_step(), 1)
    }

    pub(super) fn turn_failed(
        &self,
        state: &AgentState,
        fault: Fault,
        may_pass: bool,
        retry_after_ms: Option<u64>,
    ) -> Fact {
        let (turn, attempt) = match state.phase {
            AgentPhase::Turn { turn, attempt, .. } => (turn, attempt),
            _ => (state.turns, 1),
        };
        let limits = self.env.limits;
        let doublings = attempt.saturating_sub(1).min(20);
        let wait = limits.turn_backoff_ms.saturating_mul(1 << doublings);
        let wait = wait.min(BACKOFF_MS_MAX);
        let too_long = retry_after_ms.is_some_and(|ms| ms > RETRY_AFTER_MS_MAX);
        let again = may_pass && !too_long && attempt < limits.turn_attempts_max;
        let wait = wait.max(retry_after_ms.unwrap_or(0));
        Fact::TurnFailed {
            frame: self.frame.id,
            turn,
            attempt,
            fault,
            again_at: again.then(|| self.env.now.plus_ms(wait)),
        }
    }
}

/// What a question's arguments say. One that asks nothing is asked as what it is about.
fn asked(arguments: &Value) -> AgentQuestion {
    let text = |name: &str| arguments[name].as_str().unwrap_or_default().trim();
    let question = match text("question") {
        "" => "What do you mean?",
        question => question,
    };
    AgentQuestion { question: question.into(), context: text("context").into() }
}
