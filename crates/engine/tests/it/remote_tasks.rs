//! What waits elsewhere for an answer and continues there without one: its ask goes, and the call
//! has the outcome. So it has when what continues elsewhere is cancelled.

use crate::world::{WAIT_MS, caller, count_in, looking, until};
use engine::{Engine, RunReport, RunRequest, RunSession, RunTarget};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use kernel::ask::Reply;
use kernel::contracts::{SessionRef, Tool};
use kernel::tool::call::{
    Call, Caller, InputRequest, InputRequired, Reach, ToolError, ToolOutput, ToolSpec,
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
            ToolOutput::Wants(Box::new(InputRequired { inputs, state: json!({"task": 1}) }))
        } else if call.given.state.is_null() {
            self.1.begun.fetch_add(1, Ordering::SeqCst);
            let schema = Arc::new(json!({"type": "object"}));
            let form = InputRequest::Form { message: "which one?".to_owned(), schema };
            let inputs = BTreeMap::from([("which".to_owned(), form)]);
            ToolOutput::Wants(Box::new(InputRequired { inputs, state: json!({"task": 1}) }))
        } else {
            ToolOutput::Value(json!({"answers": call.given.inputs.len()}))
        };
        ready(Ok(output)).boxed()
    }
}

fn engine(folder: &Path, task: &Arc<Task>) -> Engine {
    // After 60 times this long looks are rare: a busy machine must not get there before the test
    // is over.
    engine_that_looks(folder, task, 500)
}

fn engine_that_looks(folder: &Path, task: &Arc<Task>, every_ms: u64) -> Engine {
    let spec = ToolSpec { reach: Reach::Writes, ..testkit::specs::tool("agent::book") };
    looking(folder, PLAN, Arc::new(Agent(Arc::new(spec), task.clone())), every_ms)
}

async fn asked(engine: &Engine) -> RunReport {
    let report = started(engine, WAIT_MS).await;
    assert_eq!((report.run.status.name(), report.asks.len()), ("waiting", 1));
    report
}

async fn started(engine: &Engine, wait_ms: u64) -> RunReport {
    let target = RunTarget::Plan("trip".into());
    let input = json!({});
    let session = RunSession::Named("s".to_owned());
    let request = RunRequest { target, input, session, once: None, about: Default::default() };
    engine.runs().start(&caller(), request, wait_ms).await.unwrap()
}

async fn answer(engine: &Engine, run: RunId) -> Value {
    let report = async || engine.runs().report(&caller(), run).await.unwrap();
    until("the end of the run", async || report().await.run.status.name() == "completed").await;
    report().await.run.answer.unwrap()
}

async fn count(engine: &Engine, kind: &str) -> usize {
    let session = SessionRef::Key { key: "s".into(), space: None };
    count_in(engine, &session, kind).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_task_that_moved_without_an_answer_is_noticed_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let task = Arc::new(Task::default());
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
async fn polls_without_a_change_are_not_journaled() {
    let folder = tempfile::tempdir().unwrap();
    let task = Arc::new(Task::default());
    let first = engine_that_looks(folder.path(), &task, 5);
    let waiting = asked(&first).await;
    let before = count(&first, "").await;
    let looks = || task.looks.load(Ordering::SeqCst);
    until("a hundred looks", async || looks() > 100).await;
    assert_eq!(count(&first, "").await, before);
    assert_eq!(count(&first, "\"timer.set\"").await, 1);
    first.stop().await;

    let second = engine_that_looks(folder.path(), &task, 5);
    let seen = looks();
    until("looks of the next process", async || looks() > seen + 10).await;
    assert_eq!(count(&second, "").await, before);
    task.moved.store(true, Ordering::SeqCst);
    assert_eq!(answer(&second, waiting.run.id).await, json!({"answers": 0}));
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_during_a_poll() {
    let folder = tempfile::tempdir().unwrap();
    let task = Arc::new(Task::default());
    let engine = engine(folder.path(), &task);
    let waiting = asked(&engine).await;
    let seen = task.looks.load(Ordering::SeqCst);
    until("some looks", async || task.looks.load(Ordering::SeqCst) > seen + 1).await;
    let ask = waiting.asks[0].row.ask.id;
    let reply = Reply::Fill { content: Some(json!({})) };
    let _ = engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(answer(&engine, waiting.run.id).await, json!({"answers": 1}));
    assert_eq!(count(&engine, "\"ask.withdrawn\"").await, 0);
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outcome_of_a_cancelled_remote_task_is_known_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let task = Arc::new(Task::default());
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
