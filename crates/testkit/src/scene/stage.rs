//! Drives the kernel by hand for a scene.

use super::around::{SmallSchemas, reach, read_agent, read_plan, spec, talk_plan};
use super::options::{limits, rules};
use super::outline::{outline, shown};
use super::tools::{natural, scripted};
use super::{Scene, reply_of};
use kernel::ask::Decision;
use kernel::ask::remedy::SUPERVISOR;
use kernel::conversation::llm::Prompt;
use kernel::decide::resolve::FetchCache;
use kernel::decide::{Env, Next, next};
use kernel::definition::agent::Agent;
use kernel::definition::plan::{Closure, Plan};
use kernel::definition::rule::Rules;
use kernel::event::{self, Closing, Event, Fact, VERSION};
use kernel::expression::pointer::Fetch;
use kernel::journal::projection::{HistoryItem, HistoryRow};
use kernel::limits::Limits;
use kernel::session::{CallState, OpenCall, Session};
use kernel::tool::call::{
    CallProgress, InputRequired, Judgement, Pins, ToolError, ToolOutput, Verdict,
};
use kernel::tool::schema::{Schemas, sentence};
use kernel::values::datum::{Datum, Origin};
use kernel::values::fault::Fault;
use kernel::values::ids::{
    AgentName, CallId, ContentHash, FrameId, Millis, PlanId, RunId, SessionId, SessionKey, Space,
    StepId,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Everything that a scene plays on.
pub(super) struct Stage {
    pub(super) scene: Scene,
    pub(super) session: Session,
    pub(super) events: Vec<Event>,
    rows: Vec<HistoryRow>,
    closures: HashMap<ContentHash, Arc<Closure>>,
    pub(super) closure: Arc<Closure>,
    /// The corrections under way that models wrote.
    pub(super) drafted: BTreeMap<PlanId, Arc<Plan>>,
    fetched: FetchCache,
    fetching: BTreeSet<FrameId>,
    pub(super) limits: Limits,
    in_flight: Vec<CallId>,
    /// Frames whose agents have asked their models.
    pub(super) asked: Vec<FrameId>,
    /// All that models were asked.
    pub(super) prompts: Vec<Prompt>,
    /// What runs pin for their failed steps.
    rules: Option<Arc<Rules>>,
}

/// The first run; those that follow it are numbered on.
const RUN: RunId = RunId(7);

impl Stage {
    pub(super) fn new(scene: &Scene) -> Self {
        let key = SessionKey::new("default", space(scene), "scene");
        let closure = closure(scene);
        Self {
            scene: scene.clone(),
            session: Session::new(SessionId(1), key),
            events: Vec::new(),
            rows: Vec::new(),
            closures: HashMap::from([(closure.hash.clone(), closure.clone())]),
            closure,
            drafted: BTreeMap::new(),
            fetched: FetchCache::default(),
            fetching: BTreeSet::new(),
            limits: limits(scene),
            in_flight: Vec::new(),
            asked: Vec::new(),
            prompts: Vec::new(),
            rules: rules(scene).map(Arc::new),
        }
    }

    pub(super) fn begin(&mut self) {
        let id = self.session.id;
        let key = self.session.key.clone();
        self.record(Fact::SessionCreated { id, key, owner: None });
        self.begin_next();
    }

    /// How many runs are active at the same time.
    fn together(&self) -> usize {
        self.scene.options.get("together").map_or(1, |count| count.parse().expect("a number"))
    }

    /// The next run begins, if there is one and not too many before it are still active.
    fn begin_next(&mut self) -> bool {
        let begun = self.session.runs_made;
        let input = self.scene.inputs.get(begun as usize).cloned();
        let has_room = self.session.runs.len() < self.together();
        let Some(input) = input.filter(|_| has_room) else { return false };
        let main = self.closure.main.clone();
        self.record(Fact::RunStarted {
            run: RunId(RUN.0 + u128::from(begun)),
            plan: main.id.clone(),
            closure: self.closure.hash.clone(),
            input: Arc::new(Datum::inline(input, Origin::Input)),
            by: "ann".into(),
            frame: FrameId(self.session.frames_made + 1),
            start: main.start.clone(),
            trace: None,
            subject: None,
            actor: None,
            scopes: None,
            about: None,
            rules: self.rules.clone(),
        });
        true
    }

    /// Takes over after a cut: what was judged or under way continues.
    pub(super) fn replay(&mut self, events: &[Event]) {
        let row = serde_json::to_string(events).expect("events are JSON");
        for event in event::read(&row).expect("events read back") {
            self.rows.extend(self.session.apply(&event));
            self.events.push(event);
        }
        let text = serde_json::to_string(&self.session).expect("a session is JSON");
        let back: Session = serde_json::from_str(&text).expect("a session reads back");
        assert_eq!(back, self.session, "a snapshot is another state than the journal");
        let mut open: Vec<(u64, CallId, CallState)> = (self.session.calls.iter())
            .map(|(id, call)| (call.requested_seq, *id, call.state.clone()))
            .collect();
        open.sort_by_key(|(requested, ..)| *requested);
        for (_, id, state) in open {
            match state {
                CallState::Requested => self.judge(id),
                CallState::Started => self.in_flight.push(id),
                CallState::Judged(_) | CallState::Wanting(_) | CallState::Failed(..) => {}
            }
        }
        self.read_drafted();
        self.go_on_with_turns();
    }

    pub(super) fn record(&mut self, fact: Fact) {
        let seq = self.session.seq + 1;
        let event = Event { seq, at: self.at(seq), v: VERSION, fact };
        self.rows.extend(self.session.apply(&event));
        self.events.push(event.clone());
        match event.fact {
            Fact::CallRequested(request) => self.judge(request.call),
            Fact::CallStarted { call, .. } | Fact::CallResumed { call, .. } => {
                self.in_flight.push(call);
            }
            Fact::TurnStarted(start) => self.asked.push(start.frame),
            Fact::RunClosing { run, .. } => {
                self.close_turns(run);
                self.close_proposals(run);
            }
            Fact::CorrectionEntered(_) | Fact::CorrectionEnded(_) => self.read_drafted(),
            _ => {}
        }
    }

    /// When an event happens: each takes as long as the others.
    fn at(&self, seq: u64) -> Millis {
        let tick_ms = self.scene.options.get("tick_ms");
        let tick_ms: i64 = tick_ms.map_or(1, |ms| ms.parse().expect("a number"));
        Millis(seq as i64 * tick_ms)
    }

    /// Now: when the next event happens.
    pub(super) fn now(&self) -> Millis {
        self.at(self.session.seq + 1)
    }

    fn judge(&mut self, call: CallId) {
        let Some(open) = self.session.calls.get(&call) else { return };
        let tool = open.request.tool.clone();
        let misfits = SmallSchemas.check(&spec(&tool).input_schema, &open.request.arguments);
        let judgement = match (tool.as_str(), misfits) {
            ("no::such", _) => {
                Judgement::Refused(Fault::new("ToolNotFoundError", "there is no tool `no::such`"))
            }
            (_, Err(misfits)) => {
                let why = sentence(&misfits);
                let message = format!("arguments of `{tool}` do not fit its schema: {why}");
                Judgement::Refused(Fault::new("InputValidationError", message))
            }
            (name, Ok(())) => {
                let verdict = match name {
                    "write::asked" => Verdict::Ask("policy asks".into()),
                    "write::denied" => Verdict::Deny("policy says no".into()),
                    _ => Verdict::Allow,
                };
                let idempotent = name == "write::idempotent";
                let spec = ContentHash::from("spec");
                let pins = Pins { spec, reach: reach(&tool), idempotent };
                Judgement::admitted(verdict, pins)
            }
        };
        self.record(Fact::CallJudged { call, judgement });
    }

    pub(super) fn run(&mut self) {
        let cancel: Option<u64> =
            self.scene.options.get("cancel").map(|after| after.parse().expect("a number"));
        for _ in 0..10_000 {
            while self.together() > 1 && self.begin_next() {}
            if cancel.is_some_and(|after| self.session.seq >= after)
                && self.session.runs.get(&RUN).is_some_and(|run| run.closing.is_none())
            {
                let why = Closing::Cancelled("bob".into());
                self.record(Fact::RunClosing { run: RUN, why });
            }
            match next(&self.env(), &self.session) {
                Next::Fact(fact) => self.record(*fact),
                Next::Fetch(frame, Fetch::History(step)) => self.fetch(frame, step),
                Next::Fetch(_, Fetch::Blob(hash)) => panic!("scenes have no blobs: {hash}"),
                Next::Turn(frame, kind) => self.start_turn(frame, kind),
                Next::Idle if !self.something_happens() => return,
                Next::Idle => {}
            }
        }
        panic!("the scene does not end:\n{}", self.journal());
    }

    /// Something comes from outside, if anything does.
    fn something_happens(&mut self) -> bool {
        self.finish_one()
            || self.answer_one()
            || self.propose_one()
            || self.reply_one()
            || self.act_one()
            || self.fire_one()
            || self.begin_next()
    }

    pub(super) fn env(&self) -> Env<'_> {
        Env {
            closures: &self.closures,
            drafted: &self.drafted,
            limits: &self.limits,
            fetched: &self.fetched,
            fetching: &self.fetching,
            now: self.now(),
        }
    }

    /// One call comes back.
    fn finish_one(&mut self) -> bool {
        let open = &self.session.calls;
        self.in_flight
            .retain(|id| open.get(id).is_some_and(|call| matches!(call.state, CallState::Started)));
        let last = self.scene.options.get("finish").is_some_and(|order| order == "last");
        let call = match (self.in_flight.len(), last) {
            (0, _) => return false,
            (count, true) => self.in_flight.remove(count - 1),
            (_, false) => self.in_flight.remove(0),
        };
        let finished = |output: Datum| Fact::CallFinished {
            call,
            output: Arc::new(output),
            published: Vec::new(),
            settled: None,
        };
        let open = &self.session.calls[&call];
        let fact = match self.outcome(open) {
            Ok(ToolOutput::Value(value)) => finished(Datum::inline(value, Origin::Call(call))),
            Ok(ToolOutput::Blob(blob)) => finished(Datum::stored(blob, Origin::Call(call))),
            Ok(ToolOutput::Wants(wants)) => {
                let InputRequired { inputs, state } = *wants;
                Fact::CallWants { call, inputs, state }
            }
            Err(ToolError { how, fault, .. }) => {
                let how = if how == CallProgress::NotSent { open.unsent() } else { how };
                Fact::CallFailed { call, how, fault, said: None }
            }
        };
        self.record(fact);
        true
    }

    /// What a call comes back with: as scripted for its tool or step, else as the tool does.
    fn outcome(&self, open: &OpenCall) -> Result<ToolOutput, ToolError> {
        let step = open.request.step.as_str();
        let tool = open.request.tool.as_str();
        let lines_for = |wanted: &str| -> Vec<&str> {
            let lines = self.scene.tools.iter().filter_map(|line| line.split_once(' '));
            lines.filter(|(name, _)| *name == wanted).map(|(_, rest)| rest).collect()
        };
        let by_tool = lines_for(tool);
        let by_step = lines_for(step);
        let of_tool = !by_tool.is_empty();
        let same = |requested: (&str, &str)| match of_tool {
            true => requested.0 == tool,
            false => requested.1 == step,
        };
        let ended = self.rows.iter().filter(|row| same((row.tool.as_str(), row.step.as_str())));
        let wanted = self.events.iter().filter(|event| match event.fact {
            Fact::CallWants { call, .. } => self.requested(call).is_some_and(same),
            _ => false,
        });
        let before = ended.count() + wanted.count();
        match (if of_tool { by_tool } else { by_step }).get(before) {
            Some(line) => scripted(line, open.rounds + 1),
            None => natural(&open.request.tool, &open.request.arguments, &open.given),
        }
    }

    /// The tool and the step of a call.
    fn requested(&self, call: CallId) -> Option<(&str, &str)> {
        self.events.iter().find_map(|event| match &event.fact {
            Fact::CallRequested(request) if request.call == call => {
                Some((request.tool.as_str(), request.step.as_str()))
            }
            _ => None,
        })
    }

    /// The next person answers.
    fn reply_one(&mut self) -> bool {
        let Some(line) = self.scene.replies.get(self.asks_over()).cloned() else { return false };
        let (anyway, line) = match line.strip_prefix("anyway ") {
            Some(line) => (true, line.to_owned()),
            None => (false, line),
        };
        let mut open: Vec<_> =
            self.session.asks.values().filter(|open| open.is_open()).map(|o| &o.ask).collect();
        open.retain(|ask| anyway || ask.held.is_none());
        open.sort_by_key(|ask| ask.created_at);
        let (step, text) = match line.split_once(": ") {
            Some((step, text)) if !step.contains('{') => (Some(step), text.to_owned()),
            _ => (None, line.clone()),
        };
        let ask = open.iter().find(|ask| step.is_none_or(|step| ask.step.as_str() == step));
        let Some(ask) = ask.map(|ask| (*ask).clone()) else {
            return false;
        };
        if text == "expired" {
            self.record(Fact::AskExpired { ask: ask.id });
            return true;
        }
        let value: Value = serde_json::from_str(&text).expect("replies are JSON");
        let reply = reply_of(&ask, &value);
        kernel::ask::reply::check(&ask, &reply, &SmallSchemas).expect("the reply fits its ask");
        let decision = Decision::new("eve", self.now(), reply);
        self.record(Fact::AskDecided { ask: ask.id, decision: Box::new(decision) });
        true
    }

    /// How many asks were answered by people, or expired.
    pub(super) fn asks_over(&self) -> usize {
        let over = |event: &&Event| match &event.fact {
            Fact::AskDecided { decision, .. } => *decision.by != *SUPERVISOR,
            Fact::AskExpired { .. } => true,
            _ => false,
        };
        self.events.iter().filter(over).count()
    }

    fn fetch(&mut self, frame: FrameId, step: Option<StepId>) {
        let looking = &self.session.frames[&frame];
        let run = self.session.runs[&looking.run].no;
        let mut items: Vec<HistoryItem> =
            self.rows.iter().filter_map(|row| self.item(row)).collect();
        items.sort_by(|left, right| right.position.cmp(&left.position));
        let seen = items
            .iter()
            .filter(|item| looking.path.sees(run, &item.position))
            .filter(|item| step.as_ref().is_none_or(|step| item.entry.step == *step))
            .map(|item| item.entry.datum().to_value())
            .collect();
        let place = (frame, looking.ordinal, step);
        self.fetched.histories.insert(place, Arc::new(Value::Array(seen)));
    }

    fn item(&self, row: &HistoryRow) -> Option<HistoryItem> {
        let at = |seq: u64| &self.events[seq as usize - 1];
        HistoryItem::assemble(row, at(row.requested_seq), at(row.finished_seq))
    }

    pub(super) fn journal(&self) -> String {
        let mut lines = String::new();
        let mut then = Session::new(self.session.id, self.session.key.clone());
        for event in &self.events {
            if self.together() > 1 {
                let of = then.run_of(&event.fact).map(number);
                of.iter().for_each(|run| lines.push_str(&format!("r{run} ")));
                then.apply(event);
            }
            lines.push_str(&outline(&event.fact));
            lines.push('\n');
        }
        lines
    }

    /// How each of several runs ended.
    fn endings(&self) -> String {
        let mut text = String::new();
        for event in self.events.iter().filter(|_| self.together() > 1) {
            let Fact::RunEnded { run, .. } = &event.fact else { continue };
            text.push_str(&format!("r{} {}\n", number(*run), outline(&event.fact)));
        }
        text
    }

    /// Where the scene came to: the same for every cut.
    pub(super) fn end(&self) -> String {
        let run = self.session.latest_run().expect("there is a run");
        let mut items: Vec<HistoryItem> =
            self.rows.iter().filter_map(|row| self.item(row)).collect();
        items.sort_by(|left, right| left.position.cmp(&right.position));
        let history: Vec<&str> = items.iter().map(|item| item.entry.step.as_str()).collect();
        let context: Vec<String> = self
            .session
            .shown_context()
            .iter()
            .filter(|(key, _)| key.as_str() != "lastToolExecution")
            .map(|(key, datum)| format!("  {key} = {}\n", shown(&datum.to_value())))
            .collect();
        let status = run.status().plan_session_name();
        let mut text = format!("{}=> {status}", self.endings());
        if let Some(answer) = &run.answer {
            text.push_str(&format!(" {}", shown(&answer.to_value())));
        }
        if let Some(fault) = &run.last_error {
            text.push_str(&format!(" {fault}"));
            // Ids are left out: a hint may name calls.
            let words = fault.hint.iter().flat_map(|hint| hint.split(' '));
            let words = words.map(|word| if word.starts_with("call_") { "<call>" } else { word });
            words.for_each(|word| text.push_str(&format!(" {word}")));
        }
        let history = history.join(" ");
        let context = context.concat();
        format!("{text}\nhistory: {history}\ncontext:\n{context}{}", self.talked(run))
    }
}

