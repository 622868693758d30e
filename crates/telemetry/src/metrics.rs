//! Prometheus histograms and counters of observations. Label values are bounded: names come from
//! short lists, and ids are never labels.

use kernel::contracts::observe::{Observation, ObservedWork, Observer};
use kernel::values::ids::Space;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// From a read that is answered at once to a run that takes an afternoon.
const WORK_SECONDS: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0,
    1_800.0, 14_400.0,
];
/// From an answer at the desk to one after the weekend.
const WAIT_SECONDS: [f64; 11] =
    [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0, 259_200.0, 604_800.0];
/// Label value for names over the limit.
const OTHER: &str = "other";

/// Makes a set of labels of each line.
macro_rules! labels {
    ($($set:ident { $($label:ident: $of:ty),+ };)+) => {
        $(
            #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
            struct $set {
                $($label: $of,)+
            }
        )+
    };
}

labels! {
    OfRun { kind: &'static str, status: &'static str };
    OfCall { tool: Arc<str>, upstream: Arc<str>, outcome: &'static str };
    OfTurn { model: Arc<str>, kind: &'static str, outcome: &'static str };
    OfTokens { model: Arc<str>, direction: &'static str };
    OfCost { model: Arc<str> };
    OfWait { kind: &'static str, ending: &'static str };
    OfPipeline { pipeline: Arc<str>, path: &'static str };
}

pub struct Metrics {
    runs: Family<OfRun, Histogram>,
    calls: Family<OfCall, Histogram>,
    turns: Family<OfTurn, Histogram>,
    tokens: Family<OfTokens, Counter>,
    costs: Family<OfCost, Counter>,
    waits: Family<OfWait, Histogram>,
    pipelines: Family<OfPipeline, Counter>,
    tools: Names,
    models: Names,
    upstreams: Names,
    cases: Names,
    /// What tools of ours have for an upstream: an empty label is as good as none.
    ours: Arc<str>,
}

impl Metrics {
    /// Nothing yet; so many names of tools are distinguished, and of each other thing.
    pub fn new(names_max: usize) -> Self {
        let names = || Names { max: names_max, known: RwLock::default() };
        Self {
            runs: Family::new_with_constructor(work),
            calls: Family::new_with_constructor(work),
            turns: Family::new_with_constructor(work),
            tokens: Family::default(),
            costs: Family::default(),
            waits: Family::new_with_constructor(wait),
            pipelines: Family::default(),
            tools: names(),
            models: names(),
            upstreams: names(),
            cases: names(),
            ours: "".into(),
        }
    }

    /// Adds all of it to the metrics page.
    pub fn register(&self, registry: &mut Registry) {
        let seconds = || Unit::Seconds;
        let help = "How long runs took that ended, people's answers included";
        registry.register_with_unit("run_duration", help, seconds(), self.runs.clone());
        let help = "How long tool calls took";
        registry.register_with_unit("call_duration", help, seconds(), self.calls.clone());
        let help = "How long turns of models took";
        registry.register_with_unit("turn_duration", help, seconds(), self.turns.clone());
        let help = "Tokens that models read and wrote";
        registry.register("turn_tokens", help, self.tokens.clone());
        let help = "Millionths of a dollar that turns cost, as far as prices are known";
        registry.register("turn_cost_micros", help, self.costs.clone());
        let help = "How long people were waited for";
        registry.register_with_unit("human_wait", help, seconds(), self.waits.clone());
        let help = "Cases of pipelines that ended, by the path that they took";
        registry.register("pipeline", help, self.pipelines.clone());
    }

    fn saw_run(&self, seen: &Observation) {
        let ObservedWork::Run { status, agent, agent_step, .. } = &seen.work else { return };
        // By where it happened: a plan that someone sent may have any name.
        let space = seen.session.as_ref().map(|key| &key.space);
        let pipeline = space.and_then(Space::pipeline);
        let direct = space.is_some_and(|space| *space == Space::call());
        let kind = match (pipeline, agent) {
            (Some(_), _) => "pipeline",
            (None, Some(_)) => "agent",
            (None, None) if direct => "call",
            (None, None) => "plan",
        };
        self.runs.get_or_create(&OfRun { kind, status }).observe(seen.seconds());
        if let Some(pipeline) = pipeline {
            let path = if *agent_step { "agent" } else { "deterministic" };
            let labels = OfPipeline { pipeline: self.cases.bounded(&pipeline.into()), path };
            self.pipelines.get_or_create(&labels).inc();
        }
    }

    fn saw_turn(&self, seen: &Observation) {
        let ObservedWork::Turn { model, kind, usage, cost_micros, .. } = &seen.work else { return };
        let model = self.models.bounded(model);
        let outcome = if seen.error.is_some() { "failed" } else { "ok" };
        let labels = OfTurn { model: model.clone(), kind, outcome };
        self.turns.get_or_create(&labels).observe(seen.seconds());
        for (direction, tokens) in [("input", usage.input), ("output", usage.output)] {
            let labels = OfTokens { model: model.clone(), direction };
            self.tokens.get_or_create(&labels).inc_by(tokens);
        }
        self.costs.get_or_create(&OfCost { model }).inc_by(cost_micros.unwrap_or_default());
    }

    fn saw_call(&self, seen: &Observation) {
        let ObservedWork::Call { tool, upstream, outcome, .. } = &seen.work else { return };
        let upstream = upstream.as_ref().map(|upstream| &upstream.name);
        let own = upstream.unwrap_or(&self.ours).clone();
        let mut labels = OfCall { tool: tool.0.clone(), upstream: own, outcome };
        // What is counted by its own names already is within the bounds.
        if let Some(known) = self.calls.get(&labels) {
            known.observe(seen.seconds());
            return;
        }
        labels.tool = self.tools.bounded(&tool.0);
        if let Some(upstream) = upstream {
            labels.upstream = self.upstreams.bounded(upstream);
        }
        self.calls.get_or_create(&labels).observe(seen.seconds());
    }
}

impl Observer for Metrics {
    fn saw(&self, seen: &Observation) {
        match &seen.work {
            ObservedWork::Run { .. } => self.saw_run(seen),
            ObservedWork::Turn { .. } => self.saw_turn(seen),
            ObservedWork::Call { .. } => self.saw_call(seen),
            ObservedWork::Wait { kind, ending, .. } => {
                let labels = OfWait { kind, ending };
                self.waits.get_or_create(&labels).observe(seen.seconds());
            }
            // Its turns, its calls and its run are measured.
            ObservedWork::Agent { .. } => {}
        }
    }
}

/// Names that are distinguished, up to so many.
struct Names {
    max: usize,
    known: RwLock<HashSet<Arc<str>>>,
}

impl Names {
    fn bounded(&self, name: &Arc<str>) -> Arc<str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.contains(name) {
            return name.clone();
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < self.max || known.contains(name) {
            known.insert(name.clone());
            return name.clone();
        }
        OTHER.into()
    }
}

fn work() -> Histogram {
    Histogram::new(WORK_SECONDS)
}

fn wait() -> Histogram {
    Histogram::new(WAIT_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::conversation::llm::Usage;
    use kernel::tool::call::{Upstream, UpstreamProtocol};
    use kernel::values::ids::{AskId, CallId, Millis, SessionKey};
    use prometheus_client::encoding::text;

    fn seen(space: Space, work: ObservedWork) -> Observation {
        Observation {
            realm: "r".into(),
            subject: None,
            actor: None,
            session: Some(SessionKey::new("r", space, "s")),
            run: None,
            at: None,
            trace: None,
            parent: None,
            began: Millis(0),
            ended: Millis(20),
            work,
            error: None,
            content: Vec::new(),
        }
    }

    fn run(plan: &str, agent: Option<&str>, agent_step: bool) -> ObservedWork {
        let agent = agent.map(Into::into);
        ObservedWork::Run { plan: plan.into(), status: "completed", agent, turns: 0, agent_step }
    }

    fn call(tool: &str) -> ObservedWork {
        let upstream = tool.split_once('.').map(|(upstream, _)| Upstream {
            name: upstream.into(),
            speaks: UpstreamProtocol::Other,
        });
        ObservedWork::Call {
            tool: tool.into(),
            upstream,
            id: CallId(1),
            reach: "reads",
            outcome: "ok",
        }
    }

    fn told(metrics: &Metrics) -> String {
        let mut registry = Registry::with_prefix("waypost");
        metrics.register(&mut registry);
        let mut told = String::new();
        text::encode(&mut told, &registry).unwrap();
        told
    }

    /// The line of calls of this tool.
    fn calls(tool: &str, upstream: &str, count: u32) -> String {
        let name = "waypost_call_duration_seconds_count";
        format!("{name}{{tool=\"{tool}\",upstream=\"{upstream}\",outcome=\"ok\"}} {count}")
    }

    fn holds(told: &str, lines: &[&str]) {
        for line in lines {
            assert!(told.lines().any(|one| one == *line), "{line} is not in\n{told}");
        }
    }

    #[test]
    fn observations_are_measured_by_kind() {
        let metrics = Metrics::new(10);
        let cases = Space::case(&"trade".into());
        metrics.saw(&seen(cases.clone(), run("pipeline/trade", None, false)));
        metrics.saw(&seen(cases, run("pipeline/trade", None, true)));
        metrics.saw(&seen(Space::session(), run("pipeline/made-up", None, false)));
        metrics.saw(&seen(Space::thread(), run("agent/desk", Some("desk"), true)));
        metrics.saw(&seen(Space::session(), run("trade/repair", None, false)));
        metrics.saw(&seen(Space::call(), run("call/math::add", None, false)));
        let wait = ObservedWork::Wait { ask: AskId(1), kind: "approve", ending: "decided" };
        metrics.saw(&seen(Space::session(), wait));
        metrics.saw(&seen(Space::session(), call("math::add")));
        metrics.saw(&seen(Space::session(), call("crm.find")));
        let turn = ObservedWork::Turn {
            agent: "desk".into(),
            model: "fast".into(),
            provider: None,
            provider_model: None,
            kind: "act",
            usage: Usage { input: 10, output: 2, ..Usage::default() },
            cost_micros: Some(7),
            stop: Some("stop"),
            first_piece_ms: None,
        };
        metrics.saw(&seen(Space::session(), turn));
        let told = told(&metrics);
        holds(
            &told,
            &[
                "waypost_run_duration_seconds_count{kind=\"pipeline\",status=\"completed\"} 2",
                "waypost_run_duration_seconds_count{kind=\"agent\",status=\"completed\"} 1",
                "waypost_run_duration_seconds_count{kind=\"plan\",status=\"completed\"} 2",
                "waypost_run_duration_seconds_count{kind=\"call\",status=\"completed\"} 1",
                "waypost_pipeline_total{pipeline=\"trade\",path=\"deterministic\"} 1",
                "waypost_pipeline_total{pipeline=\"trade\",path=\"agent\"} 1",
                "waypost_human_wait_seconds_count{kind=\"approve\",ending=\"decided\"} 1",
                "waypost_turn_cost_micros_total{model=\"fast\"} 7",
                "waypost_turn_tokens_total{model=\"fast\",direction=\"input\"} 10",
            ],
        );
        let turns = "waypost_turn_duration_seconds_count\
                     {model=\"fast\",kind=\"act\",outcome=\"ok\"} 1";
        holds(&told, &[turns, &calls("math::add", "", 1), &calls("crm.find", "crm", 1)]);
        assert!(!told.contains("made-up"), "anybody can send a plan of that name: {told}");
    }

    #[test]
    fn tool_labels_are_bounded() {
        let metrics = Metrics::new(2);
        for tool in ["a", "b", "c", "d", "a"] {
            metrics.saw(&seen(Space::session(), call(tool)));
        }
        let told = told(&metrics);
        holds(&told, &[&calls("a", "", 2), &calls("b", "", 1), &calls("other", "", 2)]);
    }
}
