//! Logins that a thread waits for: looked at now and then, asked for once, also over a restart.

use crate::world::{WAIT_MS, caller, count_in, looking, until};
use engine::{Engine, RunReport, RunRequest, RunSession, RunTarget};
use futures::future::BoxFuture;
use kernel::ask::{AskBody, Reply};
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
use std::time::Duration;

const PLAN: &str = "planId: book\nsteps: [{id: call, type: tool_call, toolId: 'room::book', \
    saveAs: out, nextStepId: end}, {id: end, type: final_response, \
    message: {jsonPath: $.context.out}}]";

/// A tool that wants a login, whose page is another one each time.
#[derive(Default)]
struct Door {
    open: AtomicBool,
    /// Every caller has to wait.
    held: AtomicBool,
    knocks: AtomicUsize,
    entered: AtomicUsize,
}

struct Room(Arc<ToolSpec>, Arc<Door>);

impl Tool for Room {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }
    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let knocks = self.1.knocks.fetch_add(1, Ordering::SeqCst);
            while self.1.held.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let given = call.given.inputs.get("login");
            if self.1.open.load(Ordering::SeqCst) || given.is_some() {
                self.1.entered.fetch_add(1, Ordering::SeqCst);
                return Ok(ToolOutput::Value(json!({"booked": true, "given": given})));
            }
            let page = InputRequest::Url {
                message: "log in".to_owned(),
                url: format!("https://login.test/{knocks}"),
            };
            let inputs = BTreeMap::from([("login".to_owned(), page)]);
            Ok(ToolOutput::Wants(Box::new(InputRequired { inputs, state: Value::Null })))
        })
    }
}

/// An engine that looks at logins twice a second. It gives up after 60 looks, and a busy machine
/// must not get there before the test does something.
fn engine(folder: &Path, door: &Arc<Door>) -> Engine {
    engine_that_looks(folder, door, 500)
}

fn engine_that_looks(folder: &Path, door: &Arc<Door>, every_ms: u64) -> Engine {
    // It may be repeated, so that a look that a stop cuts off is not for a person to settle.
    let spec = testkit::specs::tool("room::book");
    let spec = ToolSpec { reach: Reach::Writes, idempotent: true, ..spec };
    looking(folder, PLAN, Arc::new(Room(Arc::new(spec), door.clone())), every_ms)
}

async fn booked(engine: &Engine, session: RunSession) -> RunReport {
    let target = RunTarget::Plan("book".into());
    let request =
        RunRequest { target, input: json!({}), session, once: None, about: Default::default() };
    engine.runs().start(&caller(), request, WAIT_MS).await.unwrap()
}

fn thread() -> RunSession {
    RunSession::Thread("t".to_owned())
}

async fn is_completed(engine: &Engine, run: RunId) -> bool {
    engine.runs().report(&caller(), run).await.unwrap().run.status.name() == "completed"
}

