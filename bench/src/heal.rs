//! `bench heal`: what rules for failed steps cost. The engine in this process over a real store,
//! with a tool that answers at once and fails when it is told to. Runs of several plans follow each
//! other by turns, so that all of them meet the same disk; medians are compared.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::{Engine, Models, PlanFile, ProjectFiles, RunRequest, RunSession, RunTarget};
use futures::future::{BoxFuture, ready};
use kernel::contracts::Tool;
use kernel::definition::rule::Rules;
use kernel::session::RunStatus;
use kernel::tool::call::{Call, Caller, OutputKind, Pace, Reach, ToolError, ToolOutput, ToolSpec};
use kernel::values::ids::{PlanId, RealmId};
use serde_json::json;

use crate::Result;
use crate::agent::world::{parts, refused};
use crate::load::{median, middle};
use crate::options::{USAGE, positive};
use crate::report::{self, Table, ms};

const REALM: &str = "default";
/// How long a run may take: never, with a tool that answers at once.
const WAIT_MS: u64 = 60_000;
/// How often everything is measured; the middle one counts.
const ROUNDS: usize = 5;
const RUNS: usize = 400;

/// What a failed and once retried step takes more, beside a bare second run of that step: what a
/// person would start without rules.
const RETRIED_MAX: f64 = 2.0;
/// A run without failures whose plan has rules, beside the same without.
const RULED_MAX: f64 = 1.05;

const NOTE: &str = "Medians of runs with one step, in process. `retried` fails once and is tried \
    again after no wait; `ruled` has rules that never act.";

/// What to measure, and how often.
#[derive(Debug)]
pub struct Options {
    runs: usize,
    dir: PathBuf,
}

impl Options {
    /// Reads the arguments after `heal`.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self { runs: RUNS, dir: std::env::temp_dir() };
        while let Some(flag) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                "--runs" => options.runs = positive(&flag, &value)?,
                "--dir" => options.dir = PathBuf::from(&value),
                _ => return Err(format!("unknown option `{flag}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

/// A tool that answers at once, unless it is told to fail the next time.
struct Flaky {
    spec: Arc<ToolSpec>,
    fails_next: Arc<AtomicBool>,
}

impl Tool for Flaky {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        _call: &'a Call,
    ) -> BoxFuture<'a, std::result::Result<ToolOutput, ToolError>> {
        let fails = self.fails_next.swap(false, Ordering::SeqCst);
        Box::pin(ready(match fails {
            true => Err(ToolError::failed("Boom", "as told")),
            false => Ok(ToolOutput::Value(json!({"n": 1}))),
        }))
    }
}

/// The engine, its tool, and its data.
struct World {
    engine: Engine,
    fails_next: Arc<AtomicBool>,
    // Held for its files.
    _folder: tempfile::TempDir,
}

/// The medians of one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    plain: Duration,
    ruled: Duration,
    retried: Duration,
}

impl Round {
    /// What the failure and the second try take, beside what a second run takes.
    fn retry_ratio(&self) -> f64 {
        self.retried.as_secs_f64() / self.plain.as_secs_f64() - 1.0
    }

    fn rules_ratio(&self) -> f64 {
        self.ruled.as_secs_f64() / self.plain.as_secs_f64()
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["plan", "p50 ms"]);
        for (plan, time) in
            [("plain", self.plain), ("ruled", self.ruled), ("retried", self.retried)]
        {
            table.row(vec![plan.to_owned(), ms(time)]);
        }
        table
    }
}

/// Measures all of it and says which targets were met.
pub async fn measure(options: &Options) -> Result<()> {
    report::header("Rules for failed steps", &options.dir)?;
    let world = World::open(&options.dir)?;
    report::progress("warm-up");
    world.round(options.runs.div_ceil(4)).await?;
    let mut rounds = Vec::new();
    for number in 1..=ROUNDS {
        report::progress(&format!("round {number}"));
        rounds.push(world.round(options.runs).await?);
    }
    world.engine.stop().await;
    let retried = middle(rounds.clone(), Round::retry_ratio).ok_or("no round was measured")?;
    let ruled = middle(rounds, Round::rules_ratio).ok_or("no round was measured")?;
    report::section("Runs", NOTE, &retried.table());
    report::section("Targets", "", &targets(&retried, &ruled));
    Ok(())
}

