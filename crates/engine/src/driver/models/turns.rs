//! Turns of agents: gather the conversation, render it, record the start, call the model, record
//! the outcome.

use crate::driver::record::no_session;
use crate::driver::state::{ActiveTurn, Completion, Driver, ModelAnswer, TurnAnswer};
use crate::driver::talk_content::{KEPT_BYTES_MAX, MissingContent, TalkContent};
use crate::observe::counts::{add, count};
use crate::refusal::Result;
use crate::shared::Shared;
use crate::system::clock::timeout;
use crate::system::zones::local_time;
use crate::waiting::deltas::{TurnListener, TurnPlace};
use futures::FutureExt;
use futures::future::abortable;
use kernel::contracts::Clock;
use kernel::conversation::llm::{
    Delta, DeltaSink, LlmError, LlmErrorKind, MODELS_BY_KEY, Prompt, Usage, missing_key,
};
use kernel::decide::{TurnNumber, TurnResult, turn_failed, turn_to_start, turned};
use kernel::event::{Fact, TurnKind, TurnStart};
use kernel::prompt::tool_cards::{SeenTools, ToolCards};
use kernel::prompt::transcript::{RENDERER, RESULT_BYTES_MAX, TurnContext, prompt};
use kernel::session::AgentPhase;
use kernel::values::caller::Caller;
use kernel::values::canonical;
use kernel::values::fault::Fault;
use kernel::values::ids::{FrameId, Millis, RunId};
use serde_json::json;
use std::sync::OnceLock;

/// A turn that is ready to be asked.
struct PreparedTurn {
    run: RunId,
    caller: Caller,
    start: TurnStart,
    prompt: Prompt,
    tools: SeenTools,
}

impl Driver {
    /// Begins the turn that a frame's agent wants; what has to be shown and is not at hand is
    /// fetched first, and the frame decides again when it is there.
    pub(in crate::driver) async fn take_turn(
        &mut self,
        frame: FrameId,
        kind: TurnKind,
    ) -> Result<()> {
        let agent = self.session.as_ref().and_then(|session| session.agent(frame));
        let missing = agent.map(|agent| self.talk_content.missing(&agent.talk));
        let mut missing = missing.ok_or_else(no_session)?;
        missing.tools = self.may_lack_tools(frame);
        if !missing.is_nothing() {
            self.gather(frame, missing);
            return Ok(());
        }
        if let Some(denied) = self.denied_turn(frame) {
            return self.record(denied).await;
        }
        match self.asking(frame, kind).ok_or_else(no_session)? {
            Ok(asking) => self.ask_model(asking).await,
            // It cannot even be asked: a person has to look at the agent.
            Err(failed) => self.record(failed).await,
        }
    }

    fn may_lack_tools(&self, frame: FrameId) -> bool {
        let agent = || {
            let session = self.session.as_ref()?;
            let state = session.agent(frame)?;
            let run = session.runs.get(&session.frames.get(&frame)?.run)?;
            self.closures.get(&run.closure)?.agents.get(&state.agent)
        };
        agent().is_some_and(|agent| self.shared.gate.may_lack(&self.key.realm, agent))
    }

    fn gather(&mut self, frame: FrameId, missing: MissingContent) {
        self.fetching.insert(frame);
        // The store answers: it must have what was recorded so far.
        self.flush();
        let shared = self.shared.clone();
        let key = self.key.clone();
        let ticket = self.ticket.clone();
        let gathering = async move {
            if let Some(ticket) = ticket
                && let Err(error) = ticket.await
            {
                return Completion::Gathered(frame, Err(error.into()));
            }
            let gathered = shared.gather(&key, missing).await;
            Completion::Gathered(frame, gathered)
        };
        self.in_flight.push(gathering.boxed());
    }

    /// Takes in what was fetched for a frame's turn.
    pub(in crate::driver) fn gathered(&mut self, frame: FrameId, said: TalkContent) {
        self.fetching.remove(&frame);
        if let Some(agent) = self.session.as_ref().and_then(|session| session.agent(frame)) {
            self.talk_content.take_in(said, &agent.talk, KEPT_BYTES_MAX);
        }
    }

