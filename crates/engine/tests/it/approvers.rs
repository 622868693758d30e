//! Who approves what a policy asks about: one whom every list names, and another person than those
//! who had a hand in the run. What was approved, or needed no approval, is looked at again when the
//! call is sent.

use crate::WRITE;
use crate::model::{Scripted, calls, text};
use crate::world::{WAIT_MS, World, caller};
use engine::{AgentFile, Parts, RefusalCode, ThreadMessage};
use kernel::ask::context::ApprovalReason;
use kernel::ask::{Ask, AskBody, CallDecision, FixAction, Reply};
use kernel::contracts::Policy;
use kernel::contracts::policy::{Answerer, Decision, Obligation, Request, Resource};
use kernel::tool::call::{CallProgress, Caller, Verdict};
use kernel::tool::rules::{Pattern, ToolLimits, ToolRules};
use kernel::values::caller::{Act, KeyMakers};
use kernel::values::ids::{AskId, RunId};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

/// Asks about every call, and wants this of who answers.
struct Asking(Vec<Obligation>);

impl Policy for Asking {
    fn decide(&self, request: &Request<'_>) -> Decision {
        if request.act != Act::Call {
            return Decision::allow();
        }
        let obligations = self.0.clone();
        let policies = vec!["large".into()];
        let verdict = Verdict::Ask("it is large".to_owned());
        Decision { obligations, policies, ..Decision::from(verdict) }
    }
}

fn named(names: &[&str]) -> Obligation {
    Obligation::Answerers(names.iter().map(|name| Answerer::Principal((*name).into())).collect())
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("principal:{name}")).collect()
}

fn approve(ask: &Ask, arguments: Option<Value>) -> Reply {
    let AskBody::Approve { calls } = &ask.body else { panic!("{:?}", ask.body) };
    let arguments = arguments.map(Arc::new);
    let call_id = calls[0].call_id;
    let decision = CallDecision { call_id, approve: true, feedback: None, arguments };
    Reply::Approve { decisions: vec![decision] }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_another_person_whom_every_list_names_approves() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = vec![named(&["ann", "bob", "eve"]), named(&["ann", "bob"]), Obligation::Other];
    let policy = Arc::new(Asking(wanted));
    let change = |parts| Parts { policy, ..parts };
    let world = World::changed(folder.path(), &[WRITE], change).await;
    world.permits.add_permits(1);
    let request = world.request("write", json!({}), "s");
    let report = world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    let asked = &report.asks[0];
    let ask = &asked.row.ask;
    let answerers = ask.answerers.clone().unwrap();
    assert_eq!(ask.about[0].why, Some(ApprovalReason::Policy("it is large".to_owned())));
    assert_eq!(answerers.lists, [list(&["ann", "bob", "eve"]), list(&["ann", "bob"])]);
    assert_eq!((answerers.other, answerers.involved), (true, vec!["ann".into()]));

    let asks = world.engine.asks();
    for who in ["ann", "eve", "zoe"] {
        let who = Caller::new("default", who);
        assert!(!asks.may_answer(&who, asked), "no question is put to {who:?}");
        let refused = asks.reply(&who, ask.id, approve(ask, None), None, WAIT_MS).await.err();
        let code = refused.map(|refusal| refusal.code);
        assert_eq!(code, Some(RefusalCode::Forbidden(Act::Answer)), "{who:?}");
    }
    let bob = Caller::new("default", "bob");
    assert!(asks.may_answer(&bob, asked));
    let edited = approve(ask, Some(json!({"n": 2})));
    let refused = asks.reply(&bob, ask.id, edited, None, WAIT_MS).await.err();
    assert_eq!(refused.map(|refusal| refusal.code), Some(RefusalCode::EditRefused));
    let done = asks.reply(&bob, ask.id, approve(ask, None), None, WAIT_MS).await.unwrap();
    assert_eq!(done.run.run.status.name(), "completed");
}

/// What a changing policy says now.
#[derive(Default)]
struct Now {
    /// The tools that it asks about.
    asks: Vec<&'static str>,
    /// Who may answer nothing.
    gone: Vec<&'static str>,
    /// Whether another person must answer.
    other: bool,
    version: u32,
}

/// Says something else from one moment to the next.
#[derive(Default)]
struct Changing(Mutex<Now>);

impl Changing {
    fn set(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.0.lock().unwrap());
    }
}

impl Policy for Changing {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let now = self.0.lock().unwrap();
        let verdict = match (request.act, request.resource) {
            (Act::Call, Resource::Tool(spec)) if now.asks.contains(&spec.name.as_str()) => {
                Verdict::Ask("it is large".to_owned())
            }
            (Act::Answer, _) if now.gone.contains(&&*request.subject.subject) => {
                Verdict::Deny("its key was revoked".to_owned())
            }
            _ => Verdict::Allow,
        };
        let obligations = now.other.then_some(Obligation::Other).into_iter().collect();
        let version = Some(now.version.to_string().into());
        Decision { obligations, version, ..Decision::from(verdict) }
    }

    fn version(&self) -> Option<Arc<str>> {
        Some(self.0.lock().unwrap().version.to_string().into())
    }
}

