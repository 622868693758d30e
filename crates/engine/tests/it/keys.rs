//! Requests with a key: a repeat gets the outcome of the first, and nothing happens twice.

use crate::world::{WAIT_MS, World, caller};
use engine::{CallReport, CallRequest, IdempotencyKey, RunRequest, RunSession, RunTarget};
use kernel::ask::Reply;
use kernel::contracts::{PageRequest, SessionRef};
use kernel::journal::projection::FormerRoute;
use kernel::tool::call::Caller;
use kernel::values::ids::{ContentHash, Millis};
use serde_json::{Value, json};

const WRITE: &str = "planId: write\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {n: 1}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const SAY: &str = "planId: say\nsteps: [{id: end, type: final_response, message: hello}]";
const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: end}, \
    {id: end, type: final_response, message: '{{ context.human_input }}'}]";

fn once(route: &str, body: &Value) -> Option<IdempotencyKey> {
    let digest = ContentHash::of(body.to_string().as_bytes());
    Some(IdempotencyKey::new(route.to_owned(), "k1".to_owned(), digest))
}

fn run(plan: &str, input: Value) -> RunRequest {
    let once = once("POST /runs", &input);
    RunRequest {
        target: RunTarget::Plan(plan.into()),
        input,
        session: RunSession::New,
        once,
        about: Default::default(),
    }
}

