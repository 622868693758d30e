//! The audit over the real store: what is journaled is kept with its events, what is not soon after
//! it was decided, and nothing of that in local mode.

use crate::outbox::send;
use crate::outbox_scripted::Scripted;
use crate::world::{LOOK, WAIT_MS, World, caller};
use crate::{ASK, READ, WRITE};
use engine::{AllowAll, AuditParts, AuditRules, HeadRules, Parts, SinkRules};
use kernel::ask::Reply;
use kernel::contracts::identity::audit::AuditFilter;
use kernel::contracts::policy::{Decision, Request};
use kernel::contracts::{PageRequest, Policy, SessionRef};
use kernel::identity::audit::{ChainName, Entry, Ruling};
use kernel::identity::chain::{Flaw, Head};
use kernel::tool::call::{Caller, Verdict};
use kernel::values::caller::{Act, Via};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ASK_AND_WRITE: &str = "planId: ask_and_write\nsteps: [{id: ask, type: human_in_the_loop, \
    message: go on?, nextStepIdOnInput: call}, {id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {n: 1}, saveAs: out, nextStepId: end}, {id: end, type: final_response, message: ok}]";

const STRICT: AuditRules = AuditRules { unjournaled: true, reads: true, strict: true };

/// A world that keeps this beside what is journaled.
async fn world(folder: &Path, rules: AuditRules) -> World {
    let audited = |parts: Parts| {
        let audit = parts.audit.map(|audit| AuditParts { rules, ..audit });
        Parts { audit, ..parts }
    };
    World::changed(folder, &[READ, WRITE, ASK], audited).await
}

/// The entries of this act, oldest first.
async fn entries(world: &World, act: &str) -> Vec<Entry> {
    world.engine.audits().settled().await;
    written(world, act).await
}

/// The same without waiting for anything.
async fn written(world: &World, act: &str) -> Vec<Entry> {
    let audits = world.engine.audits();
    let page = PageRequest { cursor: None, limit: 100 };
    let chain = ChainName::of(&caller().realm);
    let filter = AuditFilter { act: Some(act.to_owned()), ..AuditFilter::default() };
    let found = audits.entries(&caller(), &chain, &filter, &page).await.unwrap();
    found.items.into_iter().rev().map(|found| found.entry).collect()
}

/// Who, to what, and what was said.
fn told(entry: &Entry) -> (&str, &str, Option<&str>, Ruling) {
    let object = &entry.object;
    (&entry.subject, &object.kind, object.id.as_deref(), entry.verdict)
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entries_are_written_with_their_events_and_chain_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let journaled = AuditRules { unjournaled: false, reads: true, strict: false };
    let before = world(folder.path(), journaled).await;
    before.permits.add_permits(1);
    let request = before.request("write", json!({"n": 2}), "s");
    let done = before.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    assert_eq!(done.run.status.name(), "completed");
    let started = entries(&before, "run").await;
    let expected = ("ann", "plan", Some("write"), Ruling::Allow);
    assert_eq!(started.iter().map(told).collect::<Vec<_>>(), [expected]);
    assert_eq!(started[0].run, Some(done.run.id));
    let called = entries(&before, "call").await;
    let expected = ("ann", "tool", Some("slow::write"), Ruling::Allow);
    assert_eq!(called.iter().map(told).collect::<Vec<_>>(), [expected]);
    assert!(called[0].arguments.is_some() && called[0].arguments != started[0].arguments);
    before.engine.stop().await;
    drop(before);
    let after = world(folder.path(), journaled).await;
    after.engine.audits().note_start().await.unwrap();
    for chain in [ChainName::of(&caller().realm), ChainName::server()] {
        let seen = after.engine.audits().verify(&caller(), &chain, &[], 0).await.unwrap();
        assert!(seen.rows > 0 && seen.flaws == 0 && seen.unchecked == 0, "{seen:?}");
    }
    let page = PageRequest { cursor: None, limit: 1 };
    let server = ChainName::server();
    let every = AuditFilter::default();
    let found = after.engine.audits().entries(&caller(), &server, &every, &page).await.unwrap();
    let heads = &found.items[0].entry.detail.as_ref().unwrap()["heads"];
    assert!(heads["default"].as_str().unwrap().contains(':'), "{heads}");
}

