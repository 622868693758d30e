//! Scenes: a plan, an input, what tools and people answer, and the journal that comes of it, all in
//! one text file. Each scene is also cut after every event and must come to the same end.

use kernel::ask::{Decision, Reply};
use kernel::call::{
    Judgement, Pace, Pins, Reach, ToolError, ToolOutput, ToolSpec, Verdict, Wants, Yields,
};
use kernel::datum::{Datum, Origin};
use kernel::event::{self, Event, Fact, VERSION};
use kernel::fault::Fault;
use kernel::ids::{
    CallId, ContentHash, FrameId, Millis, PlanId, RunId, SessionId, SessionKey, Space, StepId,
    ToolName,
};
use kernel::limits::Limits;
use kernel::next::{Env, Next, next};
use kernel::plan::check::Surroundings;
use kernel::plan::flow::load_text;
use kernel::plan::read::Origin as PlanOrigin;
use kernel::plan::{Closure, Plan};
use kernel::pointer::Want;
use kernel::projection::{HistoryItem, HistoryRow};
use kernel::reply::short_form;
use kernel::resolve::Fetched;
use kernel::schema::{Misfit, Schemas};
use kernel::session::{CallState, OpenCall, Session};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

mod tools;
mod outline;

use outline::outline;
use tools::{natural, scripted};

/// A scene's parts, by the headings of its file.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// The plans; the first is run.
    pub plans: Vec<String>,
    /// The run's input.
    pub input: Value,
    /// `step = value`, `step ! how Name message` or `step ? {what it wants, by key}`, in order of
    /// calling.
    pub tools: Vec<String>,
    /// Replies in order of asking; `step: reply` answers that step's ask.
    pub replies: Vec<String>,
    /// `finish: last` lets the call that started last come back first; `cancel: N` cancels after N
    /// events; `step_visits_max: N` and other limits.
    pub options: BTreeMap<String, String>,
    /// What must come of it.
    pub expect: String,
}

impl Scene {
    /// Reads a scene's text.
    pub fn parse(text: &str) -> Self {
        let mut scene = Scene { input: json!({}), ..Scene::default() };
        for part in text.split("\n## ").skip(1) {
            let (heading, body) = part.split_once('\n').unwrap_or((part, ""));
            let lines = || body.lines().map(str::trim).filter(|line| !line.is_empty());
            match heading.trim() {
                "plan" => scene.plans.push(body.to_owned()),
                "input" => scene.input = serde_json::from_str(body).expect("input is JSON"),
                "tools" => scene.tools = lines().map(str::to_owned).collect(),
                "replies" => scene.replies = lines().map(str::to_owned).collect(),
                "options" => {
                    for line in lines() {
                        let (name, value) =
                            line.split_once(':').expect("options are `name: value`");
                        scene.options.insert(name.trim().to_owned(), value.trim().to_owned());
                    }
                }
                "expect" => scene.expect = body.trim_end().to_owned(),
                other => panic!("unknown heading `## {other}`"),
            }
        }
        scene
    }

    /// Plays the scene and gives its journal and end as text.
    pub fn play(&self) -> String {
        let mut stage = Stage::new(self);
        stage.begin();
        stage.run();
        let whole = stage.journal();
        let end = stage.end();
        // The first two events make the session and the run: from there on every cut counts.
        for cut in 2..stage.events.len() {
            let mut again = Stage::new(self);
            again.replay(&stage.events[..cut]);
            again.run();
            assert_eq!(again.end(), end, "cut after event {cut} comes to another end");
        }
        format!("{whole}{end}")
    }

    /// Plays the scene once and gives its journal.
    pub fn record(&self) -> Vec<Event> {
        let mut stage = Stage::new(self);
        stage.begin();
        stage.run();
        stage.events
    }
}

/// Everything that a scene plays on: the kernel, driven by hand.
struct Stage {
    scene: Scene,
    session: Session,
    events: Vec<Event>,
    rows: Vec<HistoryRow>,
    closures: HashMap<ContentHash, Arc<Closure>>,
    closure: Arc<Closure>,
    fetched: Fetched,
    limits: Limits,
    in_flight: Vec<CallId>,
}

