//! What is set for a realm holds where something is done: a search is sent within its limit, and no
//! model is asked that the realm does not enable, nor for an agent that it does not enable.

use crate::model::{Scripted, text};
use crate::world::{WAIT_MS, World, caller};
use engine::{
    AgentFile, DraftRequest, Parts, RefusalCode, RunReport, RunRequest, RunSession, RunTarget,
    ThreadMessage,
};
use kernel::ask::{AskBody, FixAction, Reply};
use kernel::contracts::Policy;
use kernel::contracts::policy::{Decision, Request};
use kernel::identity::realm::RealmSettings;
use kernel::tool::rules::Pattern;
use kernel::values::fault::Fault;
use kernel::values::ids::{AskId, RealmId};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

const HELPER: &str = "refName: helper\nllmConfigRef: fast\n";

/// Allows everything within these settings of the realm `default`.
#[derive(Default)]
struct Within(Mutex<RealmSettings>);

impl Within {
    fn set(&self, settings: RealmSettings) {
        *self.0.lock().unwrap() = settings;
    }
}

impl Policy for Within {
    fn decide(&self, _request: &Request<'_>) -> Decision {
        Decision::allow()
    }

    fn settings(&self, realm: &RealmId) -> RealmSettings {
        match realm.as_str() {
            "default" => self.0.lock().unwrap().clone(),
            _ => RealmSettings::default(),
        }
    }
}

async fn world(folder: &Path, model: &Arc<Scripted>) -> (World, Arc<Within>) {
    let within = Arc::new(Within::default());
    let policy = within.clone();
    let models = model.models();
    let world = World::changed(folder, &[], |parts| Parts { policy, models, ..parts }).await;
    let agent = AgentFile { file: "helper.yaml".to_owned(), text: HELPER.to_owned() };
    world.engine.catalog().set_agents_from_files(&"default".into(), vec![agent]).unwrap();
    (world, within)
}

fn only(name: &str) -> Option<Vec<Pattern>> {
    Some(vec![Pattern::new(name).unwrap()])
}

async fn run(world: &World, steps: Value) -> RunReport {
    let request = RunRequest {
        target: RunTarget::Inline(json!({"planId": "own", "steps": steps})),
        input: json!({}),
        session: RunSession::New,
        once: None,
        about: Default::default(),
    };
    world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap()
}

fn stuck(report: &RunReport) -> (AskId, &Fault) {
    assert_eq!(report.run.status.name(), "stuck");
    let ask = &report.asks[0].row.ask;
    let AskBody::Fix { fault, .. } = &ask.body else { panic!("{:?}", ask.body) };
    (ask.id, fault)
}

async fn retried(world: &World, ask: AskId) -> RunReport {
    let reply = Reply::fix(FixAction::Retry);
    world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap().run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_limited_by_its_realm() {
    let folder = tempfile::tempdir().unwrap();
    let (world, within) = world(folder.path(), &Scripted::new([])).await;
    assert_eq!(world.engine.tools().replace(world.late("late.query_find")), []);
    let find = json!([{"id": "find", "type": "tool_call", "toolId": "late.query_find",
        "arguments": {"rootType": "Order", "limit": 5000}}]);
    for (most, sent) in [(None, 5000), (Some(100), 100), (Some(9000), 5000)] {
        within.set(RealmSettings { max_find_limit: most, ..RealmSettings::default() });
        world.permits.add_permits(1);
        let report = run(&world, find.clone()).await;
        assert_eq!(report.run.status.name(), "completed");
        let last = world.ledger.0.lock().unwrap().last().unwrap().1.clone();
        assert_eq!(last, json!({"rootType": "Order", "limit": sent}), "{most:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_disabled_in_the_realm_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([text("Done.")]);
    let (world, within) = world(folder.path(), &model).await;
    within.set(RealmSettings { enabled_models: only("other"), ..RealmSettings::default() });
    let saying = ThreadMessage { thread: "t", text: "hello", ..ThreadMessage::default() };
    let report = world.engine.threads().say(&caller(), saying, WAIT_MS).await.unwrap();
    let (ask, fault) = stuck(&report);
    assert!(fault.message.contains("model `fast` is not enabled in this realm"), "{fault:?}");
    let goal = || DraftRequest { goal: "greet".to_owned(), ..DraftRequest::default() };
    let named = DraftRequest { model: Some("fast".to_owned()), ..goal() };
    let draft = async |request: DraftRequest| -> RefusalCode {
        world.engine.catalog().draft_plan(&caller(), request).await.unwrap_err().code
    };
    assert_eq!(draft(goal()).await, RefusalCode::ModelNeeded(Vec::new()));
    assert_eq!(draft(named).await, RefusalCode::NotFound);
    assert_eq!(model.asked(), 0);
    within.set(RealmSettings { enabled_models: only("f*"), ..RealmSettings::default() });
    let report = retried(&world, ask).await;
    assert_eq!((report.run.answer, model.asked()), (Some(json!("Done.")), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_disabled_in_the_realm_fails_as_a_step() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([text("Done.")]);
    let (world, within) = world(folder.path(), &model).await;
    within.set(RealmSettings { enabled_agents: Some(Vec::new()), ..RealmSettings::default() });
    let steps = json!([
        {"id": "think", "type": "agent", "agent": "helper", "input": "hi", "saveAs": "answer",
         "nextStepId": "end"},
        {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.answer"}}]);
    let report = run(&world, steps).await;
    let (ask, fault) = stuck(&report);
    assert_eq!(fault.name, "AgentNotEnabled");
    assert_eq!(model.asked(), 0);
    within.set(RealmSettings { enabled_agents: only("help*"), ..RealmSettings::default() });
    let report = retried(&world, ask).await;
    assert_eq!((report.run.answer, model.asked()), (Some(json!("Done.")), 1));
}