/// How soon what no journal has is in the audit: 200 ms, and much later on a busy machine.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn unjournaled_decisions_are_audited_in_batches_and_journaled_ones_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let rules = AuditRules { unjournaled: true, reads: true, strict: false };
    let world = world(folder.path(), rules).await;
    world.permits.add_permits(2);
    // With the commit of its events: who learns of the run finds it there.
    world.run("write", json!({"n": 1}), "s").await;
    for act in ["run", "call"] {
        assert!(!written(&world, act).await.is_empty(), "no `{act}` of a journaled run");
    }
    let journaled = written(&world, "call").await.len();
    let caller = caller();
    let tool = "slow::read".into();
    world.engine.tools().call(&caller, &tool, json!({}), WAIT_MS).await.unwrap();
    let decided = Instant::now();
    while written(&world, "call").await.len() == journaled {
        let waited = decided.elapsed();
        assert!(waited < SOON, "a call without a journal is not in the audit after {waited:?}");
        tokio::time::sleep(LOOK).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_audited_with_its_giver() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), STRICT).await;
    let request = world.request("ask", json!({}), "s");
    let waits = world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    let ask = waits.asks[0].row.ask.id;
    let reply = Reply::Clarify { answer: Some(json!("yes")) };
    let via = Via::new("rest /api/v1/asks/{id}".to_owned(), None);
    let bob = Caller { actor: Some("eve".into()), via, ..Caller::new("default", "bob") };
    world.engine.asks().reply(&bob, ask, reply, None, WAIT_MS).await.unwrap();
    let answered = entries(&world, "answer").await;
    assert_eq!(answered.len(), 1);
    let entry = &answered[0];
    assert_eq!(told(entry).0, "bob");
    assert_eq!((entry.ask, entry.reply.as_deref()), (Some(ask), Some("answered")));
    assert_eq!(entry.actor.as_deref(), Some("eve"));
    assert_eq!(entry.door.as_deref(), Some("rest /api/v1/asks/{id}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_ask_is_audited_with_who_cancelled_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), STRICT).await;
    let request = world.request("ask", json!({}), "s");
    let waits = world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    let bob = Caller::new("default", "bob");
    world.engine.runs().cancel(&bob, waits.run.id).await.unwrap();
    let withdrawn = entries(&world, "ask.withdraw").await;
    let expected = ("bob", "ask", Some("clarify"), Ruling::Allow);
    assert_eq!(withdrawn.iter().map(told).collect::<Vec<_>>(), [expected]);
    let ask = waits.asks[0].row.ask.id;
    let entry = &withdrawn[0];
    assert_eq!((entry.ask, entry.run), (Some(ask), Some(waits.run.id)));
    assert_eq!(entries(&world, "answer").await, [], "nobody answered");
}

/// What policy says from now on.
struct Closing(AtomicBool);

impl Policy for Closing {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let is_closed = self.0.load(Ordering::SeqCst);
        match request.act {
            // Some calls are allowed: the tool is still there, and policy is what refuses this one.
            Act::Call if is_closed && request.context.arguments.is_some() => {
                let denied = Decision::from(Verdict::Deny("it is closed".to_owned()));
                Decision { policies: vec!["closed".into()], ..denied }
            }
            _ => Decision::allow(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn denials_of_an_active_run_are_audited_with_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let policy = Arc::new(Closing(AtomicBool::new(false)));
    let judge = policy.clone();
    let closing = |parts: Parts| Parts { policy: judge, ..parts };
    let world = World::changed(folder.path(), &[ASK_AND_WRITE], closing).await;
    world.permits.add_permits(1);
    let request = world.request("ask_and_write", json!({}), "s");
    let waits = world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    policy.0.store(true, Ordering::SeqCst);
    let reply = Reply::Clarify { answer: Some(json!("yes")) };
    let ask = waits.asks[0].row.ask.id;
    world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    let called = entries(&world, "call").await;
    let denied = ("ann", "tool", Some("slow::write"), Ruling::Deny);
    assert_eq!(called.iter().map(told).collect::<Vec<_>>(), [denied]);
    assert_eq!(called[0].run, Some(waits.run.id));
    assert_eq!(called[0].policies, vec![Arc::<str>::from("closed")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_gets_the_head_of_a_chain_when_it_moved() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), STRICT).await;
    world.permits.add_permits(2);
    let chain = ChainName::of(&caller().realm);
    let sink = Scripted::taking();
    send(&world, "kept", &sink, SinkRules::default()).await;
    let rules = HeadRules { chains: vec![chain.clone()], every_ms: 10 };
    world.engine.feed().keep_sending_heads(&caller().realm, "kept", rules);
    let heads = || {
        let taken = sink.taken.lock().unwrap();
        let heads = taken.iter().filter(|event| event.kind == "waypost.audit.head.v1");
        heads.map(|event| event.data["head"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for count in 1..=2 {
        world.run("write", json!({}), "s").await;
        world.until("a head", |_| heads().len() >= count).await;
    }
    let kept: Head = heads()[0].parse().unwrap();
    let seen = world.engine.audits().verify(&caller(), &chain, &[kept], 0).await.unwrap();
    assert_eq!(seen.flaws, 0, "{seen:?}");
    let known = [Head { seq: 999, ..kept }];
    let seen = world.engine.audits().verify(&caller(), &chain, &known, 0).await.unwrap();
    assert!(matches!(seen.found[..], [Flaw::Older { known: 999, .. }]), "{seen:?}");
}

/// A copy of a folder that nobody holds.
fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (source, target) =
            entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        match source.is_dir() {
            true => copied(&source, &target),
            false => {
                std::fs::copy(&source, &target).unwrap();
            }
        }
    }
}

/// How often is run what a copy does not have: it has more rows than those that looking at a chain
/// writes, each of which may come before the chain is read or after.
const RUNS_BEHIND: u64 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_is_found_by_the_head_that_a_sink_got() {
    let folder = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let before = world(folder.path(), STRICT).await;
    before.permits.add_permits(1);
    before.run("write", json!({}), "before").await;
    let chain = ChainName::of(&caller().realm);
    let rows = before.engine.audits().verify(&caller(), &chain, &[], 0).await.unwrap().rows;
    before.crash().await;
    copied(folder.path(), copy.path());

    let after = world(folder.path(), STRICT).await;
    let sink = Scripted::taking();
    send(&after, "kept", &sink, SinkRules::default()).await;
    for _ in 0..RUNS_BEHIND {
        after.permits.add_permits(1);
        after.run("write", json!({}), "after").await;
    }
    let rules = HeadRules { chains: vec![chain.clone()], every_ms: 10 };
    after.engine.feed().keep_sending_heads(&caller().realm, "kept", rules);
    let head = || {
        let taken = sink.taken.lock().unwrap();
        let head = taken.iter().rev().find(|event| event.kind == "waypost.audit.head.v1")?;
        // One of before those runs tells nothing.
        let is_behind = |head: &Head| head.seq >= rows + RUNS_BEHIND;
        head.data["head"].as_str()?.parse::<Head>().ok().filter(is_behind)
    };
    after.until("the head of the audit to get out", |_| head().is_some()).await;
    let kept = head().unwrap();
    after.crash().await;

    let older = world(copy.path(), STRICT).await;
    let found = async |known: &[Head]| {
        older.engine.audits().verify(&caller(), &chain, known, 0).await.unwrap().found
    };
    let flaws = found(&[kept]).await;
    assert!(matches!(flaws[..], [Flaw::Older { .. }]), "{flaws:?}");
    assert_eq!(found(&[]).await, [], "the chain itself does not tell");
    // It continues, and has other rows than there were.
    for _ in 0..RUNS_BEHIND {
        older.permits.add_permits(1);
        older.run("write", json!({}), "instead").await;
    }
    assert_eq!(found(&[kept]).await, [Flaw::Other { seq: kept.seq }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unjournaled_decisions_are_audited_and_denials_always() {
    for reads in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let world = world(folder.path(), AuditRules { reads, ..STRICT }).await;
        world.permits.add_permits(1);
        let tools = world.engine.tools();
        tools.call(&caller(), &"slow::read".into(), json!({"n": 1}), WAIT_MS).await.unwrap();
        let unseen = tools.call(&caller(), &"secret::write".into(), json!({}), WAIT_MS).await;
        assert!(unseen.is_err());
        let kept = entries(&world, "call").await;
        let denied = ("ann", "tool", Some("secret::write"), Ruling::Deny);
        let read = ("ann", "tool", Some("slow::read"), Ruling::Allow);
        let expected = if reads { vec![read, denied] } else { vec![denied] };
        assert_eq!(kept.iter().map(told).collect::<Vec<_>>(), expected);
        let missing = SessionRef::Key { key: "none".into(), space: None };
        assert!(world.engine.sessions().get(&caller(), &missing).await.is_err());
        assert_eq!(entries(&world, "read").await, [], "there was nothing to decide about");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn local_mode_audits_journaled_decisions_only() {
    let folder = tempfile::tempdir().unwrap();
    let local = |parts: Parts| Parts { policy: Arc::new(AllowAll), ..parts };
    let world = World::changed(folder.path(), &[READ], local).await;
    world.permits.add_permits(2);
    let tools = world.engine.tools();
    tools.call(&caller(), &"slow::read".into(), json!({"n": 1}), WAIT_MS).await.unwrap();
    assert_eq!(entries(&world, "call").await, []);
    let request = world.request("read", json!({}), "s");
    world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    assert_eq!(entries(&world, "call").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_a_session_without_a_run_is_audited() {
    let folder = tempfile::tempdir().unwrap();
    let journaled = AuditRules { unjournaled: false, reads: true, strict: false };
    let world = world(folder.path(), journaled).await;
    let row = world.engine.sessions().create(&caller(), Some("mine".to_owned())).await.unwrap();
    let id = row.id.to_string();
    let made = entries(&world, "run").await;
    let expected = ("ann", "session", Some(id.as_str()), Ruling::Allow);
    assert_eq!(made.iter().map(told).collect::<Vec<_>>(), [expected]);
    // One that was there already was not made again.
    let again = world.engine.sessions().create(&caller(), Some("mine".to_owned())).await;
    assert!(again.is_err());
    assert_eq!(entries(&world, "run").await.len(), 1);
}