/// Accepts every schema but a wrong `type`, and checks `required` and property types only.
struct SmallSchemas;

impl Schemas for SmallSchemas {
    fn compile(&self, schema: &Arc<Value>) -> Result<(), Misfit> {
        match schema.get("type") {
            Some(Value::String(_) | Value::Array(_)) | None => Ok(()),
            Some(_) => Err(Misfit { pointer: "/type".into(), message: "not a type".into() }),
        }
    }
    fn check(&self, schema: &Arc<Value>, value: &Value) -> Result<(), Vec<Misfit>> {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let missing: Vec<Misfit> = required
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| value.get(name).is_none())
            .map(|name| Misfit { pointer: String::new(), message: format!("`{name}` is missing") })
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

fn reach(tool: &ToolName) -> Reach {
    if tool.as_str().starts_with("write::") { Reach::Writes } else { Reach::Reads }
}

fn spec(tool: &ToolName) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: tool.clone(),
        title: tool.to_string(),
        description: tool.to_string(),
        input_schema: Arc::new(json!({})),
        output_schema: None,
        reach: reach(tool),
        idempotent: false,
        tags: Vec::new(),
        pace: Pace::Quick,
        yields: Yields::Value,
        unrecorded: false,
        listed: None,
    })
}

/// A plan read with every tool known.
pub fn read_plan(text: &str, plans: &[PlanId]) -> Plan {
    let tools = |name: &ToolName| Some(spec(name));
    let known = |id: &PlanId| plans.contains(id);
    let names = Vec::new;
    let around = Surroundings {
        tools: &tools,
        withheld: &|_: &ToolName| false,
        awaited: &|_: &ToolName| false,
        plans: &known,
        tool_names: &names,
        schemas: &SmallSchemas,
    };
    let origin = PlanOrigin { file: None, default_id: Some(PlanId::from("scene/plan")) };
    match load_text(text, &origin, &Limits::default(), &around) {
        Ok((plan, _)) => plan,
        Err(mistakes) => {
            let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            panic!("the scene's plan is wrong:\n{}", told.join("\n"))
        }
    }
}

const RUN: RunId = RunId(7);

impl Stage {
    fn new(scene: &Scene) -> Self {
        let ids: Vec<PlanId> = scene.plans.iter().map(|text| named(text)).collect();
        let plans: BTreeMap<PlanId, Arc<Plan>> = scene
            .plans
            .iter()
            .map(|text| Arc::new(read_plan(text, &ids)))
            .map(|plan| (plan.id.clone(), plan))
            .collect();
        let closure = Arc::new(Closure::new(plans[&ids[0]].clone(), plans));
        let mut limits = Limits::default();
        for (name, value) in &scene.options {
            match name.as_str() {
                "step_visits_max" => limits.step_visits_max = value.parse().expect("a number"),
                "frames_max" => limits.frames_max = value.parse().expect("a number"),
                "loop_items_max" => limits.loop_items_max = value.parse().expect("a number"),
                "plan_depth_max" => limits.plan_depth_max = value.parse().expect("a number"),
                "context_keys_max" => limits.context_keys_max = value.parse().expect("a number"),
                "call_wants_max" => limits.call_wants_max = value.parse().expect("a number"),
                _ => {}
            }
        }
        let key =
            SessionKey { realm: "default".into(), space: Space::session(), id: "scene".into() };
        Self {
            scene: scene.clone(),
            session: Session::new(SessionId(1), key),
            events: Vec::new(),
            rows: Vec::new(),
            closures: HashMap::from([(closure.hash.clone(), closure.clone())]),
            closure,
            fetched: Fetched::default(),
            limits,
            in_flight: Vec::new(),
        }
    }

    fn begin(&mut self) {
        let (id, key) = (self.session.id, self.session.key.clone());
        self.record(Fact::SessionCreated { id, key });
        let main = self.closure.main.clone();
        self.record(Fact::RunStarted {
            run: RUN,
            plan: main.id.clone(),
            closure: self.closure.hash.clone(),
            input: Arc::new(Datum::inline(self.scene.input.clone(), Origin::Input)),
            by: "ann".into(),
            frame: FrameId(1),
            start: main.start.clone(),
        });
    }

