//! Models of a scene: the prompts that they get, and the answers from its lines.

use super::around::tools;
use super::outline::{shown, shown_text};
use super::stage::Stage;
use kernel::conversation::llm::{LlmError, LlmErrorKind, Message, ModelCall, Prompt, Turn, Usage};
use kernel::conversation::talk::Talk;
use kernel::decide::{TurnNumber, TurnResult, turn_failed, turn_to_start, turned};
use kernel::definition::agent::Agent;
use kernel::event::{Event, Fact, TurnKind, TurnStart};
use kernel::prompt::tool_cards::ToolCards;
use kernel::prompt::transcript::{
    Journal, RENDERER, RESULT_BYTES_MAX, TurnContext, prompt, render,
};
use kernel::session::{AgentPhase, AgentState, Run, Session};
use kernel::values::canonical;
use kernel::values::datum::Datum;
use kernel::values::fault::Fault;
use kernel::values::ids::{FrameId, RunId};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a turn takes where its line says nothing.
const USAGE: Usage = Usage { input: 100, cached: 0, cache_written: 0, output: 10 };

/// The journal as it was played.
struct Played<'e>(&'e [Event]);

impl Journal for Played<'_> {
    fn fact(&self, seq: u64) -> Option<Arc<Fact>> {
        let event = self.0.iter().find(|event| event.seq == seq)?;
        Some(Arc::new(event.fact.clone()))
    }

    fn value(&self, datum: &Datum) -> Value {
        datum.to_value()
    }
}

impl Stage {
    /// Renders what a model is asked and records that it is.
    pub(super) fn start_turn(&mut self, frame: FrameId, kind: TurnKind) {
        let (agent, state) = self.agent(frame);
        let asked = self.prompt(&agent, &state, kind);
        let TurnNumber { turn, attempt } = turn_to_start(&state);
        let model = match kind {
            TurnKind::Route => agent.router_model.as_ref().unwrap_or(&agent.model),
            TurnKind::Act | TurnKind::Sum => &agent.model,
        };
        self.record(Fact::TurnStarted(Box::new(TurnStart {
            frame,
            turn,
            attempt,
            kind,
            model: model.clone(),
            digest: canonical::digest(&json!(asked)),
            renderer: RENDERER,
            reserved: None,
        })));
        self.prompts.push(asked);
    }

    fn agent(&self, frame: FrameId) -> (Arc<Agent>, AgentState) {
        let Some(state) = self.session.agent(frame) else { panic!("{frame:?} has no agent") };
        (self.closure.agents[&state.agent].clone(), state.clone())
    }

    fn prompt(&self, agent: &Agent, state: &AgentState, kind: TurnKind) -> Prompt {
        let around = TurnContext {
            agent,
            kind,
            tools: ToolCards::of(agent, state.route.as_ref(), &tools(agent)).shown,
            now: self.now(),
            zone: "UTC",
            local: "Sunday, 2026-11-15 08:42",
            entered: "Sunday, 2026-11-15 08:41",
            result_bytes_max: RESULT_BYTES_MAX,
            lines: state.talk.compactable(agent.limits.keep_turns),
        };
        match prompt(around, &state.talk, &Played(&self.events)) {
            Ok(prompt) => prompt,
            Err(fault) => panic!("the scene's prompt cannot be filled: {fault}"),
        }
    }

    /// After a cut: models that were asked are still asked, unless their run is being closed.
    pub(super) fn go_on_with_turns(&mut self) {
        self.asked = self.turns_of(|_| true).into_iter().map(|(frame, _)| frame).collect();
        let runs = self.session.runs.values();
        let closing: Vec<RunId> =
            runs.filter(|run| run.closing.is_some()).map(|run| run.id).collect();
        for run in closing {
            self.close_turns(run);
            self.close_proposals(run);
        }
    }

