//! Calls of what fails again and again are refused for a while, then one of them tries.

use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, caller, files, parts};
use engine::system::clock::SystemClock;
use engine::{
    BreakerState, CallReport, Engine, Parts, ProjectFiles, Refusal, RefusalKind, RunReport,
    RunRequest, RunSession, RunTarget, ToolSource,
};
use futures::future::BoxFuture;
use kernel::ask::AskBody;
use kernel::contracts::{AskFilter, Clock, PageRequest, SessionAsk, Tool};
use kernel::definition::rule::Rules;
use kernel::limits::Limits;
use kernel::tool::breaker::BreakerScope;
use kernel::tool::call::{
    Call, CallProgress, Caller, Reach, ToolError, ToolOutput, ToolSpec, Upstream, UpstreamProtocol,
};
use kernel::tool::rules::{Pattern, ToolLimits, ToolRules};
use kernel::values::ids::{Millis, PlanId, RealmId};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const HOUR_MS: u64 = 3_600_000;
const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'crm.read', \
    arguments: {}, nextStepId: end}, {id: end, type: final_response, message: ok}]";

/// The same, with one try of a rule.
const RETRIED: &str = "planId: retried\nsteps: [{id: call, type: tool_call, toolId: 'crm.read', \
    arguments: {}, on_error: [{retry: {times: 1, wait_ms: 0, jitter: 0}}, ask], nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";

/// The same with a call that waits.
const LATE: &str = "planId: late\nsteps: [{id: call, type: tool_call, toolId: 'crm.read', \
    arguments: {is: late}, on_error: [{retry: {times: 1, wait_ms: 0, jitter: 0}}, ask], \
    nextStepId: end}, {id: end, type: final_response, message: ok}]";

/// The system's clock, set ahead by so many milliseconds.
#[derive(Default)]
struct Ahead(AtomicI64);

impl Clock for Ahead {
    fn now(&self) -> Millis {
        Millis(SystemClock.now().0 + self.0.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed()
    }

    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
        let ms = then.0.saturating_sub(self.now().0).max(0);
        SystemClock.sleep_ms(ms.unsigned_abs())
    }
}

/// A tool that does as its arguments say, and counts its calls.
struct Flaky {
    spec: Arc<ToolSpec>,
    upstream: Option<&'static str>,
    calls: Arc<AtomicU32>,
    /// What slow and late calls wait for.
    gate: Arc<Semaphore>,
}

impl Tool for Flaky {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn upstream(&self) -> Option<Upstream> {
        self.upstream.map(|name| Upstream { name: name.into(), speaks: UpstreamProtocol::Other })
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if let Some(waits @ ("slow" | "late")) = call.arguments["is"].as_str() {
            return Box::pin(async move {
                self.gate.acquire().await.unwrap().forget();
                match waits {
                    "late" => Ok(ToolOutput::Value(json!("here"))),
                    _ => Err(ToolError::not_sent("Away", "no connection").passing()),
                }
            });
        }
        let result = match call.arguments["is"].as_str() {
            Some("away") => Err(ToolError::not_sent("Away", "no connection").passing()),
            Some("wrong") => Err(ToolError::failed("NotFound", "there is no such customer")),
            Some("unfit") => Err(ToolError::not_sent("Unfit", "the key is no header")),
            _ => Ok(ToolOutput::Value(json!("here"))),
        };
        Box::pin(std::future::ready(result))
    }
}

/// An engine with tools of an upstream and one of its own.
struct Desk {
    engine: Engine,
    calls: Arc<AtomicU32>,
    gate: Arc<Semaphore>,
    clock: Arc<Ahead>,
    _folder: tempfile::TempDir,
}