    /// Takes over after a cut: what was judged or under way goes on.
    fn replay(&mut self, events: &[Event]) {
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
    }

    fn record(&mut self, fact: Fact) {
        let seq = self.session.seq + 1;
        let event = Event { seq, at: Millis(seq as i64), v: VERSION, fact };
        self.rows.extend(self.session.apply(&event));
        self.events.push(event.clone());
        match event.fact {
            Fact::CallRequested(request) => self.judge(request.call),
            Fact::CallStarted { call, .. } | Fact::CallResumed { call, .. } => {
                self.in_flight.push(call);
            }
            _ => {}
        }
    }

    fn judge(&mut self, call: CallId) {
        let tool = self.session.calls[&call].request.tool.clone();
        let judgement = if tool.as_str() == "no::such" {
            Judgement::Refused(Fault::new("ToolNotFoundError", "there is no tool `no::such`"))
        } else {
            let verdict = match tool.as_str() {
                "write::asked" => Verdict::Ask("policy asks".into()),
                "write::denied" => Verdict::Deny("policy says no".into()),
                _ => Verdict::Allow,
            };
            let idempotent = tool.as_str() == "write::idempotent";
            let pins = Pins { spec: ContentHash::from("spec"), reach: reach(&tool), idempotent };
            Judgement::Admitted { verdict, pins }
        };
        self.record(Fact::CallJudged { call, judgement });
    }

    fn run(&mut self) {
        let cancel: Option<u64> =
            self.scene.options.get("cancel").map(|after| after.parse().expect("a number"));
        for _ in 0..10_000 {
            if cancel.is_some_and(|after| self.session.seq >= after)
                && self.session.runs.get(&RUN).is_some_and(|run| run.closing.is_none())
            {
                let why = kernel::event::Closing::Cancelled("bob".into());
                self.record(Fact::RunClosing { run: RUN, why });
            }
            match self.decide() {
                Next::Fact(fact) => self.record(*fact),
                Next::Fetch(frame, Want::History(step)) => self.fetch(frame, step),
                Next::Fetch(_, Want::Blob(hash)) => panic!("scenes have no blobs: {hash}"),
                Next::Idle if !self.finish_one() && !self.reply_one() => return,
                Next::Idle => {}
            }
        }
        panic!("the scene does not end:\n{}", self.journal());
    }

    fn decide(&self) -> Next {
        let env = Env {
            closures: &self.closures,
            limits: &self.limits,
            fetched: &self.fetched,
            fetching: &BTreeSet::new(),
            now: Millis(self.session.seq as i64 + 1),
        };
        next(&env, &self.session)
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
        let fact = match self.outcome(&self.session.calls[&call]) {
            Ok(ToolOutput::Value(value)) => Fact::CallFinished {
                call,
                output: Arc::new(Datum::inline(value, Origin::Call(call))),
                settled: None,
            },
            Ok(ToolOutput::Wants(wants)) => {
                let Wants { inputs, state } = *wants;
                Fact::CallWants { call, inputs, state }
            }
            Err(ToolError { how, fault, .. }) => Fact::CallFailed { call, how, fault },
        };
        self.record(fact);
        true
    }

    /// What a call comes back with: as scripted for its step, else as the tool does.
    fn outcome(&self, open: &OpenCall) -> Result<ToolOutput, ToolError> {
        let step = &open.request.step;
        let finished = self.rows.iter().filter(|row| row.step == *step).count();
        let wanted = |event: &&Event| match event.fact {
            Fact::CallWants { call, .. } => self.step_of(call) == Some(step),
            _ => false,
        };
        let before = finished + self.events.iter().filter(wanted).count();
        let mut lines = self.scene.tools.iter().filter_map(|line| {
            let (name, rest) = line.split_once(' ')?;
            (name == step.as_str()).then_some(rest)
        });
        match lines.nth(before) {
            Some(line) => scripted(line, open.rounds + 1),
            None => natural(&open.request.tool, &open.request.arguments, &open.given),
        }
    }