    /// A turn that is not begun because who started the run may not run it any more, because its
    /// realm does not have the agent, or because tools that the agent names are not there yet: a
    /// model costs money, and is asked on behalf of a caller.
    fn denied_turn(&self, frame: FrameId) -> Option<Fact> {
        let session = self.session.as_ref()?;
        let run = session.runs.get(&session.frames.get(&frame)?.run)?;
        let state = session.agent(frame)?;
        let disabled = || self.shared.gate.disabled_agent(&self.key.realm, &state.agent);
        let unready = || {
            let agent = self.closures.get(&run.closure)?.agents.get(&state.agent)?;
            self.shared.gate.unready(&run.caller(&self.key.realm), agent)
        };
        let fault = self.not_any_more(run).or_else(disabled).or_else(unready)?;
        let TurnNumber { turn, attempt } = turn_to_start(state);
        Some(Fact::TurnFailed { frame, turn, attempt, fault, again_at: None })
    }

    /// The next request of a frame's agent to its model, or why there is none.
    fn asking(&self, frame: FrameId, kind: TurnKind) -> Option<Result<PreparedTurn, Fact>> {
        let session = self.session.as_ref()?;
        let state = session.agent(frame)?;
        let run = session.runs.get(&session.frames.get(&frame)?.run)?;
        let agent = self.closures.get(&run.closure)?.agents.get(&state.agent)?;
        let ToolCards { shown, tools } = match kind {
            TurnKind::Act => {
                // What is not listed for the one who started the run is not there for its agents.
                let specs = self.shared.gate.visible(&run.caller(&self.key.realm));
                ToolCards::of(agent, state.route.as_ref(), &specs)
            }
            TurnKind::Route | TurnKind::Sum => ToolCards::default(),
        };
        let now = self.shared.clock.now();
        let zones = self.shared.zones.as_ref();
        let (zone, local) = local_time(zones, now, agent.zone.as_deref());
        let (_, entered) =
            local_time(zones, state.entered_at.unwrap_or(now), agent.zone.as_deref());
        let around = TurnContext {
            agent,
            kind,
            tools: shown,
            now,
            zone: &zone,
            local: &local,
            entered: &entered,
            result_bytes_max: RESULT_BYTES_MAX,
            lines: state.talk.compactable(agent.limits.keep_turns),
        };
        let number = turn_to_start(state);
        let TurnNumber { turn, attempt } = number;
        let prompt = match prompt(around, &state.talk, &self.talk_content) {
            Ok(prompt) => Prompt { trace: self.turn_trace(frame, number), ..prompt },
            Err(fault) => {
                return Some(Err(Fact::TurnFailed { frame, turn, attempt, fault, again_at: None }));
            }
        };
        let spent = state.spent.input.saturating_add(state.spent.output);
        let start = TurnStart {
            frame,
            turn,
            attempt,
            kind,
            model: match (kind, &agent.router_model) {
                (TurnKind::Route, Some(model)) => model.clone(),
                _ => agent.model.clone(),
            },
            digest: canonical::digest(&json!(prompt)),
            renderer: RENDERER,
            reserved: agent.limits.tokens.map(|max| max.saturating_sub(spent)),
        };
        let caller = run.caller(&self.key.realm);
        Some(Ok(PreparedTurn { run: run.id, caller, start, prompt, tools }))
    }

    /// Records the start, and asks once that is durable: from there on it may cost money.
    async fn ask_model(&mut self, asking: PreparedTurn) -> Result<()> {
        let PreparedTurn { run, caller, start, prompt, tools } = asking;
        let TurnStart { frame, turn, attempt, kind, .. } = start;
        let model = start.model.clone();
        self.keep_turn_start(&start, &prompt);
        self.record(Fact::TurnStarted(Box::new(start))).await?;
        let started = self.session.as_ref().ok_or_else(no_session)?.seq;
        self.flush();
        let shared = self.shared.clone();
        let ticket = self.ticket.clone();
        let ear = TurnListener {
            listeners: self.shared.listeners.clone(),
            key: self.key.clone(),
            at: TurnPlace { run, frame, turn, attempt, started },
            open: kind == TurnKind::Act,
        };
        let number = TurnNumber { turn, attempt };
        let asking = async move {
            if let Some(ticket) = ticket
                && let Err(error) = ticket.await
            {
                return Completion::Kept(Err(error));
            }
            ear.begin();
            let asked = shared.one_turn(&caller, &model, &prompt, &ear).await;
            Completion::Turned(frame, number, Some(Box::new(TurnAnswer { asked, tools })))
        };
        let (asking, abort) = abortable(asking);
        self.turns.insert(frame, ActiveTurn { number, abort });
        let given_up = move |_| Completion::Turned(frame, number, None);
        self.in_flight.push(asking.map(move |done| done.unwrap_or_else(given_up)).boxed());
        Ok(())
    }