    /// A closing run asks no model any more.
    pub(super) fn close_turns(&mut self, run: RunId) {
        for (frame, (turn, attempt)) in self.turns_of(|other| other == run) {
            let fault = Fault::new("Cancelled", "the run is being closed");
            self.record(Fact::TurnFailed { frame, turn, attempt, fault, again_at: None });
        }
    }

    fn turns_of(&self, of: impl Fn(RunId) -> bool) -> Vec<(FrameId, (u32, u32))> {
        let frames = self.session.frames.values().filter(|frame| of(frame.run));
        let turns = frames.filter_map(|frame| {
            let AgentPhase::Turn { turn, attempt, .. } = frame.agent.as_ref()?.phase else {
                return None;
            };
            Some((frame.id, (turn, attempt)))
        });
        turns.collect()
    }

    /// One model answers.
    pub(super) fn answer_one(&mut self) -> bool {
        let waiting: Vec<FrameId> =
            self.turns_of(|_| true).into_iter().map(|(frame, _)| frame).collect();
        self.asked.retain(|frame| waiting.contains(frame));
        let Some(frame) = self.asked.first().copied() else { return false };
        let Some(line) = self.scene.model.get(self.turns_over()) else { return false };
        let line: Value = match serde_json::from_str(line) {
            Ok(line) => line,
            Err(error) => panic!("a line of the model is not JSON: {error}: {line}"),
        };
        self.asked.remove(0);
        let (agent, state) = self.agent(frame);
        let seen_tools = ToolCards::of(&agent, state.route.as_ref(), &tools(&agent)).tools;
        let env = self.env();
        let session = &self.session;
        let fact = match line["error"].as_str() {
            Some(kind) => {
                let error = LlmError::new(error_kind(kind), format!("the model fails: {kind}"))
                    .retry_after_ms(line["retry_after_ms"].as_u64());
                turn_failed(&env, session, frame, &error)
            }
            None => {
                let cost_micros = line["cost_micros"].as_u64();
                let uncached_micros = line["uncached_micros"].as_u64();
                let turn = TurnResult {
                    turn: turn(&line),
                    seen_tools: &seen_tools,
                    cost_micros,
                    uncached_micros,
                };
                turned(&env, session, frame, turn)
            }
        };
        let Some(fact) = fact else { panic!("nobody waits for {line}") };
        self.record(fact);
        true
    }

    /// How many turns are over, however they ended.
    pub(super) fn turns_over(&self) -> usize {
        let over = |event: &&Event| {
            matches!(
                event.fact,
                Fact::TurnFinished(_) | Fact::TurnFailed { .. } | Fact::TalkCompacted { .. }
            )
        };
        self.events.iter().filter(over).count()
    }

    /// A conversation as a model reads it.
    pub(super) fn said(&self, talk: &Talk) -> Vec<Message> {
        render(talk, &Played(&self.events), RESULT_BYTES_MAX)
    }

    /// What a run's models took, and what the last acting one was shown of its conversation.
    pub(super) fn talked(&self, run: &Run) -> String {
        let is_act = |event: &&Event| match &event.fact {
            Fact::TurnStarted(start) => start.kind == TurnKind::Act,
            _ => false,
        };
        let last = self.events.iter().rev().find(is_act).map(|event| (event.seq, &event.fact));
        let Some((seq, Fact::TurnStarted(start))) = last else { return String::new() };
        let mut then = Session::new(self.session.id, self.session.key.clone());
        for event in self.events.iter().take_while(|event| event.seq <= seq) {
            then.apply(event);
        }
        let Some(state) = then.agent(start.frame) else { return String::new() };
        let spent = &run.spent;
        let mut text = format!(
            "spent: {} turns, {} read, {} written, {} micros",
            spent.turns, spent.input, spent.output, spent.cost_micros
        );
        if let Some(stopped) = &run.stopped {
            text.push_str(&format!(", stopped by {stopped}"));
        }
        let agent = &self.closure.agents[&state.agent];
        let seen = ToolCards::of(agent, state.route.as_ref(), &tools(agent)).tools;
        let seen: Vec<&str> = seen.names().collect();
        text.push_str(&format!("\ntools: {}\nlast prompt:\n", seen.join(", ")));
        text.push_str(&told(&self.said(&state.talk)));
        text
    }
}

