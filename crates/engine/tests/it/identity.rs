//! For whom a run acts: what its start keeps of its caller holds for whatever comes later, after a
//! restart too.

use crate::world::{WAIT_MS, World, caller};
use engine::{RunAbout, RunRequest};
use kernel::ask::{AskBody, CallDecision, Reply};
use kernel::contracts::policy::{Decision, Request};
use kernel::contracts::{Policy, SessionRef};
use kernel::event::Occasion;
use kernel::tool::call::Caller;
use kernel::values::caller::{LOCAL, Scope};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const WRITE: &str = "planId: write\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {n: 1}, approve: true, nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";

/// Allows everything and notes who asked.
#[derive(Default)]
struct Noting(Mutex<Vec<Caller>>);

impl Policy for Noting {
    fn decide(&self, request: &Request<'_>) -> Decision {
        // Only calls have arguments; a look at what is visible has none.
        if request.context.arguments.is_some() {
            self.0.lock().unwrap().push(request.subject.clone());
        }
        Decision::allow()
    }
}

/// A robot that somebody sent, with a credential that can do little.
fn sent() -> Caller {
    let scopes = Some([Scope::Use].into_iter().collect());
    Caller { actor: Some("eve".into()), scopes, ..caller() }
}

async fn started(world: &World, session: &str) -> Value {
    let named = SessionRef::Key { key: session.into(), space: None };
    let events = world.engine.sessions().events(&caller(), &named, 0, 9).await.unwrap();
    let mut events = events.iter().map(|(_, text)| serde_json::from_str::<Value>(text).unwrap());
    events.find(|event| event["type"] == "run.started").unwrap()["data"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_for_whom_it_was_started() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    let about = RunAbout { occasion: Occasion::at("rest", "/api/v1/runs"), ..RunAbout::default() };
    let request = RunRequest { about, ..world.request("write", json!({}), "s") };
    let report = world.engine.runs().start(&sent(), request, WAIT_MS).await.unwrap();
    assert_eq!(report.run.status.name(), "waiting");
    assert_eq!(report.run.owner.as_deref(), Some("ann"));
    assert_eq!(report.session.owner.as_deref(), Some("ann"));
    let data = started(&world, "s").await;
    assert_eq!((&data["by"], &data["actor"]), (&json!("ann"), &json!("eve")));
    assert_eq!(data["scopes"], json!(["use"]));
    assert_eq!(data["about"], json!({"trigger": "rest", "endpoint": "/api/v1/runs"}));
    assert_eq!(data.get("subject"), None, "it is who started it");
    world.crash().await;

    let noting = Arc::new(Noting::default());
    let policy = noting.clone();
    let change = |parts| engine::Parts { policy, ..parts };
    let world = World::changed(folder.path(), &[WRITE], change).await;
    world.permits.add_permits(1);
    let ask = &report.asks[0].row.ask;
    assert_eq!((ask.subject.as_deref(), &ask.answerers), (Some("ann"), &None));
    let AskBody::Approve { calls } = &ask.body else { panic!("{:?}", ask.body) };
    let call_id = calls[0].call_id;
    let decision = CallDecision { call_id, approve: true, feedback: None, arguments: None };
    let reply = Reply::Approve { decisions: vec![decision] };
    let bob = Caller::new("default", "bob");
    let replied = world.engine.asks().reply(&bob, ask.id, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(replied.run.run.status.name(), "completed");
    let asked = noting.0.lock().unwrap().clone();
    assert!(!asked.is_empty() && asked.iter().all(|caller| *caller == sent()), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn local_mode_leaves_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    let local = Caller::new("default", LOCAL);
    let request = world.request("write", json!({}), "s");
    let report = world.engine.runs().start(&local, request, WAIT_MS).await.unwrap();
    assert_eq!((&report.run.owner, &report.session.owner), (&None, &None));
    assert_eq!(report.asks[0].row.ask.subject, None);
    let made = world.engine.sessions().create(&local, Some("made".into())).await.unwrap();
    assert_eq!((&made.owner, &made.key.owner), (&None, &None));
    let data = started(&world, "s").await;
    let members = data.as_object().unwrap().keys().filter(|member| *member != "trace");
    let before = ["by", "closure", "frame", "input", "metered", "plan", "run", "start"];
    assert_eq!(members.collect::<Vec<_>>(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_its_makers() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    let made = world.engine.sessions().create(&caller(), Some("s".into())).await.unwrap();
    assert_eq!(made.owner.as_deref(), Some("ann"));
    let bob = Caller::new("default", "bob");
    let request = world.request("write", json!({}), "s");
    let report = world.engine.runs().start(&bob, request, WAIT_MS).await.unwrap();
    assert_eq!(report.run.owner.as_deref(), Some("bob"));
    assert_eq!(report.session.owner.as_deref(), Some("ann"));
    let fork = world.engine.sessions().fork(&bob, &SessionRef::Id(made.id), None).await.unwrap();
    assert_eq!(fork.owner.as_deref(), Some("bob"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_acts_for_who_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let noting = Arc::new(Noting::default());
    let policy = noting.clone();
    let change = |parts| engine::Parts { policy, ..parts };
    let world = World::changed(folder.path(), &[WRITE], change).await;
    world.permits.add_permits(1);
    let report = world.run("write", json!({}), "s").await;
    assert_eq!(report.run.status.name(), "waiting");

    let scopes = Some([Scope::Use].into_iter().collect());
    let bob = Caller { actor: Some("eve".into()), scopes, ..Caller::new("default", "bob") };
    let original = SessionRef::Id(report.session.id);
    let fork = world.engine.sessions().fork(&bob, &original, None).await.unwrap();
    assert_eq!(fork.owner.as_deref(), Some("bob"));
    let data = started(&world, &fork.key.id).await;
    assert_eq!((&data["by"], &data["actor"]), (&json!("bob"), &json!("eve")));
    assert_eq!(data["scopes"], json!(["use"]));
    assert_eq!(data["about"]["parent"], json!(report.run.id));

    noting.0.lock().unwrap().clear();
    let run = fork.run.unwrap();
    let copied = world.engine.runs().report(&caller(), run).await.unwrap();
    assert_eq!(copied.run.owner.as_deref(), Some("bob"));
    let ask = &copied.asks[0].row.ask;
    assert_eq!(ask.subject.as_deref(), Some("bob"));
    let AskBody::Approve { calls } = &ask.body else { panic!("{:?}", ask.body) };
    let call_id = calls[0].call_id;
    let decision = CallDecision { call_id, approve: true, feedback: None, arguments: None };
    let reply = Reply::Approve { decisions: vec![decision] };
    let replied = world.engine.asks().reply(&caller(), ask.id, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(replied.run.run.status.name(), "completed");
    let asked = noting.0.lock().unwrap().clone();
    assert!(!asked.is_empty() && asked.iter().all(|caller| *caller == bob), "{asked:?}");
}
