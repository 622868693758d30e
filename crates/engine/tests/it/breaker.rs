//! Calls of what fails again and again are refused for a while, then one of them tries.

use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, caller, files, parts};
use engine::{
    BreakerState, CallReport, Engine, Parts, Refusal, RefusalKind, RunReport, RunRequest,
    RunSession, RunTarget, ToolSource,
};
use futures::future::BoxFuture;
use kernel::ask::AskBody;
use kernel::contracts::{AskFilter, Page, Tool};
use kernel::definition::rule::Rules;
use kernel::limits::Limits;
use kernel::tool::breaker::Guarded;
use kernel::tool::call::{
    Call, Caller, HowFar, Pace, Reach, Speaks, ToolError, ToolOutput, ToolSpec, Upstream, Yields,
};
use kernel::tool::rules::{Pattern, ToolLimits, ToolRules};
use kernel::values::ids::{PlanId, RealmId};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Semaphore;

const HOUR_MS: u64 = 3_600_000;
const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'crm.read', \
    arguments: {}, nextStepId: end}, {id: end, type: final_response, message: ok}]";

/// The same, with one try of a rule.
const RETRIED: &str = "planId: retried\nsteps: [{id: call, type: tool_call, toolId: 'crm.read', \
    arguments: {}, on_error: [{retry: {times: 1, wait_ms: 0, jitter: 0}}, ask], nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";

/// A tool that does as its arguments say, and counts its calls.
struct Flaky {
    spec: Arc<ToolSpec>,
    upstream: Option<&'static str>,
    calls: Arc<AtomicU32>,
    /// What slow calls wait for.
    gate: Arc<Semaphore>,
}

