//! Contexts: several runs of one session at the same time. What they share and what they do not,
//! who waits for whom, and what a crash, a copy and retention leave of them.

use crate::model::{Scripted, calls, text, told};
use crate::world::{WAIT_MS, World, caller};
use engine::{
    ContextRuns, IdempotencyKey, RefusalKind, RunReport, RunRequest, RunSession, RunStream,
    RunTarget, RunUpdate,
};
use kernel::ask::{AskBody, CallDecision, Reply};
use kernel::contracts::{AskFilter, PageRequest, RunPage, SessionRef};
use kernel::event::Fact;
use kernel::limits::Limits;
use kernel::session::RunStatus;
use kernel::tool::call::Caller;
use kernel::values::ids::{ContentHash, PlanId, RunId, Space};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: {jsonPath: $.promptInput.n}}, saveAs: out, nextStepId: end}, \
    {id: end, type: final_response, message: {jsonPath: $.context.out}}]";
const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: end}, {id: end, type: final_response, message: {jsonPath: \
    $.context.human_input}}]";
/// Answers with what an earlier run left.
const LEFT: &str = "planId: left\nsteps: [{id: end, type: final_response, message: {jsonPath: \
    $.context.human_input, default: nothing}}]";
const HELPER: &str = "refName: helper\nllmConfigRef: fast\nenabledTools: ['slow::*']\n\
    approve: ['slow::write']\n";
const PLANS: &[&str] = &[READ, ASK, LEFT];

fn in_context(plan: &str, input: Value) -> RunRequest {
    RunRequest {
        target: RunTarget::Plan(PlanId::from(plan)),
        input,
        session: RunSession::Context("c".to_owned()),
        once: None,
        about: Default::default(),
    }
}

/// The context, as its owner names it.
fn context() -> SessionRef {
    SessionRef::Key { key: "c".into(), space: Some(Space::context()) }
}

async fn begin(world: &World, plan: &str, input: Value) -> RunReport {
    world.engine.runs().start(&caller(), in_context(plan, input), 0).await.unwrap()
}

async fn run(world: &World, plan: &str, input: Value) -> RunReport {
    world.engine.runs().start(&caller(), in_context(plan, input), WAIT_MS).await.unwrap()
}

/// Says something to the agent and does not wait.
async fn say(world: &World, words: &str) -> RunReport {
    begin(world, "agent/helper", json!({"user_request": words})).await
}

async fn answer(world: &World, asking: &RunReport, words: &str) -> RunReport {
    let ask = asking.asks[0].row.ask.id;
    let reply = Reply::Clarify { answer: Some(json!(words)) };
    world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap().run
}

async fn talking(folder: &Path, model: &Arc<Scripted>) -> World {
    World::talking(folder, (PLANS, &[HELPER]), Limits::default(), model.models()).await
}