async fn sessions(world: &World) -> usize {
    let page = PageRequest { cursor: None, limit: 50 };
    let found = world.engine.sessions().list(&caller(), &Default::default(), &page).await.unwrap();
    found.items.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_returns_the_same_run_concurrently_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    world.permits.add_permits(10);
    let mut requests = Vec::new();
    for _ in 0..8 {
        let engine = world.engine.clone();
        let request = run("write", json!({}));
        requests.push(tokio::spawn(async move {
            engine.runs().start(&caller(), request, WAIT_MS).await
        }));
    }
    let mut reports = Vec::new();
    for request in requests {
        reports.push(request.await.unwrap().unwrap());
    }
    let first = reports[0].run.id;
    assert!(reports.iter().all(|report| report.run.id == first), "two runs for one key");
    assert_eq!(reports.iter().filter(|report| !report.replayed).count(), 1);
    assert!(reports.iter().all(|report| report.run.status.name() == "completed"));
    assert_eq!((world.sent(), sessions(&world).await), (1, 1));
    world.crash().await;

    let world = World::open(folder.path(), &[]).await;
    // The plan is gone by now; what it did is not.
    let again = world.engine.runs().start(&caller(), run("write", json!({})), 0).await.unwrap();
    assert_eq!((again.run.id, again.replayed), (first, true));
    let other =
        world.engine.runs().start(&caller(), run("write", json!({"n": 2})), 0).await.unwrap_err();
    assert_eq!(other.code.name(), "idempotency_mismatch");
    let eve = kernel::tool::call::Caller { subject: "eve".into(), ..caller() };
    let refusal = world.engine.runs().start(&eve, run("write", json!({})), 0).await.unwrap_err();
    assert_ne!(refusal.code.name(), "idempotency_mismatch", "a key belongs to who sent it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commit_detects_a_repeat_of_a_plan_without_calls() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[SAY]).await;
    let me = caller();
    let start = |request: RunRequest| world.engine.runs().start(&me, request, WAIT_MS);
    let first = start(run("say", json!({"n": 1}))).await.unwrap();
    let again = start(run("say", json!({"n": 1}))).await.unwrap();
    assert_eq!((again.run.id, again.replayed), (first.run.id, true));
    assert_eq!(again.run.answer, first.run.answer);
    let other = start(run("say", json!({"n": 2}))).await.unwrap_err();
    assert_eq!(other.code.name(), "idempotency_mismatch");
    // Under its earlier route as well.
    let moved = run("say", json!({"n": 1}));
    let before = FormerRoute { route: "POST /runs".to_owned(), since: Millis(0) };
    let once = moved.once.clone().unwrap();
    let once =
        IdempotencyKey { route: "POST /runs, later".to_owned(), earlier: Some(before), ..once };
    let moved = start(RunRequest { once: Some(once), ..moved }).await.unwrap();
    assert_eq!((moved.run.id, moved.replayed), (first.run.id, true));
    assert_eq!(sessions(&world).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_key_is_found_under_its_former_route_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    world.permits.add_permits(10);
    let earlier = run("write", json!({}));
    let first = world.engine.runs().start(&caller(), earlier.clone(), WAIT_MS).await.unwrap();
    let Some(IdempotencyKey { route, key, digest, .. }) = earlier.once.clone() else {
        panic!("a key")
    };
    let row = world.engine.runs().done_before(&caller(), &earlier.once.unwrap()).await.unwrap();
    let at = row.unwrap().at;
    let since = |since| IdempotencyKey {
        earlier: Some(FormerRoute { route: route.clone(), since }),
        ..IdempotencyKey::new("POST /runs, later".to_owned(), key.clone(), digest.clone())
    };
    let found = world.engine.runs().done_before(&caller(), &since(at)).await.unwrap();
    assert_eq!(found.and_then(|row| row.run), Some(first.run.id));
    let forgotten = world.engine.runs().done_before(&caller(), &since(at.plus_ms(1))).await;
    assert_eq!(forgotten.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_the_active_run_and_a_refused_request_keeps_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    let refused =
        world.engine.runs().start(&caller(), run("no/such", json!({})), 0).await.unwrap_err();
    assert_eq!(refused.code.name(), "not_found");
    let first = world.engine.runs().start(&caller(), run("write", json!({})), 0).await.unwrap();
    let again = world.engine.runs().start(&caller(), run("write", json!({})), 0).await.unwrap();
    assert_eq!((again.run.id, again.replayed), (first.run.id, true));
    assert_eq!(again.run.status.name(), "running");
    world.permits.add_permits(1);
    let waited =
        world.engine.runs().start(&caller(), run("write", json!({})), WAIT_MS).await.unwrap();
    assert_eq!((waited.run.id, waited.run.status.name()), (first.run.id, "completed"));
    assert_eq!(world.sent(), 1);
    let session = SessionRef::Id(first.session.id);
    world.engine.sessions().remove(&caller(), &session).await.unwrap();
    let gone = world.engine.runs().start(&caller(), run("write", json!({})), 0).await.unwrap_err();
    assert_eq!(gone.code.name(), "gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_reply_gets_what_came_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let asking = world.run("ask", json!({}), "s").await;
    let ask = asking.asks[0].row.ask.id;
    let route = format!("POST /asks/{ask}");
    let reply = |words: &str| Reply::Clarify { answer: Some(json!(words)) };
    let send = |words: &'static str| {
        let engine = world.engine.clone();
        let once = once(&route, &json!(words));
        let reply = reply(words);
        async move { engine.asks().reply(&caller(), ask, reply, once, WAIT_MS).await }
    };
    let first = send("Ann").await.unwrap();
    let again = send("Ann").await.unwrap();
    assert!(!first.replayed && again.replayed);
    assert_eq!(again.run.run.answer, Some(json!("Ann")));
    assert_eq!(again.ask.row.decision, first.ask.row.decision);
    assert_eq!(send("Eve").await.unwrap_err().code.name(), "idempotency_mismatch");
    let late =
        world.engine.asks().reply(&caller(), ask, reply("Ann"), None, 1_000).await.unwrap_err();
    assert_eq!(late.code.name(), "ask_decided", "without the key it is a second reply");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_direct_write_is_sent_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    world.permits.add_permits(2);
    let arguments = json!({"n": 1});
    let output = json!({"got": {"n": 1}});
    for expected in [CallReport::Done(output.clone()), CallReport::Repeated(output)] {
        let once = once("POST /tools/slow::write/call", &arguments);
        let request = world.call_request("slow::write", arguments.clone());
        let done = world.engine.tools().call_with(&caller(), CallRequest { once, ..request }).await;
        assert_eq!(done, Ok(expected));
    }
    assert_eq!(world.sent(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_through_another_actor_is_another_key() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let through = |actor: Option<&str>| Caller { actor: actor.map(Into::into), ..caller() };
    let mut runs = Vec::new();
    for who in [through(None), through(Some("eve")), through(Some("bob"))] {
        let first = world.engine.runs().start(&who, run("ask", json!({})), WAIT_MS).await.unwrap();
        let again = world.engine.runs().start(&who, run("ask", json!({})), WAIT_MS).await.unwrap();
        assert_eq!((first.replayed, again.replayed), (false, true), "{who:?}");
        assert_eq!(first.run.id, again.run.id);
        assert!(!runs.contains(&first.run.id), "{who:?}");
        runs.push(first.run.id);
    }
}