async fn count(engine: &Engine, kind: &str) -> usize {
    count_in(engine, &SessionRef::Key { key: "t".into(), space: None }, kind).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_polled_until_done_and_asked_for_once() {
    let folder = tempfile::tempdir().unwrap();
    let door = Arc::new(Door::default());
    let first = engine(folder.path(), &door);
    let waiting = booked(&first, thread()).await;
    assert_eq!(waiting.run.status.name(), "waiting");
    let AskBody::Authorize { url, .. } = &waiting.asks[0].row.ask.body else { panic!("no login") };
    assert_eq!(url, "https://login.test/0");
    until("a few looks", async || door.knocks.load(Ordering::SeqCst) > 3).await;
    first.stop().await;

    // The looks go on in the next process.
    let second = engine(folder.path(), &door);
    let seen = door.knocks.load(Ordering::SeqCst);
    until("more looks", async || door.knocks.load(Ordering::SeqCst) > seen + 1).await;
    assert_eq!(door.entered.load(Ordering::SeqCst), 0);
    door.open.store(true, Ordering::SeqCst);
    until("the run to go on", async || is_completed(&second, waiting.run.id).await).await;
    assert_eq!(door.entered.load(Ordering::SeqCst), 1, "it was done more than once");
    assert_eq!(count(&second, "\"ask.opened\"").await, 1);
    assert_eq!(count(&second, "\"ask.withdrawn\"").await, 1);
    assert_eq!(
        second.runs().report(&caller(), waiting.run.id).await.unwrap().session.wake_at,
        None
    );
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_can_confirm_a_login() {
    let folder = tempfile::tempdir().unwrap();
    let door = Arc::new(Door::default());
    let engine = engine(folder.path(), &door);
    let waiting = booked(&engine, thread()).await;
    let ask = waiting.asks[0].row.ask.id;
    let reply = Reply::Authorize { done: true };
    let _ = engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    // It may have been out for a look at that moment: then that one counts, and asks anew.
    until("an end or a new ask", async || {
        let report = engine.runs().report(&caller(), waiting.run.id).await.unwrap();
        report.run.status.name() == "completed" || report.asks.iter().any(|a| a.row.ask.id != ask)
    })
    .await;
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_are_polled_in_threads_only() {
    let folder = tempfile::tempdir().unwrap();
    let door = Arc::new(Door::default());
    let engine = engine(folder.path(), &door);
    let waiting = booked(&engine, RunSession::New).await;
    assert_eq!((waiting.run.status.name(), waiting.session.wake_at), ("waiting", None));
    // A thread that waits for the same is looked at meanwhile, so there was time for it.
    booked(&engine, thread()).await;
    until("looks at the thread", async || count(&engine, "\"call.wants\"").await > 3).await;
    let session = SessionRef::Id(waiting.session.id);
    assert_eq!(count_in(&engine, &session, "\"call.wants\"").await, 1);
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opened_page_is_polled_at_once() {
    const HOUR_MS: u64 = 3_600_000;
    let folder = tempfile::tempdir().unwrap();
    let door = Arc::new(Door::default());
    let engine = engine_that_looks(folder.path(), &door, HOUR_MS);
    let waiting = booked(&engine, thread()).await;
    let knocks = || door.knocks.load(Ordering::SeqCst);
    assert_eq!((waiting.run.status.name(), knocks()), ("waiting", 1));
    engine.tools().page_opened("another source", "login");
    engine.tools().page_opened("the test", "another page");
    // It is not open yet, whatever is said: all stays as it was, and nobody looks for every word.
    engine.tools().page_opened("the test", "login");
    until("a look", async || count(&engine, "\"call.wants\"").await == 2).await;
    engine.tools().page_opened("the test", "login");
    let report = engine.runs().report(&caller(), waiting.run.id).await.unwrap();
    assert_eq!((report.asks.len(), knocks()), (1, 2));
    assert!(report.session.wake_at.is_some(), "it is still looked at in its own time");

    let other = RunSession::Thread("u".to_owned());
    let waiting = booked(&engine, other).await;
    door.open.store(true, Ordering::SeqCst);
    engine.tools().page_opened("the test", "login");
    until("the run to go on", async || is_completed(&engine, waiting.run.id).await).await;
    assert_eq!((door.entered.load(Ordering::SeqCst), knocks()), (1, 4));
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completed_login_is_not_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let door = Arc::new(Door::default());
    let engine = engine(folder.path(), &door);
    let waiting = booked(&engine, thread()).await;
    door.held.store(true, Ordering::SeqCst);
    let seen = door.knocks.load(Ordering::SeqCst);
    until("a look that is held", async || door.knocks.load(Ordering::SeqCst) > seen).await;
    let next = tokio::spawn({
        let engine = engine.clone();
        async move { booked(&engine, thread()).await }
    });
    // So that it comes while the look is under way; if it is later, all is the same.
    tokio::time::sleep(Duration::from_millis(50)).await;
    door.open.store(true, Ordering::SeqCst);
    door.held.store(false, Ordering::SeqCst);
    let next = next.await.unwrap();
    let first = engine.runs().report(&caller(), waiting.run.id).await.unwrap();
    assert_eq!((first.run.status.name(), next.run.status.name()), ("completed", "completed"));
    assert_eq!((next.run.no, door.entered.load(Ordering::SeqCst)), (2, 2));
    engine.stop().await;
}
