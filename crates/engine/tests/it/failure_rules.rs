//! Rules that act on failed steps: after their time, once, across restarts, and beside people.

use crate::fix;
use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, World, caller};
use engine::system::clock::SystemClock;
use engine::{CallReport, Parts, ProjectFiles, RefusalCode, RunReport, ToolSource};
use futures::future::{BoxFuture, join_all};
use kernel::ask::remedy::SUPERVISOR;
use kernel::ask::{Ask, AskBody, FixAction, Reply};
use kernel::contracts::policy::{Decision, Request};
use kernel::contracts::{AskFilter, Clock, PageRequest, Policy, SessionAsk, Tool};
use kernel::definition::rule::{Retry, Rule, RuleAction, Rules};
use kernel::tool::call::{Call, Caller, Reach, ToolError, ToolOutput, ToolSpec, Verdict};
use kernel::values::caller::Act as ActOf;
use kernel::values::fault::Fault;
use kernel::values::ids::{Millis, RunId};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A tool that fails some times, for a passing reason, and then works.
struct Flaky {
    spec: Arc<ToolSpec>,
    failures: AtomicU32,
    sent: AtomicU32,
}

impl Flaky {
    fn failing(times: u32) -> Arc<Self> {
        Self::named("flaky::read", Reach::Reads, times)
    }

    fn named(name: &str, reach: Reach, times: u32) -> Arc<Self> {
        let spec = ToolSpec {
            title: "flaky".into(),
            description: "fails at first".into(),
            reach,
            idempotent: reach == Reach::Writes,
            ..testkit::specs::tool(name)
        };
        let failures = AtomicU32::new(times);
        let sent = AtomicU32::new(0);
        Arc::new(Self { spec: Arc::new(spec), failures, sent })
    }

    fn sent(&self) -> u32 {
        self.sent.load(Ordering::SeqCst)
    }
}

impl Tool for Flaky {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let less = |left: u32| left.checked_sub(1);
        let fails = self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
        Box::pin(async move {
            match fails {
                true => Err(ToolError::failed("HttpStatus", "it answered 503").passing()),
                false => Ok(ToolOutput::Value(json!("well"))),
            }
        })
    }
}

/// A plan whose one call is tried again so often, after so long.
fn plan(times: u32, wait_ms: u64) -> String {
    format!(
        "planId: heal\non_error: [{{retry: {{times: {times}, wait_ms: {wait_ms}, jitter: 0}}}}]\n\
         steps: [{{id: call, type: tool_call, toolId: 'flaky::read', arguments: {{}}, saveAs: out, \
         nextStepId: end}}, {{id: end, type: final_response, message: {{jsonPath: \
         $.context.out}}}}]"
    )
}

async fn open(folder: &Path, plans: &[&str], tool: &Arc<Flaky>) -> World {
    let tool: Arc<dyn Tool> = tool.clone();
    World::changed(folder, plans, |mut parts: Parts| {
        parts.tools.push(ToolSource::new("a flaky server", vec![tool]));
        parts
    })
    .await
}

/// The asks that this filter finds.
async fn asks(world: &World, filter: AskFilter) -> Vec<SessionAsk> {
    let page = PageRequest { cursor: None, limit: 200 };
    world.engine.asks().list(&caller(), &filter, &page).await.unwrap().items
}

fn open_and(held: bool) -> AskFilter {
    AskFilter { status: Some("open".to_owned()), held: Some(held), ..AskFilter::default() }
}

/// How long a rule holds an ask that a test has to see first, on a busy machine.
const HELD_MS: u64 = 10_000;