impl Desk {
    fn open(limits: Limits, rules: ToolRules) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let calls = Arc::new(AtomicU32::new(0));
        let gate = Arc::new(Semaphore::new(0));
        let tool = |name: &str, reach: Reach, upstream: Option<&'static str>| -> Arc<dyn Tool> {
            let calls = calls.clone();
            let gate = gate.clone();
            Arc::new(Flaky { spec: spec(name, reach), upstream, calls, gate })
        };
        let tools = vec![
            tool("crm.read", Reach::Reads, Some("crm")),
            tool("crm.find", Reach::Reads, Some("crm")),
            tool("crm.write", Reach::Writes, Some("crm")),
            tool("own.read", Reach::Reads, None),
        ];
        let clock = Arc::new(Ahead::default());
        let parts = parts(folder.path(), limits, vec![ToolSource::new("the test", tools)]);
        let engine = start(Parts { rules, clock: clock.clone(), ..parts });
        Self { engine, calls, gate, clock, _folder: folder }
    }

    /// More than an hour passes.
    fn an_hour_passes(&self) {
        self.clock.0.fetch_add(HOUR_MS.cast_signed() + 1, Ordering::SeqCst);
    }

    async fn asks(&self, filter: AskFilter) -> Vec<SessionAsk> {
        let page = PageRequest { cursor: None, limit: 50 };
        self.engine.asks().list(&caller(), &filter, &page).await.unwrap().items
    }

    /// Has what is due done, until so many calls were made, and so many asks of all are held by
    /// rules while nothing moves but the calls under way.
    async fn until_held(&self, calls: u32, held: usize, all: usize, under_way: u64) {
        for _ in 0..LOOKS_MAX {
            self.engine.admin().recover_once().await;
            let status = Some("open".to_owned());
            let is_held = Some(true);
            let open = AskFilter { status, held: is_held, ..AskFilter::default() };
            let asked = (self.asks(open).await.len(), self.asks(AskFilter::default()).await.len());
            let active = self.engine.counts().sessions_active;
            if (self.calls(), asked, active) == (calls, (held, all), under_way) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("waited in vain for {calls} calls and {held} asks of {all} that rules hold");
    }

    async fn call(&self, caller: &Caller, tool: &str, how: &str) -> Result<CallReport, Refusal> {
        self.engine.tools().call(caller, &tool.into(), json!({"is": how}), WAIT_MS).await
    }

    /// Such a call, and what it was refused with.
    async fn fails(&self, tool: &str, how: &str) -> Refusal {
        self.call(&caller(), tool, how).await.unwrap_err()
    }

    async fn run(&self, plan: &str) -> RunReport {
        self.start(plan, WAIT_MS).await
    }

    async fn start(&self, plan: &str, wait_ms: u64) -> RunReport {
        let request = RunRequest {
            target: RunTarget::Plan(PlanId::from(plan)),
            input: json!({}),
            session: RunSession::New,
            once: None,
            about: Default::default(),
        };
        self.engine.runs().start(&caller(), request, wait_ms).await.unwrap()
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn failing(&self) -> Vec<BreakerState> {
        self.engine.tools().breakers(&RealmId::from("default"))
    }
}

fn start(parts: Parts) -> Engine {
    let engine = Engine::start(parts).unwrap();
    let realm = RealmId::from("default");
    engine.catalog().load_plans(&realm, files(&[READ, RETRIED, LATE])).unwrap();
    // A failed step is asked about at once: the built-in rule would try it again first.
    let rules = Rules { built_in: false, ..Rules::default() };
    let files = ProjectFiles { rules, ..ProjectFiles::default() };
    engine.catalog().set_rules(&realm, &files).unwrap();
    engine
}

fn spec(name: &str, reach: Reach) -> Arc<ToolSpec> {
    Arc::new(ToolSpec { reach, ..testkit::specs::tool(name) })
}

fn limits(failures: u32, open_ms: u64) -> Limits {
    Limits { breaker_failures: failures, breaker_open_ms: open_ms, ..Limits::default() }
}

fn output(report: CallReport) -> Value {
    match report {
        CallReport::Done(output) => output,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_fails_again_and_again_is_left_alone_for_a_while() {
    let desk = Desk::open(limits(2, HOUR_MS), ToolRules::default());
    // An answer between two failures shows that it is there, also one that says no; a call that
    // could not be sent shows nothing.
    for (tool, how) in
        [("crm.read", "away"), ("crm.find", "wrong"), ("crm.read", "away"), ("crm.read", "unfit")]
    {
        assert_eq!(desk.fails(tool, how).await.code.name(), "tool_failed", "{how}");
    }
    assert_eq!(desk.fails("crm.find", "away").await.code.name(), "tool_failed");
    assert_eq!(desk.calls(), 5);

    for tool in ["crm.read", "crm.find", "crm.write"] {
        let refused = desk.fails(tool, "well").await;
        assert_eq!(
            (refused.kind(), refused.code.name()),
            (RefusalKind::Unavailable, "circuit_open"),
            "{tool}"
        );
        let retry_ms = refused.code.retry_ms().unwrap();
        assert!((1..=HOUR_MS).contains(&retry_ms), "{retry_ms}");
        assert!(refused.message.contains("upstream `crm`"), "{}", refused.message);
    }
    // Nothing was sent, and the write left no run behind.
    let page = PageRequest { cursor: None, limit: 10 };
    let sessions = desk.engine.sessions().list(&caller(), &Default::default(), &page).await;
    assert_eq!((sessions.unwrap().items.len(), desk.calls()), (0, 5));
    let failing = desk.failing();
    assert_eq!((failing.len(), failing[0].failures), (1, 2));
    assert_eq!(failing[0].guarded, BreakerScope::Upstream("crm".into()));
    assert!(failing[0].open_until.is_some());

    // Other tools and other realms have nothing to do with it.
    assert_eq!(output(desk.call(&caller(), "own.read", "well").await.unwrap()), json!("here"));
    let elsewhere = Caller::new("other", "ann");
    assert_eq!(output(desk.call(&elsewhere, "crm.read", "well").await.unwrap()), json!("here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_our_own_has_none_unless_the_operator_says_so() {
    let desk = Desk::open(limits(1, HOUR_MS), ToolRules::default());
    for _ in 0..3 {
        assert_eq!(desk.fails("own.read", "away").await.code.name(), "tool_failed");
    }
    let none = Desk::open(limits(0, HOUR_MS), ToolRules::default());
    for _ in 0..3 {
        assert_eq!(none.fails("crm.read", "away").await.code.name(), "tool_failed");
    }

    let own = ToolLimits { breaker_failures: NonZeroU32::new(2), ..ToolLimits::default() };
    let tools = vec![(Pattern::new("*.read").unwrap(), own)];
    let desk = Desk::open(limits(1, HOUR_MS), ToolRules { tools, ..ToolRules::default() });
    for tool in ["crm.read", "own.read"] {
        for expected in ["tool_failed", "tool_failed", "circuit_open"] {
            assert_eq!(desk.fails(tool, "away").await.code.name(), expected, "{tool}");
        }
    }
    // The rest of the upstream is judged by itself.
    assert_eq!(output(desk.call(&caller(), "crm.find", "well").await.unwrap()), json!("here"));
    let refused: Vec<BreakerScope> =
        desk.failing().into_iter().map(|state| state.guarded).collect();
    assert_eq!(
        refused,
        [BreakerScope::Tool("crm.read".into()), BreakerScope::Tool("own.read".into())]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_tries_and_its_answer_lets_all_through() {
    let desk = Desk::open(limits(2, HOUR_MS), ToolRules::default());
    for _ in 0..2 {
        desk.fails("crm.read", "away").await;
    }
    assert_eq!(desk.fails("crm.read", "well").await.code.name(), "circuit_open");
    desk.an_hour_passes();
    assert_eq!(output(desk.call(&caller(), "crm.read", "well").await.unwrap()), json!("here"));
    assert_eq!((desk.calls(), desk.failing()), (3, Vec::new()));
    assert_eq!(output(desk.call(&caller(), "crm.find", "well").await.unwrap()), json!("here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_run_a_refused_call_is_a_failed_step_that_may_pass() {
    let desk = Desk::open(limits(1, HOUR_MS), ToolRules::default());
    desk.fails("crm.find", "away").await;
    let report = desk.run("read").await;
    let AskBody::Fix { how, fault, .. } = &report.asks[0].row.ask.body else { panic!("no fix") };
    assert_eq!((*how, fault.name.as_str()), (CallProgress::NotSent, "CircuitOpen"));
    assert!(fault.passing, "{fault:?}");
    assert_eq!(desk.calls(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_waits_for_a_refused_call_and_uses_up_no_try() {
    // Longer than a busy machine takes to begin a run.
    let desk = Desk::open(limits(1, 10_000), ToolRules::default());
    desk.fails("crm.find", "away").await;
    // The first call and the rule's only try come too soon, unless the rule waits.
    let report = desk.run("retried").await;
    assert_eq!(report.run.status.name(), "completed", "{:?}", report.asks);
    assert_eq!(desk.calls(), 2, "one failed, and one was let through");
    let page = PageRequest { cursor: None, limit: 10 };
    let decided = desk.engine.asks().list(&caller(), &AskFilter::default(), &page).await.unwrap();
    let until = decided.items[0].row.ask.held.as_ref().unwrap().until;
    let AskBody::Fix { fault, .. } = &decided.items[0].row.ask.body else { panic!("no fix") };
    let waits = until.0 - decided.items[0].row.ask.created_at.0;
    assert_eq!(Some(waits.unsigned_abs()), fault.refused_ms, "until calls are let through");
}

/// How many calls come at the same time.
const AT_ONCE: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_breaker_sends_one_of_many_concurrent_calls() {
    let desk = Desk::open(limits(1, HOUR_MS), ToolRules::default());
    desk.fails("crm.find", "away").await;
    desk.an_hour_passes();
    let mut calls = JoinSet::new();
    for _ in 0..AT_ONCE {
        let engine = desk.engine.clone();
        calls.spawn(async move {
            let arguments = json!({"is": "late"});
            engine.tools().call(&caller(), &"crm.read".into(), arguments, WAIT_MS).await
        });
    }
    let limit = Duration::from_millis(WAIT_MS);
    for number in 1..AT_ONCE {
        let ended = tokio::time::timeout(limit, calls.join_next()).await;
        let ended = ended.unwrap_or_else(|_| panic!("call {number} should be refused at once"));
        let refused = ended.unwrap().unwrap().unwrap_err();
        assert_eq!(refused.code.name(), "circuit_open", "{refused:?}");
        let retry_ms = refused.code.retry_ms().unwrap();
        assert!((1..=HOUR_MS).contains(&retry_ms), "{retry_ms}");
    }
    assert_eq!(desk.calls(), 2, "one failed, and one tries");
    desk.gate.add_permits(1);
    let tried = calls.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!((output(tried), desk.failing()), (json!("here"), Vec::new()));
    assert_eq!(output(desk.call(&caller(), "crm.find", "well").await.unwrap()), json!("here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_refused_behind_a_probe_uses_up_no_try() {
    let desk = Desk::open(limits(1, HOUR_MS), ToolRules::default());
    desk.fails("crm.find", "away").await;
    desk.an_hour_passes();
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(desk.start("late", 0).await.run.id);
    }
    // The call of one run tries, and never answers; the rules of the others wait.
    desk.until_held(2, 3, 3, 1).await;
    // Their only tries come at the same time: one goes out, and the others wait once more.
    desk.an_hour_passes();
    desk.until_held(3, 2, 5, 2).await;
    desk.gate.add_permits(4);
    desk.until_held(3, 2, 5, 0).await;
    desk.an_hour_passes();
    desk.until_held(5, 0, 5, 0).await;
    for run in runs {
        let report = desk.engine.runs().report(&caller(), run).await.unwrap();
        assert_eq!(report.run.status.name(), "completed", "{:?}", report.asks);
    }
    for asked in desk.asks(AskFilter::default()).await {
        let AskBody::Fix { how, fault, .. } = &asked.row.ask.body else { panic!("no fix") };
        assert_eq!((*how, fault.name.as_str()), (CallProgress::NotSent, "CircuitOpen"));
        let held = asked.row.ask.held.as_ref().unwrap();
        assert_eq!((held.try_no, held.of), (1, 1));
    }
}

/// How often a call may slip through before the failure is noted that would refuse it.
const SLIPS_MAX: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_refused_after_it_was_counted_uses_up_no_rate() {
    let one = NonZeroU32::new(1);
    let two = NonZeroU32::new(2);
    let own = ToolLimits { concurrency: one, per_minute: two, ..ToolLimits::default() };
    for _ in 0..SLIPS_MAX {
        let tools = vec![(Pattern::new("crm.read").unwrap(), own)];
        let desk = Desk::open(limits(1, 100), ToolRules { tools, ..ToolRules::default() });
        // The first one has the only place. The second one is counted and waits for it; meanwhile
        // the first one fails, and with it the breaker opens.
        let under_way = async {
            for _ in 0..LOOKS_MAX {
                if desk.calls() == 1 {
                    return;
                }
                tokio::time::sleep(LOOK).await;
            }
            panic!("the first call should be under way");
        };
        let second = async {
            under_way.await;
            let fails = async {
                tokio::time::sleep(10 * LOOK).await;
                desk.gate.add_permits(1);
            };
            let me = caller();
            tokio::join!(desk.call(&me, "crm.read", "well"), fails).0
        };
        let (_, second) = tokio::join!(desk.fails("crm.read", "slow"), second);
        let Err(refused) = second else { continue };
        assert_eq!(refused.code.name(), "circuit_open");
        // There is one call left of two, and the next comes in half a minute.
        for _ in 0..LOOKS_MAX {
            match desk.call(&caller(), "crm.read", "well").await {
                Ok(report) => {
                    assert_eq!(output(report), json!("here"));
                    return;
                }
                Err(refused) => assert_eq!(refused.code.name(), "circuit_open"),
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("a call should be let through after 100 ms");
    }
    panic!("the second call was never refused");
}