/// Which run of its session this is, from 1.
fn number(run: RunId) -> u128 {
    run.0 - RUN.0 + 1
}

/// An agent alone is talked to in a thread; a plan runs as plans do, unless the scene says where.
fn space(scene: &Scene) -> Space {
    match scene.options.get("space") {
        Some(space) => Space::from(space.as_str()),
        None if scene.plans.is_empty() => Space::thread(),
        None => Space::session(),
    }
}

fn closure(scene: &Scene) -> Arc<Closure> {
    let agents: Vec<Arc<Agent>> = scene.agents.iter().map(|text| read_agent(text)).collect();
    let names: Vec<AgentName> = agents.iter().map(|agent| agent.name.clone()).collect();
    let mut texts = scene.plans.clone();
    if texts.is_empty() {
        texts.extend(names.first().map(talk_plan));
    }
    let ids: Vec<PlanId> = texts.iter().map(|text| named(text)).collect();
    let plans: BTreeMap<PlanId, Arc<Plan>> = texts
        .iter()
        .map(|text| Arc::new(read_plan(text, &ids, &names)))
        .map(|plan| (plan.id.clone(), plan))
        .collect();
    let agents = names.into_iter().zip(agents).collect();
    Arc::new(Closure::new(plans[&ids[0]].clone(), plans, agents))
}

fn named(text: &str) -> PlanId {
    let id = text.lines().find_map(|line| line.trim().strip_prefix("planId:"));
    PlanId::from(id.unwrap_or("scene/plan").trim())
}