fn targets(retried: &Round, ruled: &Round) -> Table {
    let mut table = Table::new(&["target", "measured", "met"]);
    let mut row = |target: String, ratio: f64, most: f64| {
        let met = if ratio <= most { "yes" } else { "no" };
        table.row(vec![target, format!("{ratio:.2}"), met.to_owned()]);
    };
    let retry = format!("a failed and once retried step ≤ {RETRIED_MAX:.0} × a second run of it");
    row(retry, retried.retry_ratio(), RETRIED_MAX);
    let rules = format!("rules that never act ≤ {RULED_MAX:.2} × the same plan without");
    row(rules, ruled.rules_ratio(), RULED_MAX);
    table
}

impl World {
    fn open(dir: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("waypost-bench-heal-").tempdir_in(dir)?;
        let fails_next = Arc::new(AtomicBool::new(false));
        let tool: Arc<dyn Tool> =
            Arc::new(Flaky { spec: Arc::new(spec()), fails_next: fails_next.clone() });
        let parts = parts(folder.path(), vec![tool], Models::default())?;
        let engine = Engine::start(parts).map_err(|mistakes| format!("{mistakes:?}"))?;
        let realm = RealmId::from(REALM);
        let loaded = engine.catalog().load_plans(&realm, plans());
        loaded.map_err(|mistakes| format!("{mistakes:?}"))?;
        // Plans without rules have none at all: the built-in one is a rule, too.
        let rules = Rules { built_in: false, ..Rules::default() };
        let files = ProjectFiles { rules, ..ProjectFiles::default() };
        engine.catalog().set_rules(&realm, &files).map_err(|mistakes| format!("{mistakes:?}"))?;
        Ok(Self { engine, fails_next, _folder: folder })
    }

    /// So many runs of each plan, by turns.
    async fn round(&self, runs: usize) -> Result<Round> {
        let mut plain = Vec::new();
        let mut ruled = Vec::new();
        let mut retried = Vec::new();
        for _ in 0..runs {
            plain.push(self.run("plain").await?);
            ruled.push(self.run("ruled").await?);
            self.fails_next.store(true, Ordering::SeqCst);
            retried.push(self.run("retried").await?);
        }
        Ok(Round { plain: median(plain), ruled: median(ruled), retried: median(retried) })
    }

    async fn run(&self, plan: &str) -> Result<Duration> {
        let request = RunRequest {
            target: RunTarget::Plan(PlanId::from(plan)),
            input: json!({}),
            session: RunSession::New,
            once: None,
            about: Default::default(),
        };
        let caller = Caller::new(REALM, "bench");
        let begun = Instant::now();
        let report = self.engine.runs().start(&caller, request, WAIT_MS).await.map_err(refused)?;
        let taken = begun.elapsed();
        match report.run.status {
            RunStatus::Completed => Ok(taken),
            status => Err(format!("a run of `{plan}` is {}", status.name()).into()),
        }
    }
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: "bench::read".into(),
        title: "read".to_owned(),
        description: "Reads a number.".to_owned(),
        input_schema: Arc::new(json!({"type": "object"})),
        output_schema: None,
        reach: Reach::Reads,
        idempotent: false,
        tags: Vec::new(),
        pace: Pace::Quick,
        yields: OutputKind::Value,
        unrecorded: false,
        listed: None,
    }
}

fn plans() -> Vec<PlanFile> {
    let never = "on_error: [{when: {error: Never}, retry: {times: 3}}, \
        {when: {tool: 'other.*'}, retry: {}}, ask], ";
    let once = "on_error: [{retry: {times: 1, wait_ms: 0}}], ";
    let plan = |id: &str, rules: &str| PlanFile {
        file: format!("{id}.yaml"),
        text: format!(
            "planId: {id}\nsteps: [{{id: one, type: tool_call, toolId: 'bench::read', \
             arguments: {{}}, saveAs: one, {rules}nextStepId: end}}, \
             {{id: end, type: final_response, message: done}}]\n"
        ),
        default_id: PlanId::from(id),
    };
    vec![plan("plain", ""), plan("ruled", never), plan("retried", once)]
}