/// The types of the events of a run, until it rests or ends, and how it stands then.
async fn followed(stream: &mut RunStream) -> (Vec<String>, &'static str) {
    let mut types = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_millis(WAIT_MS), stream.next());
        match next
            .await
            .unwrap_or_else(|_| panic!("waited in vain for the run's next event"))
            .unwrap()
            .unwrap()
        {
            RunUpdate::Event { body, .. } => {
                let event: Value = serde_json::from_str(&body).unwrap();
                types.push(event["type"].as_str().unwrap().to_owned());
            }
            RunUpdate::Rest(report) | RunUpdate::End(report) => {
                return (types, report.run.status.name());
            }
            RunUpdate::Snapshot(_) | RunUpdate::Delta(_) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_context_proceed_and_end_independently() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), PLANS).await;
    let first = begin(&world, "read", json!({"n": 1})).await;
    let second = begin(&world, "read", json!({"n": 2})).await;
    let asking = run(&world, "ask", json!({})).await;
    assert_eq!(first.session.id, second.session.id);
    assert_eq!((asking.run.no, asking.run.status.name()), (3, "waiting"));
    world.until("both calls to be sent", |world| world.sent() == 2).await;
    let cancelled = world.engine.runs().cancel(&caller(), first.run.id).await.unwrap();
    assert_eq!(cancelled.run.status.name(), "cancelled");
    world.permits.add_permits(2);
    let ended = world.until_status(second.run.id, "completed").await;
    assert_eq!(ended.run.answer, Some(json!({"got": {"n": 2}})));
    // The session tells of the newest run that is active, else of the one that ended last.
    assert_eq!(ended.session.run, Some(asking.run.id));
    let answered = answer(&world, &asking, "Ann").await;
    assert_eq!(answered.run.answer, Some(json!("Ann")));
    let over = world.engine.sessions().get(&caller(), &context()).await.unwrap();
    assert_eq!((over.status.name(), over.run), ("completed", Some(asking.run.id)));
    for (run, status) in [(first.run.id, "cancelled"), (second.run.id, "completed")] {
        let report = world.engine.runs().report(&caller(), run).await.unwrap();
        assert_eq!(report.run.status.name(), status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_run_are_followed_without_those_of_the_runs_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), PLANS).await;
    let asking = run(&world, "ask", json!({})).await;
    // Events of another run stand between those of this one.
    let other = run(&world, "left", json!({})).await;
    answer(&world, &asking, "Ann").await;
    for (report, decided) in [(asking, 1), (other, 0)] {
        let id = report.run.id;
        let mut events = world.engine.runs().follow_events(&caller(), id).await.unwrap();
        let mut facts = Vec::new();
        while let Some(event) = events.try_next().await.unwrap() {
            facts.push(event.fact.clone());
        }
        let begins = |fact: &Fact| matches!(fact, Fact::RunStarted { run, .. } if *run == id);
        let ends = |fact: &Fact| matches!(fact, Fact::RunEnded { run, .. } if *run == id);
        assert!(facts.first().is_some_and(begins) && facts.last().is_some_and(ends), "{facts:?}");
        let decisions = facts.iter().filter(|fact| matches!(fact, Fact::AskDecided { .. })).count();
        assert_eq!(decisions, decided, "{facts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_one_of_several_runs_returns_that_run() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), PLANS).await;
    let waiting = [1, 2, 3].map(|n| {
        let engine = world.engine.clone();
        let request = in_context("read", json!({"n": n}));
        tokio::spawn(async move { engine.runs().start(&caller(), request, WAIT_MS).await })
    });
    world.until("all calls to be sent", |world| world.sent() == 3).await;
    // They come back at once, so that several runs end before anyone is notified.
    world.permits.add_permits(3);
    for (n, waiting) in (1..).zip(waiting) {
        let report = waiting.await.unwrap().unwrap();
        assert_eq!(report.run.answer, Some(json!({"got": {"n": n}})), "{:?}", report.run);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_sees_the_results_of_runs_that_ended_before_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), PLANS).await;
    let asking = run(&world, "ask", json!({})).await;
    assert_eq!(run(&world, "left", json!({})).await.run.answer, Some(json!("nothing")));
    answer(&world, &asking, "Ann").await;
    assert_eq!(run(&world, "left", json!({})).await.run.answer, Some(json!("Ann")));
}

