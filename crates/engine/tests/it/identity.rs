//! For whom a run acts: what its start keeps of its caller holds for whatever comes later, after a
//! restart too.

use crate::model::{Scripted, calls, text};
use crate::world::{WAIT_MS, World, caller};
use engine::{AgentFile, Parts, RunMetadata, RunReport, RunRequest, RunSession, ThreadMessage};
use kernel::ask::{Ask, AskBody, CallDecision, FixAction, Reply};
use kernel::contracts::policy::{Decision, Request};
use kernel::contracts::{Policy, SessionRef};
use kernel::event::Occasion;
use kernel::tool::call::{Caller, Verdict};
use kernel::values::caller::{Act, LOCAL, Scope};
use kernel::values::fault::Fault;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

const HELPER: &str = "refName: helper\nllmConfigRef: fast\nenabledTools: ['slow::*']\n";
/// It asks, then calls, and would rather fail than ask about a failure.
const THEN: &str = "planId: then\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: call}, {id: call, type: tool_call, toolId: 'slow::read', arguments: {}, \
    onError: fail, nextStepId: end}, {id: end, type: final_response, message: ok}]";
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
    let named = match session.parse() {
        Ok(id) => SessionRef::Id(id),
        Err(_) => SessionRef::Key { key: session.into(), space: None },
    };
    let events = world.engine.sessions().events(&caller(), &named, 0, 9).await.unwrap();
    let mut events = events.iter().map(|(_, text)| serde_json::from_str::<Value>(text).unwrap());
    events.find(|event| event["type"] == "run.started").unwrap()["data"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_keeps_acting_for_its_starter() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    let about =
        RunMetadata { occasion: Occasion::at("rest", "/api/v1/runs"), ..RunMetadata::default() };
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
    let change = |parts| Parts { policy, ..parts };
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
async fn local_mode_records_no_subjects() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    let local = Caller::new("default", LOCAL);
    let request = world.request("write", json!({}), "s");
    let report = world.engine.runs().start(&local, request, WAIT_MS).await.unwrap();
    assert_eq!((&report.run.owner, &report.session.owner), (&None, &None));
    assert_eq!(report.asks[0].row.ask.subject, None);
    let made = world.engine.sessions().create(&local, Some("made".into())).await.unwrap();
    assert_eq!((&made.owner, &made.key.owner), (&None, &None));
    let data = started(&world, &report.session.id.to_string()).await;
    let members = data.as_object().unwrap().keys().filter(|member| *member != "trace");
    let members: BTreeSet<&str> = members.map(String::as_str).collect();
    let before = ["by", "closure", "frame", "input", "plan", "rules", "run", "start"];
    assert_eq!(members, BTreeSet::from(before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_its_creator() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    let made = world.engine.sessions().create(&caller(), Some("s".into())).await.unwrap();
    assert_eq!(made.owner.as_deref(), Some("ann"));
    let bob = Caller::new("default", "bob");
    let session = RunSession::Existing(SessionRef::Id(made.id));
    let request = RunRequest { session, ..world.request("write", json!({}), "s") };
    let report = world.engine.runs().start(&bob, request, WAIT_MS).await.unwrap();
    assert_eq!(report.run.owner.as_deref(), Some("bob"));
    assert_eq!(report.session.owner.as_deref(), Some("ann"));
    let fork = world.engine.sessions().fork(&bob, &SessionRef::Id(made.id), None).await.unwrap();
    assert_eq!(fork.owner.as_deref(), Some("bob"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_acts_for_its_maker() {
    let folder = tempfile::tempdir().unwrap();
    let noting = Arc::new(Noting::default());
    let policy = noting.clone();
    let change = |parts| Parts { policy, ..parts };
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

/// Denies these acts to everybody, as to a subject that lost its rights.
#[derive(Default)]
struct Lost(Mutex<Vec<Act>>);

impl Lost {
    fn set(&self, acts: &[Act]) {
        *self.0.lock().unwrap() = acts.to_vec();
    }
}

impl Policy for Lost {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match self.0.lock().unwrap().contains(&request.act) {
            true => Verdict::Deny("its key was revoked".to_owned()).into(),
            false => Decision::allow(),
        }
    }
}

async fn losing(folder: &Path, model: &Arc<Scripted>) -> (World, Arc<Lost>) {
    let lost = Arc::new(Lost::default());
    let policy = lost.clone();
    let models = model.models();
    let change = |parts| Parts { policy, models, ..parts };
    let world = World::changed(folder, &[THEN], change).await;
    let agent = AgentFile { file: "helper.yaml".to_owned(), text: HELPER.to_owned() };
    world.engine.catalog().set_agents_from_files(&"default".into(), vec![agent]).unwrap();
    (world, lost)
}

fn fault(report: &RunReport) -> (&Ask, &Fault) {
    let ask = &report.asks[0].row.ask;
    let AskBody::Fix { fault, .. } = &ask.body else { panic!("{:?}", ask.body) };
    (ask, fault)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_model_is_asked_for_a_subject_without_the_right_to_talk() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([calls([("slow::read", json!({"n": 1}))]), text("Done.")]);
    let (world, lost) = losing(folder.path(), &model).await;
    let saying = ThreadMessage { thread: "t", text: "read it", ..ThreadMessage::default() };
    let begun = world.engine.threads().say(&caller(), saying, 0).await.unwrap();
    world.until("the read to be sent", |world| world.sent() == 1).await;
    lost.set(&[Act::Talk]);
    world.permits.add_permits(1);
    let stuck = world.until_status(begun.run.id, "stuck").await;
    let (ask, fault) = fault(&stuck);
    assert_eq!(fault.name, Fault::NOT_PERMITTED);
    assert_eq!(fault.message, "`ann` may not do this any more: `talk` on agent `helper`");
    assert_eq!(model.asked(), 1);
    // A retry changes nothing as long as the right is not back.
    let retry = || Reply::fix(FixAction::Retry);
    let asks = world.engine.asks();
    let again = asks.reply(&caller(), ask.id, retry(), None, WAIT_MS).await.unwrap().run;
    assert_eq!((again.run.status.name(), model.asked()), ("stuck", 1));
    lost.set(&[]);
    let id = again.asks[0].row.ask.id;
    let done = asks.reply(&caller(), id, retry(), None, WAIT_MS).await.unwrap().run;
    assert_eq!((done.run.answer, model.asked()), (Some(json!("Done.")), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_subject_lost_its_rights_fails_its_step_and_asks() {
    let folder = tempfile::tempdir().unwrap();
    let (world, lost) = losing(folder.path(), &Scripted::new([])).await;
    let yes = || Reply::Clarify { answer: Some(json!("yes")) };
    let replied = async |session: &str, acts: &[Act]| {
        lost.set(&[]);
        let asking = world.run("then", json!({}), session).await;
        lost.set(acts);
        let ask = asking.asks[0].row.ask.id;
        world.engine.asks().reply(&caller(), ask, yes(), None, WAIT_MS).await.unwrap().run
    };
    let stuck = replied("a", &[Act::Call, Act::Run]).await;
    let (_, fault) = fault(&stuck);
    assert_eq!(fault.message, "`ann` may not do this any more: `run` on plan `then`");
    // Who may still run the plan learns nothing of a tool that it does not see.
    let failed = replied("b", &[Act::Call]).await;
    assert_eq!(failed.run.status.name(), "failed");
    assert_eq!(failed.run.last_error.unwrap().name, "ToolNotFoundError");
    assert_eq!(world.sent(), 0);
}