/// A turn as its line says.
fn turn(line: &Value) -> Turn {
    let text = match line.get("route") {
        Some(route) => shown(route),
        None => line["text"].as_str().unwrap_or_default().to_owned(),
    };
    let calls = line["calls"].as_array().cloned().unwrap_or_default();
    let call = |(index, call): (usize, Value)| ModelCall {
        id: format!("its-own-{index}"),
        tool: call["tool"].as_str().unwrap_or_default().to_owned(),
        arguments: Arc::new(call["arguments"].clone()),
    };
    let read = |name: &str| line.get(name).cloned();
    let usage = read("usage").map(serde_json::from_value).and_then(Result::ok);
    let stop = read("stop").map(serde_json::from_value).and_then(Result::ok);
    Turn {
        text,
        calls: calls.into_iter().enumerate().map(call).collect(),
        stop: stop.unwrap_or_default(),
        usage: usage.unwrap_or(USAGE),
        native: None,
    }
}

fn error_kind(name: &str) -> LlmErrorKind {
    match name {
        "unreachable" => LlmErrorKind::Unreachable,
        "timeout" => LlmErrorKind::Timeout,
        "rate_limited" => LlmErrorKind::RateLimited,
        "overloaded" => LlmErrorKind::Overloaded,
        "unauthorized" => LlmErrorKind::Unauthorized,
        "quota" => LlmErrorKind::Quota,
        "no_such_model" => LlmErrorKind::NoSuchModel,
        "too_long" => LlmErrorKind::TooLong,
        "refused" => LlmErrorKind::Refused,
        "bad_request" => LlmErrorKind::BadRequest,
        "unreadable" => LlmErrorKind::Unreadable,
        other => panic!("a model cannot fail by `{other}`"),
    }
}

/// Messages as a person reads them in a scene; calls by short names in order of appearance.
fn told(messages: &[Message]) -> String {
    let mut calls = Calls::default();
    let mut text = String::new();
    for message in messages {
        match message {
            Message::System { text: said } => text.push_str(&format!("  system: {said}\n")),
            Message::User { text: said } => {
                text.push_str(&format!("  user: {}\n", shown_text(said)));
            }
            Message::Assistant { text: said, calls: made, .. } => {
                text.push_str(format!("  assistant: {said}").trim_end());
                text.push('\n');
                for call in made {
                    let id = calls.short(&call.id);
                    let arguments = shown(&call.arguments);
                    text.push_str(&format!("    calls {id} {} {arguments}\n", call.tool));
                }
            }
            Message::Result { id, tool, text: said, failed } => {
                let id = calls.short(id);
                let mark = if *failed { " failed" } else { "" };
                let said = shown_text(said);
                text.push_str(&format!("  result {id} {tool}{mark}: {said}\n"));
            }
        }
    }
    text
}

/// Short names for the ids of calls.
#[derive(Default)]
struct Calls(Vec<String>);

impl Calls {
    /// `a`, `b`, ..; a call that is made once more keeps its letter and is numbered.
    fn short(&mut self, id: &str) -> String {
        let digits = id.strip_prefix("call_").unwrap_or(id);
        let (own, again) = digits.split_once('_').unwrap_or((digits, ""));
        let known = self.0.iter().position(|known| known == own);
        let place = known.unwrap_or_else(|| {
            self.0.push(own.to_owned());
            self.0.len() - 1
        });
        let letter = char::from(b'a' + u8::try_from(place % 26).unwrap_or_default());
        format!("{letter}{again}")
    }
}
