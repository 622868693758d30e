//! Replies to several asks at once: all of them count, or none.

use crate::world::{WAIT_MS, World, caller};
use kernel::ask::Reply;
use kernel::contracts::SessionRef;
use kernel::values::ids::AskId;
use serde_json::json;

const BOTH: &str = "planId: both\nsteps: [{id: both, type: parallel_branch, branches: [{id: l, \
    steps: [{id: left, type: human_in_the_loop, message: left?}]}, {id: r, steps: [{id: right, \
    type: human_in_the_loop, message: right?, expectedInputSchema: {type: object, \
    required: [name]}}]}], nextStepId: end}, {id: end, type: final_response, message: ok}]";

fn session() -> SessionRef {
    SessionRef::Key { key: "s".into(), space: None }
}

fn said(words: &str) -> Reply {
    Reply::Clarify { answer: Some(json!(words)) }
}

fn form(content: serde_json::Value) -> Reply {
    Reply::Fill { content: Some(content) }
}

/// A run that waits for both; the asks of the left and of the right branch.
async fn waiting(world: &World) -> (AskId, AskId) {
    let report = world.run("both", json!({}), "s").await;
    let of = |step: &str| {
        let asks = report.asks.iter().map(|asked| &asked.row.ask);
        asks.filter(|ask| ask.step.as_str() == step).map(|ask| ask.id).next().unwrap()
    };
    (of("left"), of("right"))
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_to_two_asks_count_in_one_append() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[BOTH]).await;
    let (left, right) = waiting(&world).await;
    let replies = vec![(left, said("yes")), (right, form(json!({"name": "Ann"})))];
    let report =
        world.engine.asks().reply_all(&caller(), &session(), replies.clone(), None, WAIT_MS).await;
    assert_eq!(report.unwrap().run.status.name(), "completed");
    let rows = world.engine.feed().rows(&caller(), 0, 100).await.unwrap();
    let decided = |body: &str| body.matches("ask.decided").count();
    let counts: Vec<usize> = rows.iter().map(|row| decided(&row.body)).collect();
    assert_eq!(counts.iter().filter(|count| **count == 2).count(), 1, "{counts:?}");
    let again = world.engine.asks().reply_all(&caller(), &session(), replies, None, 1_000).await;
    assert_eq!(again.unwrap_err().code.name(), "ask_decided");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_invalid_reply_rejects_all() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[BOTH]).await;
    let (left, right) = waiting(&world).await;
    for (replies, code) in [
        (vec![(left, said("yes")), (right, form(json!({})))], "input_misfit"),
        (vec![(left, said("yes")), (right, said("yes"))], "other_kind"),
        (vec![(left, said("yes")), (left, said("no"))], "answered_twice"),
        (vec![(left, said("yes")), (AskId(7), said("yes"))], "not_found"),
        (vec![], "no_replies"),
    ] {
        let refused =
            world.engine.asks().reply_all(&caller(), &session(), replies, None, 1_000).await;
        assert_eq!(refused.unwrap_err().code.name(), code);
    }
    let replies = vec![(left, said("yes"))];
    let report = world.engine.asks().reply_all(&caller(), &session(), replies, None, WAIT_MS).await;
    let report = report.unwrap();
    assert_eq!((report.run.status.name(), report.asks.len()), ("waiting", 1), "both were open");
}

/// How often a caller waits for nothing: a refusal that comes a little later must not be missed.
const HASTY: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_does_not_wait_still_gets_the_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[BOTH]).await;
    let (_, right) = waiting(&world).await;
    for _ in 0..HASTY {
        let asks = world.engine.asks();
        let replies = vec![(right, form(json!({})))];
        let refused = asks.reply_all(&caller(), &session(), replies, None, 0).await;
        assert_eq!(refused.unwrap_err().code.name(), "input_misfit");
        let refused = asks.reply(&caller(), right, form(json!({})), None, 0).await;
        assert_eq!(refused.unwrap_err().code.name(), "input_misfit");
        let request = world.request("both", json!({}), "s");
        let refused = world.engine.runs().start(&caller(), request, 0).await;
        assert_eq!(refused.unwrap_err().code.name(), "run_active");
    }
}