    /// Takes in what a model answered, unless its turn was given up.
    pub(in crate::driver) async fn turn_done(
        &mut self,
        frame: FrameId,
        number: TurnNumber,
        answered: TurnAnswer,
    ) -> Result<()> {
        if self.turns.get(&frame).is_none_or(|flying| flying.number != number) {
            return Ok(());
        }
        self.turns.remove(&frame);
        let TurnAnswer { asked, tools } = answered;
        if let Some(begun) = self.begun.get_mut(&frame) {
            begun.first_at = asked.first_at;
        }
        let session = self.session.as_ref().ok_or_else(no_session)?;
        let env = self.env();
        let fact = match asked.result {
            Ok(turn) => {
                let cost_micros = asked.cost_micros;
                let uncached_micros = asked.uncached_micros;
                let turn = TurnResult { turn, seen_tools: &tools, cost_micros, uncached_micros };
                turned(&env, session, frame, turn)
            }
            Err(error) => turn_failed(&env, session, frame, &error),
        };
        match fact {
            Some(fact) => self.record(fact).await,
            None => Ok(()),
        }
    }

    /// A closing run asks no model any more.
    pub(in crate::driver) async fn close_turns(&mut self, run: RunId) -> Result<()> {
        for (frame, TurnNumber { turn, attempt }) in self.turns_of(run) {
            if let Some(flying) = self.turns.remove(&frame) {
                flying.abort.abort();
            }
            let fault = Fault::new("Cancelled", "the run is being closed");
            let again_at = None;
            self.record(Fact::TurnFailed { frame, turn, attempt, fault, again_at }).await?;
        }
        Ok(())
    }

    fn turns_of(&self, run: RunId) -> Vec<(FrameId, TurnNumber)> {
        let frames = self.session.iter().flat_map(|session| session.frames.values());
        let turns = frames.filter(|frame| frame.run == run).filter_map(|frame| {
            let AgentPhase::Turn { turn, attempt, .. } = frame.agent.as_ref()?.phase else {
                return None;
            };
            Some((frame.id, TurnNumber { turn, attempt }))
        });
        turns.collect()
    }

    /// Gives up turns that no frame waits for any more.
    pub(in crate::driver) fn drop_orphan_turns(&mut self) {
        let Some(session) = &self.session else { return };
        self.turns.retain(|frame, flying| {
            let phase = session.agent(*frame).map(|agent| &agent.phase);
            let wanted = match phase {
                Some(&AgentPhase::Turn { turn, attempt, .. }) => {
                    flying.number == TurnNumber { turn, attempt }
                }
                _ => false,
            };
            if !wanted {
                flying.abort.abort();
            }
            wanted
        });
    }

    /// Agents of a run that was claimed again and again without progress: each is left to a person.
    pub(in crate::driver) async fn hand_over_agents(
        &mut self,
        run: RunId,
        fault: &(dyn Fn(&str) -> Fault + Sync),
    ) -> Result<()> {
        let frames = self.session.iter().flat_map(|session| session.frames.values());
        let waits = frames.filter(|frame| frame.run == run).filter_map(|frame| {
            let agent = frame.agent.as_ref()?;
            let begins = matches!(agent.phase, AgentPhase::Between | AgentPhase::Resting { .. });
            begins.then(|| (frame.id, turn_to_start(agent), agent.agent.clone()))
        });
        let waits: Vec<_> = waits.collect();
        for (frame, TurnNumber { turn, attempt }, agent) in waits {
            let fault = fault(&format!("agent `{agent}`"));
            let again_at = None;
            self.record(Fact::TurnFailed { frame, turn, attempt, fault, again_at }).await?;
        }
        Ok(())
    }