impl Tool for Flaky {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn upstream(&self) -> Option<Upstream> {
        self.upstream.map(|name| Upstream { name: name.into(), speaks: Speaks::Rest })
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if call.arguments["is"] == "slow" {
            return Box::pin(async move {
                self.gate.acquire().await.unwrap().forget();
                Err(ToolError::not_sent("Away", "no connection").passing())
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
    _folder: tempfile::TempDir,
}

impl Desk {
    fn open(limits: Limits, rules: ToolRules) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (calls, gate) = (Arc::new(AtomicU32::new(0)), Arc::new(Semaphore::new(0)));
        let tool = |name: &str, reach: Reach, upstream: Option<&'static str>| -> Arc<dyn Tool> {
            let (calls, gate) = (calls.clone(), gate.clone());
            Arc::new(Flaky { spec: spec(name, reach), upstream, calls, gate })
        };
        let tools = vec![
            tool("crm.read", Reach::Reads, Some("crm")),
            tool("crm.find", Reach::Reads, Some("crm")),
            tool("crm.write", Reach::Writes, Some("crm")),
            tool("own.read", Reach::Reads, None),
        ];
        let engine = start(folder.path(), limits, rules, tools);
        Self { engine, calls, gate, _folder: folder }
    }

    async fn call(&self, caller: &Caller, tool: &str, how: &str) -> Result<CallReport, Refusal> {
        self.engine.tools().call(caller, &tool.into(), json!({"is": how}), WAIT_MS).await
    }

    /// Such a call, and what it was refused with.
    async fn fails(&self, tool: &str, how: &str) -> Refusal {
        self.call(&caller(), tool, how).await.unwrap_err()
    }

    async fn run(&self, plan: &str) -> RunReport {
        let request = RunRequest {
            target: RunTarget::Plan(PlanId::from(plan)),
            input: json!({}),
            session: RunSession::New,
            once: None,
            about: Default::default(),
        };
        self.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap()
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn failing(&self) -> Vec<BreakerState> {
        self.engine.tools().breakers(&RealmId::from("default"))
    }
}

fn start(folder: &Path, limits: Limits, rules: ToolRules, tools: Vec<Arc<dyn Tool>>) -> Engine {
    let parts = parts(folder, limits, vec![ToolSource::new("the test", tools)]);
    let engine = Engine::start(Parts { rules, ..parts }).unwrap();
    let realm = RealmId::from("default");
    engine.catalog().load_plans(&realm, files(&[READ, RETRIED])).unwrap();
    // A failed step is asked about at once: the built-in rule would try it again first.
    engine.catalog().set_rules(&realm, Rules { built_in: false, ..Rules::default() }).unwrap();
    engine
}

fn spec(name: &str, reach: Reach) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        title: name.into(),
        description: name.into(),
        input_schema: Arc::new(json!({"type": "object"})),
        output_schema: None,
        reach,
        idempotent: false,
        tags: Vec::new(),
        pace: Pace::Quick,
        yields: Yields::Value,
        unrecorded: false,
        listed: None,
    })
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
    let page = Page { cursor: None, limit: 10 };
    let sessions = desk.engine.sessions().list(&caller(), &Default::default(), &page).await;
    assert_eq!((sessions.unwrap().items.len(), desk.calls()), (0, 5));
    let failing = desk.failing();
    assert_eq!((failing.len(), failing[0].failures), (1, 2));
    assert_eq!(failing[0].guarded, Guarded::Upstream("crm".into()));
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
    let refused: Vec<Guarded> = desk.failing().into_iter().map(|state| state.guarded).collect();
    assert_eq!(refused, [Guarded::Tool("crm.read".into()), Guarded::Tool("own.read".into())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_tries_and_its_answer_lets_all_through() {
    let desk = Desk::open(limits(2, 300), ToolRules::default());
    for _ in 0..2 {
        desk.fails("crm.read", "away").await;
    }
    assert_eq!(desk.fails("crm.read", "well").await.code.name(), "circuit_open");
    let mut tried = None;
    for _ in 0..LOOKS_MAX {
        match desk.call(&caller(), "crm.read", "well").await {
            Ok(report) => {
                tried = Some(output(report));
                break;
            }
            Err(refused) => assert_eq!(refused.code.name(), "circuit_open"),
        }
        tokio::time::sleep(LOOK).await;
    }
    assert_eq!(tried, Some(json!("here")), "a call should be let through after 300 ms");
    assert_eq!((desk.calls(), desk.failing()), (3, Vec::new()));
    assert_eq!(output(desk.call(&caller(), "crm.find", "well").await.unwrap()), json!("here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_run_a_refused_call_is_a_failed_step_that_may_pass() {
    let desk = Desk::open(limits(1, HOUR_MS), ToolRules::default());
    desk.fails("crm.find", "away").await;
    let report = desk.run("read").await;
    let AskBody::Fix { how, fault, .. } = &report.asks[0].row.ask.body else { panic!("no fix") };
    assert_eq!((*how, fault.name.as_str()), (HowFar::NotSent, "CircuitOpen"));
    assert!(fault.passing, "{fault:?}");
    assert_eq!(desk.calls(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_waits_for_a_refused_call_and_uses_up_no_try() {
    let desk = Desk::open(limits(1, 1_500), ToolRules::default());
    desk.fails("crm.find", "away").await;
    // The first call and the rule's only try come too soon, unless the rule waits.
    let report = desk.run("retried").await;
    assert_eq!(report.run.status.name(), "completed", "{:?}", report.asks);
    assert_eq!(desk.calls(), 2, "one failed, and one was let through");
    let page = Page { cursor: None, limit: 10 };
    let decided = desk.engine.asks().list(&caller(), &AskFilter::default(), &page).await.unwrap();
    let until = decided.items[0].row.ask.held.as_ref().unwrap().until;
    let AskBody::Fix { fault, .. } = &decided.items[0].row.ask.body else { panic!("no fix") };
    let waits = until.0 - decided.items[0].row.ask.created_at.0;
    assert_eq!(Some(waits.unsigned_abs()), fault.refused_ms, "until calls are let through");
}

/// How often a call may slip through before the failure is noted that would refuse it.
const SLIPS_MAX: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_refused_after_it_was_counted_uses_up_no_rate() {
    let (one, two) = (NonZeroU32::new(1), NonZeroU32::new(2));
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