fn changing(now: Now) -> Arc<Changing> {
    Arc::new(Changing(Mutex::new(now)))
}

/// A run of `write` that is paused and approved by `bob`: nothing is sent yet.
async fn approved_while_paused(world: &World) -> RunId {
    let report = world.run("write", json!({}), "s").await;
    let run = report.run.id;
    let ask = &report.asks[0].row.ask;
    world.engine.runs().pause(&caller(), run).await.unwrap();
    let bob = Caller::new("default", "bob");
    let asks = world.engine.asks();
    let replied = asks.reply(&bob, ask.id, approve(ask, None), None, WAIT_MS).await.unwrap();
    assert_eq!((replied.run.run.status.name(), world.sent()), ("paused", 0));
    run
}

/// Continues the run, whose call is not sent; gives the name of the fault.
async fn not_sent(world: &World, run: RunId) -> (AskId, String) {
    world.engine.runs().continue_run(&caller(), run).await.unwrap();
    let stuck = world.until_status(run, "stuck").await;
    let ask = &stuck.asks[0].row.ask;
    let AskBody::Fix { fault, how, .. } = &ask.body else { panic!("{:?}", ask.body) };
    assert_eq!((*how, world.sent()), (CallProgress::NotSent, 0));
    (ask.id, fault.name.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_void_once_its_giver_may_not_answer() {
    let folder = tempfile::tempdir().unwrap();
    let policy = changing(Now { asks: vec!["slow::write"], ..Now::default() });
    let held = policy.clone();
    let change = |parts| Parts { policy: held, ..parts };
    let world = World::changed(folder.path(), &[WRITE], change).await;
    world.permits.add_permits(1);
    let run = approved_while_paused(&world).await;
    policy.set(|now| now.gone.push("bob"));
    let (fix, fault) = not_sent(&world, run).await;
    assert_eq!(fault, "ApprovalVoid");

    // A retry asks again, and somebody else may approve.
    let asks = world.engine.asks();
    let retry = Reply::fix(FixAction::Retry);
    let asked = asks.reply(&caller(), fix, retry, None, WAIT_MS).await.unwrap().run;
    let ask = &asked.asks[0].row.ask;
    let bob = Caller::new("default", "bob");
    let eve = Caller::new("default", "eve");
    assert!(asks.reply(&bob, ask.id, approve(ask, None), None, WAIT_MS).await.is_err());
    let done = asks.reply(&eve, ask.id, approve(ask, None), None, WAIT_MS).await.unwrap();
    assert_eq!((done.run.run.status.name(), world.sent()), ("completed", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_policy_would_not_take_any_more_is_void() {
    let folder = tempfile::tempdir().unwrap();
    let policy = changing(Now { asks: vec!["slow::write"], ..Now::default() });
    let held = policy.clone();
    let change = |parts| Parts { policy: held, ..parts };
    let world = World::changed(folder.path(), &[WRITE], change).await;
    world.permits.add_permits(2);
    let report = world.run("write", json!({}), "own").await;
    let run = report.run.id;
    let ask = &report.asks[0].row.ask;
    world.engine.runs().pause(&caller(), run).await.unwrap();
    let asks = world.engine.asks();
    asks.reply(&caller(), ask.id, approve(ask, None), None, WAIT_MS).await.unwrap();
    // From now on, who starts a run does not approve its calls.
    policy.set(|now| now.other = true);
    assert_eq!(not_sent(&world, run).await.1, "ApprovalVoid");
    let run = approved_while_paused(&world).await;
    world.engine.runs().continue_run(&caller(), run).await.unwrap();
    world.until_status(run, "completed").await;
    assert_eq!(world.sent(), 1, "another person's approval still counts");
}

/// A caller with a key of its own subject that this one made.
fn lent(subject: &str, maker: &str) -> Caller {
    let makers: KeyMakers = std::iter::once(Arc::from(maker)).collect();
    Caller { makers, ..Caller::new("default", subject) }
}

#[tokio::test(flavor = "multi_thread")]
async fn makers_of_a_key_count_as_involved_in_its_requests() {
    let folder = tempfile::tempdir().unwrap();
    let policy = Arc::new(Asking(vec![Obligation::Other]));
    let change = |parts| Parts { policy, ..parts };
    let world = World::changed(folder.path(), &[WRITE], change).await;
    world.permits.add_permits(1);
    let request = world.request("write", json!({}), "s");
    let starter = lent("ann", "eve");
    let report = world.engine.runs().start(&starter, request, WAIT_MS).await.unwrap();
    let asked = &report.asks[0];
    let ask = &asked.row.ask;
    assert_eq!(ask.answerers.clone().unwrap().makers, ["eve".into()]);
    let asks = world.engine.asks();
    let eve = Caller::new("default", "eve");
    let bob = Caller::new("default", "bob");
    for who in [caller(), eve, lent("bob", "ann"), lent("bob", "eve")] {
        assert!(!asks.may_answer(&who, asked), "no question is put to {who:?}");
        let refused = asks.reply(&who, ask.id, approve(ask, None), None, WAIT_MS).await.err();
        let code = refused.map(|refusal| refusal.code);
        assert_eq!(code, Some(RefusalCode::Forbidden(Act::Answer)), "{who:?}");
    }
    let done = asks.reply(&bob, ask.id, approve(ask, None), None, WAIT_MS).await.unwrap();
    assert_eq!(done.run.run.status.name(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn makers_of_an_approvers_key_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let policy = changing(Now { asks: vec!["slow::write"], ..Now::default() });
    let opened = async || {
        let held = policy.clone();
        World::changed(folder.path(), &[WRITE], |parts| Parts { policy: held, ..parts }).await
    };
    let world = opened().await;
    let report = world.run("write", json!({}), "s").await;
    let run = report.run.id;
    let ask = &report.asks[0].row.ask;
    world.engine.runs().pause(&caller(), run).await.unwrap();
    let asks = world.engine.asks();
    let bob = lent("bob", "ann");
    asks.reply(&bob, ask.id, approve(ask, None), None, WAIT_MS).await.unwrap();
    world.crash().await;
    // From now on, another person approves; it was the starter who made the key.
    policy.set(|now| now.other = true);
    let world = opened().await;
    world.permits.add_permits(1);
    assert_eq!(not_sent(&world, run).await.1, "ApprovalVoid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waiting_to_start_opens_an_ask_once_policy_asks() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([
        calls([("slow::read", json!({"n": 1})), ("slow::write", json!({"n": 2}))]),
        text("Done."),
    ]);
    let policy = changing(Now { asks: vec!["slow::write"], ..Now::default() });
    let held = policy.clone();
    let models = model.models();
    let change = |parts| Parts { policy: held, models, ..parts };
    let world = World::changed(folder.path(), &[], change).await;
    let agent = AgentFile {
        file: "helper.yaml".to_owned(),
        text: "refName: helper\nllmConfigRef: fast\n".to_owned(),
    };
    world.engine.catalog().set_agents_from_files(&"default".into(), vec![agent]).unwrap();
    world.permits.add_permits(2);
    let saying = ThreadMessage { thread: "t", text: "do it", ..ThreadMessage::default() };
    let report = world.engine.threads().say(&caller(), saying, WAIT_MS).await.unwrap();
    // The read was allowed, and waits for what is said of the write.
    let ask = &report.asks[0].row.ask;
    policy.set(|now| {
        now.asks.push("slow::read");
        now.version += 1;
    });
    let asks = world.engine.asks();
    let bob = Caller::new("default", "bob");
    let next = asks.reply(&bob, ask.id, approve(ask, None), None, WAIT_MS).await.unwrap().run;
    assert_eq!(next.asks.len(), 1, "{:?}", next.run);
    let ask = &next.asks[0].row.ask;
    let AskBody::Approve { calls } = &ask.body else { panic!("{:?}", ask.body) };
    assert_eq!(calls[0].tool.as_str(), "slow::read");
    let sent = |world: &World| -> Vec<Value> {
        world.ledger.0.lock().unwrap().iter().map(|(_, arguments)| arguments.clone()).collect()
    };
    assert!(!sent(&world).contains(&json!({"n": 1})), "the read was sent unasked");
    let done = asks.reply(&bob, ask.id, approve(ask, None), None, WAIT_MS).await.unwrap().run;
    assert_eq!((done.run.answer, world.sent()), (Some(json!("Done.")), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waiting_for_a_permit_is_not_sent_once_policy_asks() {
    let folder = tempfile::tempdir().unwrap();
    let policy = changing(Now::default());
    let held = policy.clone();
    let one = ToolLimits { concurrency: NonZeroU32::new(1), ..ToolLimits::default() };
    let tools = vec![(Pattern::new("slow::*").unwrap(), one)];
    let rules = ToolRules { tools, ..ToolRules::default() };
    let change = |parts| Parts { policy: held, rules, ..parts };
    let world = World::changed(folder.path(), &[WRITE], change).await;
    let first = world.start("write", json!({}), "a").await.run.id;
    world.until("the first call to be sent", |world| world.sent() == 1).await;
    let second = world.start("write", json!({}), "b").await.run.id;
    let started = |world: &World| world.engine.counts().calls_started == 2;
    world.until("the second call to wait for its place", started).await;
    policy.set(|now| now.asks.push("slow::write"));
    world.permits.add_permits(2);
    world.until_status(first, "completed").await;
    let stuck = world.until_status(second, "stuck").await;
    assert_eq!(stuck.run.last_error.unwrap().name, "ApprovalNeeded");
    assert_eq!(world.sent(), 1);
}