    /// Counts and logs turns; never what was said.
    pub(in crate::driver) fn note_turn(&self, fact: &Fact) {
        let counters = &self.shared.counters;
        let realm = &self.key.realm;
        let session = &self.key.id;
        let subject = self.subject();
        match fact {
            Fact::TurnStarted(start) => {
                count(&counters.turns_started);
                let TurnStart { turn, attempt, kind, model, .. } = &**start;
                tracing::debug!(%realm, %session, subject, turn, attempt, ?kind, %model,
                    "turn started");
            }
            Fact::TurnFailed { turn, attempt, fault, again_at, .. } => {
                count(&counters.turns_failed);
                let again = again_at.is_some();
                tracing::info!(%realm, %session, subject, turn, attempt, name = fault.name, again,
                    "turn failed");
            }
            Fact::TurnFinished(end) | Fact::TalkCompacted { turn: end, .. } => {
                count(&counters.turns_finished);
                add(&counters.tokens_read, end.usage.input);
                add(&counters.tokens_written, end.usage.output);
                add(&counters.cost_micros, end.cost_micros.unwrap_or(0));
                let turn = end.turn;
                let calls = end.calls.len();
                tracing::debug!(%realm, %session, subject, turn, calls, "turn finished");
            }
            _ => {}
        }
    }
}

impl Shared {
    /// One turn of a model for a caller, within its time and among not too many others.
    pub(crate) async fn one_turn(
        &self,
        caller: &Caller,
        name: &str,
        prompt: &Prompt,
        sink: &dyn DeltaSink,
    ) -> ModelAnswer {
        let models = self.models();
        let is_enabled = self.gate.policy.settings(&caller.realm).enables_model(name);
        let Some(model) = models.get(name).filter(|_| is_enabled) else {
            return ModelAnswer::failed(no_such_model(name, models.get(name).is_some()));
        };
        let _share = self.turn_shares.take(caller).await;
        let Ok(_place) = self.turns.acquire().await else {
            let error = LlmError::new(LlmErrorKind::Unreachable, "the server is stopping");
            return ModelAnswer::failed(error);
        };
        let timeout_ms = model.timeout_ms.unwrap_or(self.limits.turn_timeout_ms);
        let sink = FirstDeltaTimer { sink, clock: self.clock.as_ref(), first: OnceLock::new() };
        let turn = timeout(self.clock.as_ref(), timeout_ms, model.llm.turn(prompt, &sink)).await;
        let result = turn.unwrap_or_else(|| Err(timed_out(name, timeout_ms)));
        let price = |usage: Usage| model.price.as_ref().and_then(|price| price(&usage));
        let usage = result.as_ref().ok().map(|turn| turn.usage);
        let cost_micros = usage.and_then(price);
        let uncached_micros = usage.and_then(Usage::uncached).and_then(price);
        ModelAnswer { result, cost_micros, uncached_micros, first_at: sink.first.get().copied() }
    }
}

/// Notes when the first piece of a turn comes.
struct FirstDeltaTimer<'a> {
    sink: &'a dyn DeltaSink,
    clock: &'a dyn Clock,
    first: OnceLock<Millis>,
}

impl DeltaSink for FirstDeltaTimer<'_> {
    fn delta(&self, delta: Delta) {
        self.first.get_or_init(|| self.clock.now());
        self.sink.delta(delta);
    }
}

/// The error of a model that does not exist, or exists in other realms only.
fn no_such_model(name: &str, is_of_others: bool) -> LlmError {
    if is_of_others {
        let message = format!("model `{name}` is not enabled in this realm");
        return LlmError::new(LlmErrorKind::NoSuchModel, message).hint(
            "add it to `enabled_models` of the realm, or let the agent's `llmConfigRef` name \
             another one; then retry",
        );
    }
    let hint = missing_key(name).map(|hint| format!("{hint}; then retry"));
    // Where a run is shown without hints, its reader still needs the variable.
    let why = match MODELS_BY_KEY.into_iter().find(|(model, _)| *model == name) {
        Some((_, variable)) => format!(": `{variable}` was not set when the server started"),
        None => String::new(),
    };
    let message = format!("there is no model `{name}` in this project{why}");
    LlmError::new(LlmErrorKind::NoSuchModel, message).hint(hint.unwrap_or_else(|| {
        "configure it, or let the agent's `llmConfigRef` name another one; then retry".to_owned()
    }))
}

fn timed_out(name: &str, timeout_ms: u64) -> LlmError {
    let message = format!("model `{name}` did not answer within {timeout_ms} ms");
    LlmError::new(LlmErrorKind::Timeout, message)
        .hint("raise its timeout, or `turn_timeout_ms` in [limits]")
}

#[cfg(test)]
mod tests {
    use super::no_such_model;

    #[test]
    fn a_missing_model_names_the_variable_of_its_key() {
        let message = no_such_model("openai", false).message;
        assert!(message.contains("`OPENAI_API_KEY` was not set"), "{message}");
        let message = no_such_model("fast", false).message;
        assert_eq!(message, "there is no model `fast` in this project");
    }
}
