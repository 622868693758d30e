//! What observers see: each thing that ended, where it stands in its trace, no content unless they
//! want it, and the same trace after a restart.

use crate::model::{Scripted, calls, text};
use crate::world::{WAIT_MS, World, caller};
use engine::{
    CallReport, CallRequest, IdempotencyKey, Models, RunMetadata, RunReport, RunRequest,
    RunSession, RunTarget,
};
use kernel::ask::{AskBody, CallDecision, FixAction, Reply};
use kernel::contracts::observe::{Observation, ObservedWork, Observer};
use kernel::values::ids::ContentHash;
use kernel::values::trace::TraceParent;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

const HELPER: &str = "refName: helper\nllmConfigRef: fast\nenabledTools: ['slow::*']\n\
    approve: ['slow::write']\n";
const WORK: &str = "planId: work\nsteps: [{id: look, type: tool_call, toolId: 'slow::read', \
    arguments: {word: {jsonPath: $.promptInput.word}}, saveAs: out, nextStepId: think}, \
    {id: think, type: agent, agent: helper, input: {jsonPath: $.promptInput.word}, saveAs: answer, \
    nextStepId: end}, {id: end, type: final_response, message: ok}]";
const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {jsonPath: $.promptInput}, saveAs: out, nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Keeps all that it sees.
#[derive(Default)]
struct Watcher {
    seen: Mutex<Vec<Observation>>,
    samples: bool,
    content: bool,
}

impl Observer for Watcher {
    fn records_traces(&self) -> bool {
        true
    }

    fn samples(&self, _trace: u128, caller: Option<bool>) -> Option<bool> {
        Some(caller.unwrap_or(self.samples))
    }

    fn wants_content(&self) -> bool {
        self.content
    }

    fn saw(&self, seen: &Observation) {
        self.seen.lock().unwrap().push(seen.clone());
    }
}

impl Watcher {
    fn new(samples: bool, content: bool) -> Arc<Self> {
        Arc::new(Self { samples, content, ..Self::default() })
    }

    fn all(&self) -> Vec<Observation> {
        self.seen.lock().unwrap().clone()
    }
}

fn name(seen: &Observation) -> String {
    let ending = seen.error.as_deref().map(|error| format!(" {error}")).unwrap_or_default();
    match &seen.work {
        ObservedWork::Run { plan, status, .. } => format!("run {plan} {status}{ending}"),
        ObservedWork::Agent { agent, turns, calls, .. } => {
            format!("agent {agent} {turns} {calls}{ending}")
        }
        ObservedWork::Turn { model, kind, .. } => format!("turn {model} {kind}{ending}"),
        ObservedWork::Call { tool, outcome, .. } => format!("call {tool} {outcome}{ending}"),
        ObservedWork::Wait { kind, ending, .. } => format!("wait {kind} {ending}"),
    }
}

fn names(all: &[Observation]) -> Vec<String> {
    all.iter().map(name).collect()
}

fn span(seen: &Observation) -> u64 {
    seen.trace.unwrap_or_else(|| panic!("{seen:?} is not traced")).span
}

async fn world(folder: &Path, plan: &str, models: Models, watcher: &Arc<Watcher>) -> World {
    let world = World::observed(folder, (&[plan], &[HELPER]), models, watcher.clone()).await;
    world.permits.add_permits(9);
    world
}

/// Says yes to the one open ask.
async fn approve(world: &World, waiting: &RunReport) -> RunReport {
    decide(world, waiting, true).await
}

