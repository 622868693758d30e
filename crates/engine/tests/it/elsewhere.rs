//! What waits elsewhere for an answer and continues there without one: its ask goes, and the call
//! has the outcome. So it has when what continues elsewhere is cancelled.

use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, caller, files, parts};
use engine::{Engine, RunReport, RunRequest, RunSession, RunTarget, ToolSource};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use kernel::ask::Reply;
use kernel::contracts::{SessionRef, Tool};
use kernel::limits::Limits;
use kernel::tool::call::{
    Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Want, Wants, Yields,
};
use kernel::values::ids::RunId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

const PLAN: &str = "planId: trip\nsteps: [{id: call, type: tool_call, toolId: 'agent::book', \
    saveAs: out, nextStepId: end}, {id: end, type: final_response, \
    message: {jsonPath: $.context.out}}]";

/// The task of another agent.
#[derive(Default)]
struct Task {
    /// It asks nothing, and continues until it is cancelled.
    works: AtomicBool,
    followed: AtomicUsize,
    cancelled: Notify,
    moved: AtomicBool,
    begun: AtomicUsize,
    looks: AtomicUsize,
}

struct Agent(Arc<ToolSpec>, Arc<Task>);

impl Tool for Agent {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn moved_on(&self, state: &Value) -> Option<BoxFuture<'static, bool>> {
        assert_eq!(state, &json!({"task": 1}));
        self.1.looks.fetch_add(1, Ordering::SeqCst);
        Some(ready(self.1.moved.load(Ordering::SeqCst)).boxed())
    }

    fn cancel(&self, state: &Value) {
        assert_eq!(state, &json!({"task": 1}));
        self.1.cancelled.notify_one();
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let works = self.1.works.load(Ordering::SeqCst);
        if works && !call.given.state.is_null() {
            self.1.followed.fetch_add(1, Ordering::SeqCst);
            let error = ToolError::failed("Cancelled", "it was cancelled");
            return self.1.cancelled.notified().map(|()| Err(error)).boxed();
        }
        let output = if works {
            let inputs = BTreeMap::new();
            ToolOutput::Wants(Box::new(Wants { inputs, state: json!({"task": 1}) }))
        } else if call.given.state.is_null() {
            self.1.begun.fetch_add(1, Ordering::SeqCst);
            let schema = Arc::new(json!({"type": "object"}));
            let form = Want::Form { message: "which one?".to_owned(), schema };
            let inputs = BTreeMap::from([("which".to_owned(), form)]);
            ToolOutput::Wants(Box::new(Wants { inputs, state: json!({"task": 1}) }))
        } else {
            ToolOutput::Value(json!({"answers": call.given.inputs.len()}))
        };
        ready(Ok(output)).boxed()
    }
}

fn engine(folder: &Path, task: &Arc<Task>) -> Engine {
    let spec = ToolSpec {
        name: "agent::book".into(),
        title: "agent::book".into(),
        description: "books".into(),
        input_schema: Arc::new(json!({"type": "object"})),
        output_schema: None,
        reach: Reach::Writes,
        idempotent: false,
        tags: Vec::new(),
        pace: Pace::Quick,
        yields: Yields::Value,
        unrecorded: false,
        listed: None,
    };
    let tool: Arc<dyn Tool> = Arc::new(Agent(Arc::new(spec), task.clone()));
    let limits = Limits {
        // After 60 looks they are rare: a busy machine must not get there before the test is over.
        authorize_poll_ms: 500,
        authorize_poll_ms_max: 500,
        recover_interval_ms: 20,
        cancel_grace_ms: 60_000,
        ..Limits::default()
    };
    let parts = parts(folder, limits, vec![ToolSource::new("the test", vec![tool])]);
    let engine = Engine::start(parts).unwrap();
    engine.catalog().load_plans(&"default".into(), files(&[PLAN])).unwrap();
    engine.admin().keep_recovering();
    engine
}

