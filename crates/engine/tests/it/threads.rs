//! Threads: one run at a time, logins that give way, requests that come twice, and what retention
//! leaves of a conversation.

use crate::model::{Scripted, calls, text, told};
use crate::world::{WAIT_MS, World, caller};
use engine::{IdempotencyKey, RunReport, ThreadMessage};
use kernel::ask::{AskBody, CallDecision, Reply};
use kernel::contracts::SessionRef;
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::values::ids::{AgentName, ContentHash, Space};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

const HELPER: &str = "refName: helper\nllmConfigRef: fast\nenabledTools: ['slow::*']\n\
    approve: ['slow::write']\n";
const OTHER: &str = "refName: other\nllmConfigRef: fast\nenabledTools: []\n";

async fn world(folder: &Path, agents: &[&str], model: &Arc<Scripted>) -> World {
    World::talking(folder, (&[], agents), Limits::default(), model.models()).await
}

fn saying(text: &str) -> ThreadMessage<'_> {
    ThreadMessage { thread: "t", text, ..ThreadMessage::default() }
}

fn hello(agent: &AgentName) -> ThreadMessage<'_> {
    ThreadMessage { agent: Some(agent), ..saying("hello") }
}

async fn say(world: &World, text: &str) -> Result<RunReport, engine::Refusal> {
    world.engine.threads().say(&caller(), saying(text), WAIT_MS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_has_one_run_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([calls([("slow::write", json!({"n": 1}))])]);
    let world = world(folder.path(), &[HELPER], &model).await;
    let waiting = say(&world, "write it").await.unwrap();
    let refusal = say(&world, "and more").await.unwrap_err();
    assert_eq!(refusal.code.name(), "run_active");
    let detail = refusal.code.detail().unwrap();
    assert_eq!(detail["run"], json!(waiting.run.id));
    assert_eq!(detail["asks"][0]["askId"], json!(waiting.asks[0].row.ask.id));
    assert_eq!(detail["asks"][0]["kind"], "approve");
    assert_eq!(model.asked(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_login_gives_way_to_a_new_message() {
    let folder = tempfile::tempdir().unwrap();
    let login = json!({"kind": "url", "message": "log in", "url": "https://example.org/login"});
    let turn = calls([("slow::put", json!({"wants": {"login": login}}))]);
    let model = Scripted::new([turn, text("Never mind.")]);
    let world = world(folder.path(), &[HELPER], &model).await;
    world.permits.add_permits(2);
    let waiting = say(&world, "put it").await.unwrap();
    let ask = &waiting.asks[0].row.ask;
    assert!(matches!(ask.body, AskBody::Authorize { .. }), "{ask:?}");
    let done = say(&world, "forget it").await.unwrap();
    assert_eq!(done.run.answer, Some(json!("Never mind.")));
    assert_eq!(done.run.no, 2);
    let first = world.engine.runs().report(&caller(), waiting.run.id).await.unwrap();
    assert_eq!(first.run.status.name(), "cancelled");
    let late = Reply::Authorize { done: true };
    let late = world.engine.asks().reply(&caller(), ask.id, late, None, 100).await.unwrap_err();
    assert_eq!((late.code.name(), world.sent()), ("withdrawn", 1));
    // The call that was left has a result for the model, as every call has.
    let last = told(&model.last());
    assert_eq!(last.len(), 4, "{last:?}");
    assert!(last[2].starts_with("slow__put: Not executed"), "{last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_message_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let login = json!({"kind": "url", "message": "log in", "url": "https://example.org/login"});
    let model = Scripted::new([calls([("slow::put", json!({"wants": {"login": login}}))])]);
    let world = world(folder.path(), &[HELPER], &model).await;
    world.permits.add_permits(1);
    let once = || {
        let route = "POST /run".to_owned();
        let key = "k".to_owned();
        Some(IdempotencyKey::new(route, key, ContentHash::of(b"body")))
    };
    let me = caller();
    let say = || {
        world.engine.threads().say(&me, ThreadMessage { once: once(), ..saying("put it") }, WAIT_MS)
    };
    let first = say().await.unwrap();
    // Its own login does not give way to itself.
    let again = say().await.unwrap();
    assert_eq!((again.run.id, again.replayed), (first.run.id, true));
    assert_eq!((again.run.status.name(), model.asked()), ("waiting", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_another_subject_is_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([calls([("slow::write", json!({"n": 1}))]), text("hello")]);
    let world = world(folder.path(), &[HELPER], &model).await;
    let anns = say(&world, "write it").await.unwrap();
    let bob = Caller::new("default", "bob");
    let bobs = world.engine.threads().say(&bob, saying("hello"), WAIT_MS).await.unwrap();
    assert_eq!(bobs.run.status.name(), "completed");
    assert_ne!(bobs.session.id, anns.session.id);
    for space in [None, Some(Space::thread())] {
        let thread = SessionRef::Key { key: "t".into(), space };
        let found = world.engine.sessions().get(&bob, &thread).await.unwrap();
        assert_eq!(found.id, bobs.session.id);
        let found = world.engine.sessions().get(&caller(), &thread).await.unwrap();
        assert_eq!(found.id, anns.session.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_must_be_named_if_there_are_several() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([text("I am the other one.")]);
    let world = world(folder.path(), &[HELPER, OTHER], &model).await;
    let refusal = say(&world, "hello").await.unwrap_err();
    assert_eq!(refusal.code.name(), "agent_needed");
    assert_eq!(refusal.code.detail(), Some(json!({"agents": ["helper", "other"]})));
    let other = AgentName::from("other");
    let said = world.engine.threads().say(&caller(), hello(&other), WAIT_MS).await;
    assert_eq!(said.unwrap().run.answer, Some(json!("I am the other one.")));
    // It sees no tools, and can ask all the same.
    let names: Vec<String> = model.last().tools.into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["request_clarification"]);
    let nobody = AgentName::from("nobody");
    let gone = world.engine.threads().say(&caller(), hello(&nobody), 100).await;
    assert_eq!(gone.unwrap_err().code.name(), "not_found");
    let long = "x".repeat(300);
    let long = ThreadMessage { thread: &long, ..hello(&other) };
    let refusal = world.engine.threads().say(&caller(), long, 100).await;
    assert_eq!(refusal.unwrap_err().code.name(), "bad_session_id");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_of_a_thread_are_trimmed_and_its_conversation_stays() {
    let folder = tempfile::tempdir().unwrap();
    let before = Scripted::new([
        calls([("slow::read", json!({"repeat": 20_000}))]),
        text("That was long."),
        text("It was."),
        calls([("slow::write", json!({"n": 1}))]),
    ]);
    let first = world(folder.path(), &[HELPER], &before).await;
    first.permits.add_permits(1);
    say(&first, "read it").await.unwrap();
    let second = say(&first, "was it long?").await.unwrap();
    let waiting = say(&first, "write it").await.unwrap();
    let prompt = told(&before.last());
    // The driver of a session releases it a moment after it answered.
    first.at_rest().await;
    let pruned = first.engine.admin().prune(&caller(), 0).await.unwrap();
    assert_eq!((pruned.sessions, pruned.runs), (0, 2));
    let gone = first.engine.runs().report(&caller(), second.run.id).await.unwrap_err();
    assert_eq!(gone.code.name(), "not_found");
    first.crash().await;

    let model = Scripted::new([text("Written."), text("Yes.")]);
    let world = world(folder.path(), &[HELPER], &model).await;
    world.permits.add_permits(1);
    let ask = &waiting.asks[0].row.ask;
    let AskBody::Approve { calls } = &ask.body else { panic!("{ask:?}") };
    let approved = |call: &kernel::ask::AskedCall| CallDecision {
        call_id: call.call_id,
        approve: true,
        feedback: None,
        arguments: None,
    };
    let reply = Reply::Approve { decisions: calls.iter().map(approved).collect() };
    world.engine.asks().reply(&caller(), ask.id, reply, None, WAIT_MS).await.unwrap();
    let last = told(&model.last());
    assert_eq!(last[..prompt.len()], prompt, "what was said reads otherwise from the base");
    say(&world, "all of it?").await.unwrap();
    assert_eq!(told(&model.last())[..last.len()], last);
}