    fn step_of(&self, call: CallId) -> Option<&StepId> {
        self.events.iter().find_map(|event| match &event.fact {
            Fact::CallRequested(request) if request.call == call => Some(&request.step),
            _ => None,
        })
    }

    /// The next person answers.
    fn reply_one(&mut self) -> bool {
        let used = self
            .events
            .iter()
            .filter(|event| matches!(event.fact, Fact::AskDecided { .. } | Fact::AskExpired { .. }))
            .count();
        let Some(line) = self.scene.replies.get(used).cloned() else { return false };
        let mut open: Vec<_> =
            self.session.asks.values().filter(|open| open.is_open()).map(|o| &o.ask).collect();
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
        kernel::reply::check(&ask, &reply, &SmallSchemas).expect("the reply fits its ask");
        let decision = Decision { by: "eve".into(), at: Millis(0), reply };
        self.record(Fact::AskDecided { ask: ask.id, decision: Box::new(decision) });
        true
    }

    fn fetch(&mut self, frame: FrameId, step: Option<StepId>) {
        let looking = &self.session.frames[&frame];
        let mut items: Vec<HistoryItem> =
            self.rows.iter().filter_map(|row| self.item(row)).collect();
        items.sort_by(|left, right| right.position.cmp(&left.position));
        let seen = items
            .iter()
            .filter(|item| looking.path.sees(1, &item.position))
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

    fn journal(&self) -> String {
        let mut lines = String::new();
        for event in &self.events {
            lines.push_str(&outline(&event.fact));
            lines.push('\n');
        }
        lines
    }

    /// Where the scene came to: the same for every cut.
    fn end(&self) -> String {
        let run = self.session.run(RUN).expect("the run is there");
        let mut items: Vec<HistoryItem> =
            self.rows.iter().filter_map(|row| self.item(row)).collect();
        items.sort_by(|left, right| left.position.cmp(&right.position));
        let history: Vec<&str> = items.iter().map(|item| item.entry.step.as_str()).collect();
        let context: Vec<String> = self
            .session
            .shown_context()
            .iter()
            .filter(|(key, _)| key.as_str() != "lastToolExecution")
            .map(|(key, datum)| format!("  {key} = {}\n", datum.to_value()))
            .collect();
        let mut text = format!("=> {}", run.status().seed_name());
        if let Some(answer) = &run.answer {
            text.push_str(&format!(" {}", answer.to_value()));
        }
        if let Some(fault) = &run.last_error {
            text.push_str(&format!(" {fault}"));
            // Ids are left out: a hint may name calls.
            let words = fault.hint.iter().flat_map(|hint| hint.split(' '));
            let words = words.map(|word| if word.starts_with("call_") { "<call>" } else { word });
            words.for_each(|word| text.push_str(&format!(" {word}")));
        }
        format!("{text}\nhistory: {}\ncontext:\n{}", history.join(" "), context.concat())
    }
}

fn named(text: &str) -> PlanId {
    let id = text.lines().find_map(|line| line.trim().strip_prefix("planId:"));
    PlanId::from(id.unwrap_or("scene/plan").trim())
}

/// A reply in an example's short form.
pub fn reply_of(ask: &kernel::ask::Ask, value: &Value) -> Reply {
    let declines = value.get("decline").is_some();
    let arguments = value.get("arguments").filter(|_| value.get("approve").is_some());
    let input = value.get("answer").or_else(|| value.get("input")).unwrap_or(value);
    let mut reply = short_form(ask, Some(input)).expect("the reply fits its ask");
    match &mut reply {
        Reply::Clarify { answer } if declines => *answer = None,
        Reply::Fill { content } if declines => *content = None,
        Reply::Authorize { done } if declines => *done = false,
        Reply::Approve { decisions } => {
            for decision in decisions {
                decision.arguments = arguments.cloned().map(Arc::new);
            }
        }
        _ => {}
    }
    reply
}