async fn asked(engine: &Engine) -> RunReport {
    let report = started(engine, WAIT_MS).await;
    assert_eq!((report.run.status.name(), report.asks.len()), ("waiting", 1));
    report
}

async fn started(engine: &Engine, wait_ms: u64) -> RunReport {
    let target = RunTarget::Plan("trip".into());
    let (input, session) = (json!({}), RunSession::Named("s".to_owned()));
    let request = RunRequest { target, input, session, once: None, about: Default::default() };
    engine.runs().start(&caller(), request, wait_ms).await.unwrap()
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if holds().await {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for: {what}");
}

async fn answer(engine: &Engine, run: RunId) -> Value {
    let report = async || engine.runs().report(&caller(), run).await.unwrap();
    until("the end of the run", async || report().await.run.status.name() == "completed").await;
    report().await.run.answer.unwrap()
}

async fn count(engine: &Engine, kind: &str) -> usize {
    let session = SessionRef::Key { key: "s".into(), space: None };
    let events = engine.sessions().events(&caller(), &session, 0, 1_000).await.unwrap();
    events.iter().filter(|(_, event)| event.contains(kind)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_goes_on_without_an_answer_is_noticed_also_after_a_restart() {
    let (folder, task) = (tempfile::tempdir().unwrap(), Arc::new(Task::default()));
    let first = engine(folder.path(), &task);
    let waiting = asked(&first).await;
    let seen = task.looks.load(Ordering::SeqCst);
    until("some looks", async || task.looks.load(Ordering::SeqCst) > seen + 2).await;
    assert_eq!(count(&first, "\"call.resumed\"").await, 0, "a look is no call");
    first.stop().await;
    let second = engine(folder.path(), &task);
    task.moved.store(true, Ordering::SeqCst);
    assert_eq!(answer(&second, waiting.run.id).await, json!({"answers": 0}));
    assert_eq!(task.begun.load(Ordering::SeqCst), 1, "no second task was begun");
    assert_eq!(count(&second, "\"ask.withdrawn\"").await, 1);
    let report = second.runs().report(&caller(), waiting.run.id).await.unwrap();
    assert_eq!((report.asks.len(), report.session.wake_at), (0, None));
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_while_the_task_is_looked_at() {
    let (folder, task) = (tempfile::tempdir().unwrap(), Arc::new(Task::default()));
    let engine = engine(folder.path(), &task);
    let waiting = asked(&engine).await;
    let seen = task.looks.load(Ordering::SeqCst);
    until("some looks", async || task.looks.load(Ordering::SeqCst) > seen + 1).await;
    let (ask, reply) = (waiting.asks[0].row.ask.id, Reply::Fill { content: Some(json!({})) });
    let _ = engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(answer(&engine, waiting.run.id).await, json!({"answers": 1}));
    assert_eq!(count(&engine, "\"ask.withdrawn\"").await, 0);
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cancelled_task_comes_to_is_known_at_once() {
    let (folder, task) = (tempfile::tempdir().unwrap(), Arc::new(Task::default()));
    task.works.store(true, Ordering::SeqCst);
    let engine = engine(folder.path(), &task);
    let run = started(&engine, 0).await.run.id;
    until("the task to be followed", async || task.followed.load(Ordering::SeqCst) == 1).await;
    // A minute of grace, after which the outcome would be unknown.
    let report = engine.runs().cancel(&caller(), run).await.unwrap();
    assert_eq!(report.run.status.name(), "cancelled");
    let session = SessionRef::Key { key: "s".into(), space: None };
    let events = engine.sessions().events(&caller(), &session, 0, 1_000).await.unwrap();
    let failed: Vec<_> =
        events.iter().filter(|(_, text)| text.contains("\"call.failed\"")).collect();
    assert!(failed.len() == 1 && !failed[0].1.contains("\"unknown\""), "{events:#?}");
}