/// Waits until a rule holds this many asks.
async fn until_held(world: &World, count: usize) -> Vec<SessionAsk> {
    for _ in 0..LOOKS_MAX {
        let held = asks(world, open_and(true)).await;
        if held.len() == count {
            return held;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for {count} asks that a rule holds");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_retries_a_failed_step_while_its_caller_waits() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(3, 20);
    let tool = Flaky::failing(2);
    let world = open(folder.path(), &[&plan], &tool).await;
    let report = world.run("heal", json!({}), "s").await;
    assert_eq!((report.run.status.name(), report.run.answer), ("completed", Some(json!("well"))));
    assert_eq!(tool.sent(), 3);
    let decided = asks(&world, AskFilter::default()).await;
    let by: Vec<&str> = decided.iter().map(|ask| &*ask.row.decision.as_ref().unwrap().by).collect();
    assert_eq!(by, [SUPERVISOR, SUPERVISOR]);
    let tries: Vec<u32> =
        decided.iter().map(|ask| ask.row.ask.held.as_ref().unwrap().try_no).collect();
    assert_eq!(tries, [1, 2]);
}

/// The system's clock, set back by so many milliseconds.
#[derive(Default)]
struct SetBack(AtomicI64);

impl Clock for SetBack {
    fn now(&self) -> Millis {
        Millis(SystemClock.now().0 - self.0.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed()
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        let ms = then.0.saturating_sub(self.now().0).max(0);
        SystemClock.sleep_ms(ms.unsigned_abs())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_does_not_keep_a_rule_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(1, HELD_MS);
    let flaky = Flaky::failing(1);
    let tool: Arc<dyn Tool> = flaky.clone();
    let clock = Arc::new(SetBack::default());
    let set = clock.clone();
    let world = World::changed(folder.path(), &[&plan], |mut parts: Parts| {
        parts.tools.push(ToolSource::new("a flaky server", vec![tool]));
        parts.clock = set;
        parts
    })
    .await;
    let setting = async {
        let held = until_held(&world, 1).await;
        clock.0.store(3_600_000, Ordering::SeqCst);
        held[0].row.ask.held.as_ref().unwrap().until
    };
    let (report, until) = tokio::join!(world.run("heal", json!({}), "s"), setting);
    assert_eq!((report.run.status.name(), flaky.sent()), ("completed", 2), "{:?}", report.asks);
    let decided = asks(&world, AskFilter::default()).await;
    let decision = decided[0].row.decision.as_ref().unwrap();
    assert_eq!((&*decision.by, decision.at), (SUPERVISOR, until), "at its time, not before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_rules_cannot_fix_goes_to_a_person_with_past_attempts() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(2, 1);
    let tool = Flaky::failing(3);
    let world = open(folder.path(), &[&plan], &tool).await;
    let report = world.run("heal", json!({}), "s").await;
    assert_eq!(report.run.status.name(), "stuck");
    let mine = asks(&world, open_and(false)).await;
    assert_eq!((mine.len(), asks(&world, open_and(true)).await.len()), (1, 0));
    let tried: Vec<(&str, u32)> =
        mine[0].row.ask.tried.iter().map(|tried| (&*tried.rule, tried.times)).collect();
    assert_eq!(tried, [("plan 1", 2)]);
    assert_eq!(tool.sent(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_neither_forgets_a_wait_nor_cuts_it_short() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(1, HELD_MS);
    let tool = Flaky::failing(1);
    let world = open(folder.path(), &[&plan], &tool).await;
    let run = world.start("heal", json!({}), "s").await.run.id;
    let until = until_held(&world, 1).await[0].row.ask.held.clone().unwrap().until;
    world.crash().await;

    let world = open(folder.path(), &[&plan], &tool).await;
    world.engine.admin().keep_recovering();
    world.until_status(run, "completed").await;
    assert!(world.engine.clock().now() >= until, "the rule acted before its time");
    assert_eq!(tool.sent(), 2, "once before the restart, and once after it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_session_leaves_memory_once_nobody_waits() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(1, 600_000);
    let tool = Flaky::failing(1);
    let world = open(folder.path(), &[&plan], &tool).await;
    world.start("heal", json!({}), "s").await;
    until_held(&world, 1).await;
    world.until("its driver to end", |world| world.engine.counts().sessions_active == 0).await;
}

/// A tool whose first call under each key fails, and which counts the calls of each.
struct FirstFails {
    spec: Arc<ToolSpec>,
    calls: Mutex<BTreeMap<String, u32>>,
}

impl Tool for FirstFails {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let mut calls = self.calls.lock().unwrap();
        let count = calls.entry(call.arguments["key"].to_string()).or_default();
        *count += 1;
        let is_first = *count == 1;
        Box::pin(async move {
            match is_first {
                true => Err(ToolError::failed("HttpStatus", "it answered 503").passing()),
                false => Ok(ToolOutput::Value(json!("by rule"))),
            }
        })
    }
}

/// How many races there are, and how many at the same time.
const RACES: usize = 1_000;
const RACES_AT_ONCE: usize = 50;
/// By how much a person is early or late at most.
const OFF_MS: i64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn of_a_person_and_a_rule_exactly_one_answer_counts() {
    let folder = tempfile::tempdir().unwrap();
    let plan =
        plan(1, 150).replace("arguments: {}", "arguments: {key: {jsonPath: $.promptInput.key}}");
    let spec = Flaky::failing(0).spec.clone();
    let first = Arc::new(FirstFails { spec, calls: Mutex::default() });
    let tool: Arc<dyn Tool> = first.clone();
    let world = World::changed(folder.path(), &[&plan], |mut parts: Parts| {
        parts.tools.push(ToolSource::new("a flaky server", vec![tool]));
        parts
    })
    .await;
    let mut by_people = 0;
    for batch in 0..RACES / RACES_AT_ONCE {
        by_people += race(&world, batch * RACES_AT_ONCE).await;
    }
    let calls = first.calls.lock().unwrap();
    let repeats = calls.values().map(|count| *count as usize - 1).sum::<usize>();
    assert_eq!(calls.len(), RACES);
    assert!(calls.values().all(|count| *count <= 2), "a rule acted twice: {calls:?}");
    assert_eq!(repeats + by_people, RACES, "each failure was acted on once");
}

/// Races of people against rules, each about one ask, in the moment in which the rule acts; how
/// many people won.
async fn race(world: &World, first: usize) -> usize {
    let starts = (first..first + RACES_AT_ONCE).map(|number| async move {
        let input = json!({"key": number});
        let session = format!("s{number}");
        world.start("heal", input, &session).await.run.id
    });
    let runs = join_all(starts).await;
    let engine = &world.engine;
    let me = &caller();
    let races = (0..).zip(&runs).map(|(number, run): (i64, &RunId)| async move {
        let off = number % (2 * OFF_MS) - OFF_MS;
        let ask = first_ask(world, *run).await;
        let until = ask.held.as_ref().unwrap().until;
        engine.clock().sleep_until(Millis(until.0 + off)).await;
        let reply = fix(FixAction::Settle, Some(json!("by hand")));
        match engine.asks().reply(me, ask.id, reply, None, WAIT_MS).await {
            Ok(report) => {
                assert_eq!(report.run.run.answer, Some(json!("by hand")));
                true
            }
            Err(refusal) => {
                let RefusalCode::AskDecided(closed) = &refusal.code else { panic!("{refusal:?}") };
                assert_eq!(&*closed.decision.as_ref().unwrap().by, SUPERVISOR);
                false
            }
        }
    });
    let won = join_all(races).await;
    for run in runs {
        world.until_status(run, "completed").await;
    }
    won.into_iter().filter(|won| *won).count()
}

/// The first ask of a run, once there is one.
async fn first_ask(world: &World, run: RunId) -> Ask {
    for _ in 0..LOOKS_MAX {
        let filter = AskFilter { run: Some(run), ..AskFilter::default() };
        if let Some(asked) = asks(world, filter).await.into_iter().next() {
            return asked.row.ask;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for run {run} to ask");
}

/// A plan that is corrected by one that asks a person first.
const CORRECTED: &str = "planId: heal\non_error: [{plan: fixes/ask}]\n\
    steps: [{id: call, type: tool_call, toolId: 'flaky::read', arguments: {}, saveAs: out, \
    nextStepId: end}, {id: end, type: final_response, message: {jsonPath: $.context.out}}]";
const CORRECTION: &str = "planId: fixes/ask\nsteps: [{id: ask, type: human_in_the_loop, \
    message: 'mended?', nextStepIdOnInput: say}, {id: say, type: final_response, \
    message: {action: retry, why: mended}}]";

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_continues_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let tool = Flaky::failing(1);
    let plans = [CORRECTION, CORRECTED];
    let world = open(folder.path(), &plans, &tool).await;
    let asked = world.run("heal", json!({}), "s").await;
    assert_eq!((asked.run.status.name(), asked.asks.len()), ("waiting", 1));
    let ask = asked.asks[0].row.ask.id;
    assert_eq!(asked.asks[0].row.ask.step.as_str(), "ask");
    world.crash().await;

    let world = open(folder.path(), &plans, &tool).await;
    let reply = Reply::Clarify { answer: Some(json!("yes")) };
    let done = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    let run = done.run.run;
    assert_eq!((run.status.name(), run.answer), ("completed", Some(json!("well"))));
    assert_eq!(tool.sent(), 2, "once before the correction, and once after it");
    let decided = asks(&world, AskFilter { step: Some("call".into()), ..AskFilter::default() });
    assert_eq!(decided.await.len(), 1, "the failure was asked about once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_call_fails_at_once_despite_rules() {
    let folder = tempfile::tempdir().unwrap();
    let read = Flaky::failing(2);
    let write = Flaky::named("flaky::write", Reach::Writes, 1);
    let tools: Vec<Arc<dyn Tool>> = vec![read.clone(), write.clone()];
    let plan = plan(1, 1).replace("on_error: [{retry: {times: 1, wait_ms: 1, jitter: 0}}]\n", "");
    let world = World::changed(folder.path(), &[&plan], |mut parts: Parts| {
        parts.tools.push(ToolSource::new("a flaky server", tools));
        parts
    })
    .await;
    let retry = Retry { times: 3, wait_ms: 1, factor_percent: 100, jitter_percent: 0 };
    let rules = Rules { project: vec![Rule::always(RuleAction::Retry(retry))], built_in: true };
    let files = ProjectFiles { rules, ..ProjectFiles::default() };
    world.engine.catalog().set_rules(&"default".into(), &files).unwrap();
    let tools = world.engine.tools();
    let me = caller();
    let refused = tools.call(&me, &"flaky::read".into(), json!({}), WAIT_MS).await.unwrap_err();
    assert_eq!((refused.code.name(), read.sent()), ("tool_failed", 1));
    let failed = tools.call(&me, &"flaky::write".into(), json!({}), WAIT_MS).await.unwrap();
    let CallReport::Failed(report) = failed else { panic!("{failed:?}") };
    assert_eq!((report.run.last_error.unwrap().name.as_str(), write.sent()), ("HttpStatus", 1));
    assert_eq!(asks(&world, AskFilter::default()).await.len(), 0, "no rule was asked");
    // The same rules are there for plans.
    let report = world.run("heal", json!({}), "s").await;
    assert_eq!((report.run.status.name(), read.sent()), ("completed", 3), "{:?}", report.asks);
}

/// Denies these acts to everybody, as to a starter whose rights were withdrawn.
#[derive(Default)]
struct Withdrawn(Mutex<Vec<ActOf>>);

impl Policy for Withdrawn {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match self.0.lock().unwrap().contains(&request.act) {
            true => Verdict::Deny("its role was taken away".to_owned()).into(),
            false => Decision::allow(),
        }
    }
}

/// A flaky tool during whose calls rights are withdrawn.
struct Withdrawing {
    flaky: Arc<Flaky>,
    policy: Arc<Withdrawn>,
    acts: Vec<ActOf>,
}

impl Tool for Withdrawing {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.flaky.spec()
    }

    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        *self.policy.0.lock().unwrap() = self.acts.clone();
        self.flaky.call(caller, call)
    }
}

/// A world in which a failing call loses its starter these rights.
async fn losing(
    folder: &Path,
    plans: &[&str],
    acts: &[ActOf],
) -> (World, Arc<Flaky>, Arc<Withdrawn>) {
    let flaky = Flaky::failing(1);
    let policy = Arc::new(Withdrawn::default());
    let acts = acts.to_vec();
    let held = policy.clone();
    let tool = Withdrawing { flaky: flaky.clone(), policy: policy.clone(), acts };
    let world = World::changed(folder, plans, |mut parts: Parts| {
        parts.tools.push(ToolSource::new("a flaky server", vec![Arc::new(tool)]));
        Parts { policy: held, ..parts }
    })
    .await;
    (world, flaky, policy)
}

/// The only ask of a run that is left to a person, and its fault.
fn left_to_a_person(report: &RunReport) -> (&Ask, &Fault) {
    assert_eq!(report.run.status.name(), "stuck");
    let [asked] = report.asks.as_slice() else { panic!("{:?}", report.asks) };
    assert!(asked.row.ask.held.is_none(), "a rule holds it: {asked:?}");
    let AskBody::Fix { fault, .. } = &asked.row.ask.body else { panic!("{asked:?}") };
    (&asked.row.ask, fault)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_needs_the_rights_of_who_started_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(3, 0);
    let (world, flaky, policy) = losing(folder.path(), &[&plan], &[ActOf::Call, ActOf::Run]).await;
    let report = world.run("heal", json!({}), "s").await;
    let (ask, fault) = left_to_a_person(&report);
    assert_eq!(fault.name, Fault::NOT_PERMITTED, "{fault}");
    assert_eq!((ask.tried.len(), ask.tried[0].times, flaky.sent()), (1, 1, 1));
    // With the right a person's retry goes out.
    policy.0.lock().unwrap().clear();
    let reply = Reply::fix(FixAction::Retry);
    let done = world.engine.asks().reply(&caller(), ask.id, reply, None, WAIT_MS).await.unwrap();
    assert_eq!((done.run.run.answer, flaky.sent()), (Some(json!("well")), 2));
}

/// A correction that looks first.
const LOOKS_FIRST: &str = "planId: fixes/ask\nsteps: [{id: look, type: tool_call, \
    toolId: 'slow::read', arguments: {}, nextStepId: say}, {id: say, type: final_response, \
    message: {action: retry, why: seen}}]";

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_needs_the_rights_of_who_started_the_run() {
    let plans = [LOOKS_FIRST, CORRECTED];
    // Who may not run the plan any more: its correction asks, and does nothing.
    let folder = tempfile::tempdir().unwrap();
    let (world, flaky, _) = losing(folder.path(), &plans, &[ActOf::Call, ActOf::Run]).await;
    world.permits.add_permits(1);
    let report = world.run("heal", json!({}), "s").await;
    let (ask, fault) = left_to_a_person(&report);
    assert_eq!((ask.step.as_str(), fault.name.as_str()), ("look", Fault::NOT_PERMITTED));
    assert_eq!((flaky.sent(), world.sent()), (1, 0));
    // Who may not call tools any more: the correction fails, and the step is a person's with why.
    let folder = tempfile::tempdir().unwrap();
    let (world, flaky, _) = losing(folder.path(), &plans, &[ActOf::Call]).await;
    world.permits.add_permits(1);
    let report = world.run("heal", json!({}), "s").await;
    let (ask, _) = left_to_a_person(&report);
    assert_eq!((ask.step.as_str(), ask.tried[0].does.name()), ("call", "correct"));
    let found = ask.tried[0].found.as_ref().unwrap();
    assert!(found.fault.is_some() && !found.acts, "{found:?}");
    assert_eq!((flaky.sent(), world.sent()), (1, 0));
}