/// Says yes or no to it.
async fn decide(world: &World, waiting: &RunReport, approve: bool) -> RunReport {
    let ask = &waiting.asks[0].row.ask;
    let AskBody::Approve { calls } = &ask.body else { panic!("{ask:?}") };
    let decision = |call: &kernel::ask::AskedCall| CallDecision {
        call_id: call.call_id,
        approve,
        feedback: (!approve).then(|| "not now".to_owned()),
        arguments: None,
    };
    let reply = Reply::Approve { decisions: calls.iter().map(decision).collect() };
    world.engine.asks().reply(&caller(), ask.id, reply, None, WAIT_MS).await.unwrap().run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_found_at_commit_is_not_observed_as_a_run() {
    const SAY: &str = "planId: say\nsteps: [{id: end, type: final_response, message: hello}]";
    let folder = tempfile::tempdir().unwrap();
    let watcher = Watcher::new(true, false);
    let world = world(folder.path(), SAY, Scripted::new([]).models(), &watcher).await;
    let request = || RunRequest {
        target: RunTarget::Plan("say".into()),
        input: json!({}),
        session: RunSession::New,
        once: Some(IdempotencyKey::new(
            "POST /runs".to_owned(),
            "k".to_owned(),
            ContentHash::of(b"body"),
        )),
        about: RunMetadata::default(),
    };
    for replayed in [false, true, true] {
        let report = world.engine.runs().start(&caller(), request(), WAIT_MS).await.unwrap();
        assert_eq!(report.replayed, replayed);
    }
    world.at_rest().await;
    assert_eq!(names(&watcher.all()), ["run say completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_one_trace_across_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let before = Watcher::new(true, false);
    let first = Scripted::new([calls([("slow::write", json!({"word": "hush"}))])]);
    let world_before = world(folder.path(), WORK, first.models(), &before).await;
    let waiting = world_before.run("work", json!({"word": "hush"}), "s").await;
    assert_eq!(waiting.run.status.name(), "waiting", "{:?}", waiting.run);
    let sent = world_before.ledger.1.lock().unwrap().clone();
    world_before.crash().await;

    let after = Watcher::new(true, false);
    let second = Scripted::new([text("hush, it is done")]);
    let world_after = world(folder.path(), WORK, second.models(), &after).await;
    let done = approve(&world_after, &waiting).await;
    assert_eq!(done.run.status.name(), "completed", "{:?}", done.run);

    let early = before.all();
    let late = after.all();
    assert_eq!(names(&early), ["call slow::read ok", "turn fast act"]);
    let expected = [
        "wait approve decided", "call slow::write ok", "turn fast act", "agent helper 2 1",
        "run work completed",
    ];
    assert_eq!(names(&late), expected);
    let all: Vec<&Observation> = early.iter().chain(&late).collect();
    let spans: BTreeSet<u64> = all.iter().map(|seen| span(seen)).collect();
    assert_eq!(spans.len(), 7, "each has a span of its own");
    for seen in &all {
        let trace = seen.trace.unwrap();
        assert_eq!((trace.trace, trace.sampled), (done.run.id.0, true), "{seen:?}");
        assert_eq!(seen.run, Some(done.run.id));
        assert_eq!((seen.subject.as_deref(), &seen.actor), (Some("ann"), &None), "{seen:?}");
        assert!(seen.began <= seen.ended, "{seen:?}");
    }
    let agent = &late[3];
    let run = &late[4];
    assert_eq!((run.parent, run.began), (None, done.run.started_at), "the trace begins with it");
    assert_eq!((early[0].parent, agent.parent), (Some(span(run)), Some(span(run))));
    for part in [&early[1], &late[0], &late[1], &late[2]] {
        assert_eq!(part.parent, Some(span(agent)), "{}", name(part));
    }
    assert!(agent.began <= early[1].began, "an agent begins before its first turn");

    // The next callee or person gets the span that waits for it.
    assert_eq!((sent, first.prompt(0).trace), (vec![early[0].trace], early[1].trace));
    assert_eq!(second.prompt(0).trace, late[2].trace);
    let ObservedWork::Run { turns, agent_step, .. } = run.work else { panic!("{run:?}") };
    assert_eq!((turns, agent_step), (2, true));
    let told = format!("{all:?}");
    assert!(!told.contains("hush"), "content was told: {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_trace_goes_on_with_its_decision() {
    let caller_span: TraceParent = PARENT.parse().unwrap();
    for sampled in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let watcher = Watcher::new(!sampled, false);
        let world = world(folder.path(), READ, Models::default(), &watcher).await;
        let mut request = world.request("read", json!({"n": 1}), "s");
        request.about.trace = Some(TraceParent { sampled, ..caller_span });
        world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
        let sent = world.ledger.1.lock().unwrap()[0].unwrap();
        assert_eq!((sent.trace, sent.sampled), (caller_span.trace, sampled));
        assert_ne!(sent.span, caller_span.span, "the call has a span of its own");
        let all = watcher.all();
        assert_eq!(names(&all), ["call slow::read ok", "run read completed"]);
        if sampled {
            assert_eq!((all[0].trace, all[1].parent), (Some(sent), Some(caller_span.span)));
            assert_eq!(all[0].parent, Some(span(&all[1])));
        } else {
            assert!(all.iter().all(|seen| seen.trace.is_none() && seen.parent.is_none()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unrecorded_work_is_observed_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let watcher = Watcher::new(false, false);
    let world = world(folder.path(), READ, Models::default(), &watcher).await;
    let done = world.run("read", json!({"n": 1}), "s").await;
    let all = watcher.all();
    assert_eq!(names(&all), ["call slow::read ok", "run read completed"]);
    assert!(all.iter().all(|seen| seen.trace.is_none() && seen.parent.is_none()), "{all:?}");
    assert_eq!(world.ledger.1.lock().unwrap().clone(), [None]);
    let key = kernel::contracts::SessionRef::Key { key: "s".into(), space: None };
    let events = world.engine.sessions().events(&caller(), &key, 0, 100).await.unwrap();
    let started = events.iter().find(|(_, event)| event.contains("run.started")).unwrap();
    assert!(!started.1.contains("trace"), "{}: {}", done.run.id, started.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_read_is_observed_as_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let watcher = Watcher::new(false, false);
    let world = world(folder.path(), READ, Models::default(), &watcher).await;
    let parent: TraceParent = PARENT.parse().unwrap();
    for trace in [Some(parent), None] {
        let request = world.call_request("slow::read", json!({"n": 1}));
        let report =
            world.engine.tools().call_with(&caller(), CallRequest { trace, ..request }).await;
        assert!(matches!(report, Ok(CallReport::Done(_))), "{report:?}");
    }
    let failing = world.call_request("slow::read", json!({"fail": true}));
    world.engine.tools().call_with(&caller(), failing).await.unwrap_err();
    let all = watcher.all();
    let expected = ["call slow::read ok", "call slow::read ok", "call slow::read failed Boom"];
    assert_eq!(names(&all), expected);
    assert!(all.iter().all(|seen| seen.session.is_none() && seen.run.is_none()));
    assert!(all.iter().all(|seen| seen.subject.as_deref() == Some("ann")), "{all:?}");
    let sent = world.ledger.1.lock().unwrap().clone();
    assert_eq!((all[0].trace, all[0].parent), (sent[0], Some(parent.span)));
    assert_eq!(sent[0].map(|span| span.trace), Some(parent.trace));
    assert_eq!((all[1].trace, &sent[1..]), (None, &[None, None][..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_try_of_a_call_is_a_span() {
    let folder = tempfile::tempdir().unwrap();
    let watcher = Watcher::new(true, false);
    let world = world(folder.path(), READ, Models::default(), &watcher).await;
    let stuck = world.run("read", json!({"fail": true}), "s").await;
    let ask = stuck.asks[0].row.ask.id;
    let retry = Reply::fix(FixAction::Retry);
    let report = world.engine.asks().reply(&caller(), ask, retry, None, WAIT_MS).await.unwrap();
    let ask = report.run.asks[0].row.ask.id;
    let settle = crate::fix(FixAction::Settle, Some(json!("by hand")));
    world.engine.asks().reply(&caller(), ask, settle, None, WAIT_MS).await.unwrap();
    let all = watcher.all();
    let expected = [
        "call slow::read failed Boom",
        "wait fix decided",
        "call slow::read failed Boom",
        "wait fix decided",
        "run read completed",
    ];
    assert_eq!(names(&all), expected, "what a person settled is no call");
    assert_ne!(span(&all[0]), span(&all[2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_leaves_no_part_without_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let watcher = Watcher::new(true, false);
    let model = Scripted::new([calls([("slow::write", json!({"n": 1}))])]);
    let world = world(folder.path(), WORK, model.models(), &watcher).await;
    let waiting = world.run("work", json!({"word": "a"}), "s").await;
    world.engine.runs().cancel(&caller(), waiting.run.id).await.unwrap();
    let all = watcher.all();
    let spans: BTreeSet<u64> = all.iter().map(span).collect();
    let told = names(&all);
    for expected in ["wait approve withdrawn", "agent helper 1 1 CutOff", "run work cancelled"] {
        assert!(told.iter().any(|name| name == expected), "{expected} is not in {told:?}");
    }
    for seen in &all {
        assert!(seen.parent.is_none_or(|parent| spans.contains(&parent)), "{}", name(seen));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_sent_only_to_observers_that_want_it() {
    let folder = tempfile::tempdir().unwrap();
    let watcher = Watcher::new(true, true);
    let model = Scripted::new([text("done with it")]);
    let world = world(folder.path(), WORK, model.models(), &watcher).await;
    world.run("work", json!({"word": "hush"}), "s").await;
    let all = watcher.all();
    let content = |seen: &Observation, key: &str| {
        let found = seen.content.iter().find(|(name, _)| *name == key);
        found.unwrap_or_else(|| panic!("no {key} in {seen:?}")).1.clone()
    };
    assert_eq!(content(&all[0], "gen_ai.tool.call.arguments"), "{\"word\":\"hush\"}");
    assert_eq!(content(&all[0], "gen_ai.tool.call.result"), "{\"got\":{\"word\":\"hush\"}}");
    assert!(content(&all[1], "gen_ai.input.messages").contains("hush"));
    let said = content(&all[1], "gen_ai.output.messages");
    assert!(said.contains("done with it") && said.contains("\"finish_reason\":\"stop\""), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn observations_name_their_step_and_refusals() {
    let folder = tempfile::tempdir().unwrap();
    let watcher = Watcher::new(false, false);
    let model = Scripted::new([calls([("slow::write", json!({"n": 1}))]), text("then not")]);
    let world = world(folder.path(), WORK, model.models(), &watcher).await;
    let waiting = world.run("work", json!({"word": "a"}), "s").await;
    let done = decide(&world, &waiting, false).await;
    assert_eq!(done.run.status.name(), "completed", "{:?}", done.run);
    let all = watcher.all();
    let steps: Vec<(String, String)> = all
        .iter()
        .map(|seen| {
            let step = seen.at.as_ref().map(|at| format!("{}.{}", at.plan, at.step));
            (name(seen), step.unwrap_or_default())
        })
        .collect();
    let expected = [
        ("call slow::read ok", "work.look"),
        ("turn fast act", "work.think"),
        ("wait approve declined", "work.think"),
        ("turn fast act", "work.think"),
        ("agent helper 2 1", "work.think"),
        ("run work completed", ""),
    ];
    let expected = expected.map(|(name, step)| (name.to_owned(), step.to_owned()));
    assert_eq!(steps, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_named_like_a_conversation_is_not_one() {
    let folder = tempfile::tempdir().unwrap();
    let watcher = Watcher::new(false, false);
    let world = world(folder.path(), READ, Models::default(), &watcher).await;
    let plan = json!({"planId": "agent/boss",
        "steps": [{"id": "end", "type": "final_response", "message": "hi"}]});
    let mut request = world.request("read", json!({}), "s");
    request.target = RunTarget::Inline(plan);
    world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    let all = watcher.all();
    let ObservedWork::Run { agent, .. } = &all[0].work else { panic!("{all:?}") };
    assert_eq!(*agent, None);
}