#[tokio::test(flavor = "multi_thread")]
async fn active_runs_of_a_context_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { context_runs_max: 2, ..Limits::default() };
    let world = World::with_limits(folder.path(), PLANS, limits).await;
    let first = run(&world, "ask", json!({})).await;
    run(&world, "ask", json!({})).await;
    let full = world.engine.runs().start(&caller(), in_context("ask", json!({})), WAIT_MS).await;
    let full = full.unwrap_err();
    assert_eq!((full.code.name(), full.kind()), ("context_runs_max", RefusalKind::TooMany));
    answer(&world, &first, "Ann").await;
    assert_eq!(run(&world, "ask", json!({})).await.run.no, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_of_another_owner_is_another_context() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), PLANS).await;
    let anns = run(&world, "ask", json!({})).await;
    let bob = Caller::new("default", "bob");
    let request = in_context("ask", json!({}));
    let bobs = world.engine.runs().start(&bob, request, WAIT_MS).await.unwrap();
    assert_ne!(anns.session.id, bobs.session.id);
    assert_eq!((bobs.run.no, bobs.session.owner.as_deref()), (1, Some("bob")));
    let seen = world.engine.sessions().get(&bob, &context()).await.unwrap();
    assert_eq!(seen.id, bobs.session.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_lists_its_own_runs_in_the_order_of_their_changes() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), PLANS).await;
    let first = run(&world, "ask", json!({})).await;
    world.at_rest().await;
    let second = run(&world, "ask", json!({})).await;
    world.at_rest().await;
    let elsewhere = RunRequest {
        session: RunSession::Context("d".to_owned()),
        ..in_context("left", json!({}))
    };
    let third = world.engine.runs().start(&caller(), elsewhere, WAIT_MS).await.unwrap();
    world.run("ask", json!({}), "no context").await;
    let me = caller();
    let list = async |wanted: ContextRuns, limit: usize| {
        let mut cursor = None;
        let mut seen = Vec::new();
        loop {
            let page = PageRequest { cursor, limit };
            let RunPage { page, total } =
                world.engine.runs().in_contexts(&me, &wanted, &page).await.unwrap();
            seen.extend(page.items.iter().map(|run| run.row.id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                assert_eq!(total, seen.len() as u64);
                return seen;
            }
        }
    };
    let one = first.run.id;
    let two = second.run.id;
    let three = third.run.id;
    assert_eq!(list(ContextRuns::default(), 1).await, [three, two, one]);
    world.at_rest().await;
    answer(&world, &first, "Ann").await;
    assert_eq!(list(ContextRuns::default(), 2).await, [one, three, two]);
    let context = |name: &str| Some(name.to_owned());
    let of = ContextRuns { context: context("c"), ..ContextRuns::default() };
    assert_eq!(list(of.clone(), 9).await, [one, two]);
    let waiting = ContextRuns { statuses: vec![RunStatus::Waiting], ..of };
    assert_eq!(list(waiting, 9).await, [two]);
    let unknown = ContextRuns { context: context("e"), ..ContextRuns::default() };
    assert_eq!(list(unknown, 9).await, []);
    let bob = Caller::new("default", "bob");
    let page = PageRequest { cursor: None, limit: 9 };
    let of_bob = world.engine.runs().in_contexts(&bob, &ContextRuns::default(), &page).await;
    assert_eq!(of_bob.unwrap().total, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_its_run_while_others_are_active() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), PLANS).await;
    let once =
        IdempotencyKey::new("message".to_owned(), "m-1".to_owned(), ContentHash::of(b"body"));
    let request = RunRequest { once: Some(once), ..in_context("ask", json!({})) };
    let first = world.engine.runs().start(&caller(), request.clone(), WAIT_MS).await.unwrap();
    run(&world, "ask", json!({})).await;
    let again = world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    assert_eq!((again.run.id, again.replayed), (first.run.id, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_does_not_affect_other_runs_of_the_context() {
    const WRITE: &str = "planId: write\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
        arguments: {n: 1}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE, ASK]).await;
    let once =
        IdempotencyKey::new("message".to_owned(), "m-1".to_owned(), ContentHash::of(b"body"));
    // Its plan calls nothing, but its commit would be others', too: it is looked for before.
    let request = RunRequest { once: Some(once), ..in_context("ask", json!({})) };
    let first = world.engine.runs().start(&caller(), request.clone(), WAIT_MS).await.unwrap();
    let writing = begin(&world, "write", json!({})).await.run.id;
    world.until("a write is sent", |world| world.sent() == 1).await;
    let again = world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    assert_eq!((again.run.id, again.replayed), (first.run.id, true));
    world.permits.add_permits(1);
    world.until_status(writing, "completed").await;
    assert_eq!(world.sent(), 1, "it was sent twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_of_one_run_gets_its_events_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { page_items_max: 2, ..Limits::default() };
    let world = World::with_limits(folder.path(), PLANS, limits).await;
    let first = begin(&world, "read", json!({"n": 1})).await.run.id;
    let asking = run(&world, "ask", json!({})).await;
    let second = begin(&world, "read", json!({"n": 2})).await.run.id;
    let of = |run: RunId, after| {
        let engine = world.engine.clone();
        async move { engine.runs().follow(&caller(), run, after).await.unwrap() }
    };
    let mut early = of(asking.run.id, None).await;
    let asked = ["run.started", "ask.opened"].map(str::to_owned).to_vec();
    assert_eq!(followed(&mut early).await, (asked.clone(), "waiting"));
    world.permits.add_permits(2);
    for run in [first, second] {
        world.until_status(run, "completed").await;
        let read = [
            "run.started", "call.requested", "call.judged", "call.started", "call.finished",
            "answer.given", "run.ended",
        ];
        let mut stream = of(run, None).await;
        assert_eq!(followed(&mut stream).await, (read.map(str::to_owned).to_vec(), "completed"));
    }
    answer(&world, &asking, "Ann").await;
    let rest = ["ask.decided", "input.given", "answer.given", "run.ended"];
    let rest = rest.map(str::to_owned).to_vec();
    assert_eq!(followed(&mut early).await, (rest.clone(), "completed"));
    // One who was cut off continues after the last event that it has.
    let mut again = of(asking.run.id, Some(asking.session.seq)).await;
    assert_eq!(followed(&mut again).await, (rest.clone(), "completed"));
    let mut late = of(asking.run.id, None).await;
    assert_eq!(followed(&mut late).await, ([asked, rest].concat(), "completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_with_the_same_agent_are_serialised() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([
        calls([("slow::read", json!({"n": 1}))]),
        text("One."),
        text("Two."),
        text("Three."),
    ]);
    let world = talking(folder.path(), &model).await;
    let first = say(&world, "first").await;
    world.until("the agent's call to be sent", |world| world.sent() == 1).await;
    let second = say(&world, "second").await;
    let third = say(&world, "third").await;
    // A run that talks with nobody does not wait for them.
    assert_eq!(run(&world, "left", json!({})).await.run.status.name(), "completed");
    assert_eq!((model.asked(), second.run.status.name()), (1, "running"));
    world.engine.runs().cancel(&caller(), second.run.id).await.unwrap();
    assert_eq!(model.asked(), 1, "the third came after the first, too");
    world.permits.add_permits(1);
    assert_eq!(world.until_status(first.run.id, "completed").await.run.answer, Some(json!("One.")));
    assert_eq!(world.until_status(third.run.id, "completed").await.run.answer, Some(json!("Two.")));
    let said = told(&model.last());
    assert_eq!(said.last().unwrap(), "user: third");
    assert!(said.contains(&"user: first".to_owned()), "{said:?}");
    assert!(said.contains(&"assistant: One.".to_owned()), "{said:?}");
    assert!(!said.contains(&"user: second".to_owned()), "it was never said: {said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_one_context_have_conversations_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([
        calls([("slow::read", json!({"n": 1}))]),
        text("I am the other."),
        text("One."),
    ]);
    let agents = [HELPER, "refName: other\nllmConfigRef: fast\nenabledTools: []\n"];
    let world =
        World::talking(folder.path(), (PLANS, &agents), Limits::default(), model.models()).await;
    let first = say(&world, "first").await;
    world.until("the agent's call to be sent", |world| world.sent() == 1).await;
    let other = run(&world, "agent/other", json!({"user_request": "who are you?"})).await;
    assert_eq!(other.run.answer, Some(json!("I am the other.")));
    assert_eq!(told(&model.last()), ["user: who are you?"]);
    world.permits.add_permits(1);
    world.until_status(first.run.id, "completed").await;
    let said = told(&model.last());
    assert!(!said.iter().any(|line| line.contains("who are you?")), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_run_survives_a_crash_and_costs_nothing_while_queued() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([calls([("slow::write", json!({"n": 1}))]), text("Done.")]);
    let world = talking(folder.path(), &model).await;
    let first = say(&world, "write").await.run.id;
    let asking = world.until_status(first, "waiting").await;
    let second = say(&world, "and then?").await.run.id;
    world.at_rest().await;
    world.crash().await;

    let model = Scripted::new([text("Written."), text("Nothing.")]);
    let world = talking(folder.path(), &model).await;
    assert_eq!(world.engine.admin().recover_once().await, 0, "nothing of it moves");
    world.permits.add_permits(1);
    let ask = &asking.asks[0].row.ask;
    let AskBody::Approve { calls } = &ask.body else { panic!("{ask:?}") };
    let call_id = calls[0].call_id;
    let decision = CallDecision { call_id, approve: true, feedback: None, arguments: None };
    let reply = Reply::Approve { decisions: vec![decision] };
    world.engine.asks().reply(&caller(), ask.id, reply, None, WAIT_MS).await.unwrap();
    let answered = world.until_status(second, "completed").await;
    assert_eq!(answered.run.answer, Some(json!("Nothing.")));
    let said = told(&model.last());
    assert!(said.contains(&"assistant: Written.".to_owned()), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_run_of_a_context_is_recovered_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), PLANS).await;
    let first = begin(&world, "read", json!({"n": 1})).await.run.id;
    let second = begin(&world, "read", json!({"n": 2})).await.run.id;
    let asking = run(&world, "ask", json!({})).await;
    world.until("both calls to be sent", |world| world.sent() == 2).await;
    world.crash().await;

    let world = World::open(folder.path(), &[]).await;
    assert_eq!(world.engine.admin().recover_once().await, 1);
    world.until("both calls to be sent again", |world| world.sent() == 2).await;
    world.permits.add_permits(2);
    for run in [first, second] {
        world.until_status(run, "completed").await;
    }
    assert_eq!(answer(&world, &asking, "Ann").await.run.answer, Some(json!("Ann")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_of_a_context_has_all_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), PLANS).await;
    let first = run(&world, "ask", json!({})).await;
    let second = run(&world, "ask", json!({})).await;
    let copy = world.engine.sessions().fork(&caller(), &context(), None).await.unwrap();
    assert_eq!((copy.key.space.as_str(), copy.status.name()), ("context", "waiting"));
    answer(&world, &first, "Ann").await;
    answer(&world, &second, "Bob").await;
    let filter =
        AskFilter { session: Some(copy.id), status: Some("open".to_owned()), ..Default::default() };
    let page = PageRequest { cursor: None, limit: 10 };
    let open = world.engine.asks().list(&caller(), &filter, &page).await.unwrap().items;
    assert_eq!(open.len(), 2);
    for (asked, words) in open.iter().zip(["Eve", "Zoe"]) {
        let reply = Reply::Clarify { answer: Some(json!(words)) };
        let ask = asked.row.ask.id;
        let replied = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await;
        assert_eq!(replied.unwrap().run.run.answer, Some(json!(words)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_of_a_context_are_trimmed_together_and_conversations_stay() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([text("Hello."), text("You said hello.")]);
    let world = talking(folder.path(), &model).await;
    let asking = run(&world, "ask", json!({})).await;
    let said = run(&world, "agent/helper", json!({"user_request": "hi"})).await;
    assert_eq!(said.run.status.name(), "completed");
    world.at_rest().await;
    let pruned = world.engine.admin().prune(&caller(), 0).await.unwrap();
    assert_eq!((pruned.sessions, pruned.runs), (0, 0), "the first is still active: {pruned:?}");
    answer(&world, &asking, "Ann").await;
    let active = run(&world, "ask", json!({})).await;
    world.at_rest().await;
    let pruned = world.engine.admin().prune(&caller(), 0).await.unwrap();
    assert_eq!((pruned.sessions, pruned.runs), (0, 2), "{pruned:?}");
    let again = run(&world, "agent/helper", json!({"user_request": "what did I say?"})).await;
    assert_eq!(again.run.answer, Some(json!("You said hello.")));
    let said = ["user: hi", "assistant: Hello.", "user: what did I say?"];
    assert_eq!(told(&model.last()), said);
    assert_eq!(answer(&world, &active, "Bob").await.run.answer, Some(json!("Bob")));
}
