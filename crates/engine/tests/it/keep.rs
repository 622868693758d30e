//! Sessions as a whole: forked, exported, tried again, removed when they are old. And calls that
//! come back too late.

use crate::world::{World, caller};
use kernel::ask::{AskBody, CallDecision, FixAction, Reply};
use kernel::call::HowFar;
use kernel::contracts::{AskFilter, Page, SessionRef};
use kernel::limits::Limits;
use serde_json::json;

const WRITE: &str = "planId: write\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {n: 1}, saveAs: out, nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";
const FAIL: &str = "planId: fail\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {fail: true}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: end}, \
    {id: end, type: final_response, message: '{{ context.human_input }}'}]";
const APPROVE: &str = "planId: approve\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    approve: true, nextStepId: end}, {id: end, type: final_response, message: ok}]";

fn key(name: &str) -> SessionRef {
    SessionRef::Key { key: name.into(), space: None }
}

fn answer(words: &str) -> Reply {
    Reply::Clarify { answer: Some(json!(words)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_asks_under_its_own_id_and_goes_another_way() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let asking = world.run("ask", json!({}), "s").await;
    let ask = asking.asks[0].row.ask.clone();
    let at = asking.session.seq;
    let first = world.engine.reply(&caller(), ask.id, answer("Ann"), None, 10_000).await.unwrap();
    assert_eq!(first.run.run.answer, Some(json!("Ann")));

    let fork = world.engine.fork(&caller(), &key("s"), Some(at)).await.unwrap();
    assert_ne!(fork.id, asking.session.id);
    assert_eq!((fork.status.name(), &*fork.key.id), ("waiting", fork.id.to_string().as_str()));
    let report = world.engine.run_report(&caller(), fork.run.unwrap()).await.unwrap();
    let again = &report.asks[0].row.ask;
    assert!(again.id != ask.id && again.digest != ask.digest && again.run != ask.run);
    let second = world.engine.reply(&caller(), again.id, answer("Eve"), None, 10_000).await;
    assert_eq!(second.unwrap().run.run.answer, Some(json!("Eve")));
    let source = world.engine.inspect(&caller(), &key("s")).await.unwrap();
    assert_eq!(source.context["human_input"], json!("Ann"), "the fork reached back");

    // The whole session, when no event is named: it is over here too.
    let whole = world.engine.fork(&caller(), &key("s"), None).await.unwrap();
    assert_eq!(whole.status.name(), "completed");
    let late = world.engine.fork(&caller(), &key("s"), Some(10_000)).await.unwrap_err();
    assert_eq!(late.code, "bad_fork_point");
    world.crash().await;
    let world = World::open(folder.path(), &[]).await;
    let kept = world.engine.inspect(&caller(), &SessionRef::Id(fork.id)).await.unwrap();
    assert_eq!(kept.context["human_input"], json!("Eve"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_keeps_no_approval_and_repeats_no_write() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[APPROVE]).await;
    let asking = world.run("approve", json!({}), "s").await;
    let ask = asking.asks[0].row.ask.clone();
    let AskBody::Approve { calls } = &ask.body else { panic!("not an approval") };
    let call_id = calls[0].call_id;
    let decision = CallDecision { call_id, approve: true, feedback: None, arguments: None };
    let reply = Reply::Approve { decisions: vec![decision] };
    let approved = world.engine.reply(&caller(), ask.id, reply, None, 0).await.unwrap();
    world.until("the write to be sent", |world| world.sent() == 1).await;

    // Right after the decision: asked again.
    let decided = asking.session.seq + 1;
    let fork = world.engine.fork(&caller(), &key("s"), Some(decided)).await.unwrap();
    assert_eq!(fork.status.name(), "waiting");
    // While the write is under way: nobody here knows how it ends.
    let fork = world.engine.fork(&caller(), &key("s"), None).await.unwrap();
    let report = world.until_status(fork.run.unwrap(), "stuck").await;
    let AskBody::Fix { how, .. } = &report.asks[0].row.ask.body else { panic!("not a fix") };
    assert_eq!((*how, world.sent()), (HowFar::Unknown, 1));
    world.permits.add_permits(1);
    world.until_status(approved.run.run.id, "completed").await;
    assert_eq!(world.sent(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_the_whole_journal_and_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { export_events_max: 7, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[WRITE, ASK], limits).await;
    world.permits.add_permits(1);
    let asking = world.run("ask", json!({}), "a").await;
    let export = world.engine.export(&caller(), &key("a")).await.unwrap();
    let events = export["events"].as_array().unwrap();
    assert_eq!(events.len() as u64, asking.session.seq);
    assert_eq!((&events[0]["type"], &events[0]["seq"]), (&json!("session.created"), &json!(1)));
    assert_eq!(export["session"]["id"], json!(asking.session.id));
    let written = world.run("write", json!({}), "w").await;
    assert!(written.session.seq > 7, "the plan has become too short for this test");
    let refusal = world.engine.export(&caller(), &key("w")).await.unwrap_err();
    assert_eq!(refusal.code, "export_events_max");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_sessions_are_removed_unless_they_wait_for_someone() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { prune_batch_max: 2, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[WRITE, ASK], limits).await;
    world.permits.add_permits(10);
    for name in ["a", "b", "c", "d", "e"] {
        world.run("write", json!({}), name).await;
    }
    world.engine.create_session(&caller(), Some("empty".to_owned())).await.unwrap();
    let waiting = world.run("ask", json!({}), "waits").await;
    world.until("the drivers to end", |world| world.engine.counts().sessions_active == 0).await;
    let young = world.engine.prune(&caller(), 3_600_000).await.unwrap();
    assert_eq!(young, engine::Pruned::default());
    let clock = world.engine.clock();
    clock.sleep_until(clock.now().plus_ms(5)).await;
    let stranger = kernel::call::Caller { realm: "other".into(), ..caller() };
    assert_eq!(world.engine.prune(&stranger, 0).await.unwrap().sessions, 0);
    let pruned = world.engine.prune(&caller(), 0).await.unwrap();
    assert_eq!(pruned.sessions, 6);
    assert!(pruned.rows > 6, "{pruned:?}");
    let page = Page { cursor: None, limit: 50 };
    let left = world.engine.sessions(&caller(), &Default::default(), &page).await.unwrap();
    let left: Vec<_> = left.items.iter().map(|row| row.id).collect();
    assert_eq!(left, [waiting.session.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_realm_keeps_its_sessions_as_long_as_it_says() {
    // The limits' own time, the realm's, and whether a session that is over stays.
    for (limit, own, stays) in [(1, Some(0), true), (0, Some(1), false), (1, None, false)] {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { session_ttl_ms: limit, ..Limits::default() };
        let ttls = own.map(|own| (caller().realm, own)).into_iter().collect();
        let world = World::with_ttls(folder.path(), &[WRITE], limits, ttls).await;
        world.permits.add_permits(1);
        world.run("write", json!({}), "a").await;
        world.until("the driver to end", |world| world.engine.counts().sessions_active == 0).await;
        let clock = world.engine.clock();
        clock.sleep_until(clock.now().plus_ms(10)).await;
        world.engine.prune_expired().await;
        let found = world.engine.session(&caller(), &key("a")).await;
        assert_eq!(found.is_ok(), stays, "{limit} {own:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_is_tried_again_by_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[FAIL, ASK]).await;
    world.permits.add_permits(2);
    let stuck = world.run("fail", json!({}), "s").await;
    let again = world.engine.retry(&caller(), stuck.run.id, 10_000).await.unwrap();
    assert_eq!((again.run.status.name(), world.sent()), ("stuck", 2));
    let asking = world.run("ask", json!({}), "a").await;
    let refusal = world.engine.retry(&caller(), asking.run.id, 1_000).await.unwrap_err();
    assert_eq!(refusal.code, "no_open_ask");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_success_settles_its_open_ask() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { call_timeout_ms: 1_000, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[WRITE], limits).await;
    let stuck = world.run("write", json!({}), "s").await;
    assert_eq!(stuck.run.last_error.unwrap().name, "Timeout");
    world.permits.add_permits(1);
    let report = world.until_status(stuck.run.id, "completed").await;
    assert_eq!((report.run.answer, world.sent()), (Some(json!("ok")), 1));
    let asks = AskFilter { run: Some(stuck.run.id), ..AskFilter::default() };
    let page = Page { cursor: None, limit: 10 };
    let asks = world.engine.asks(&caller(), &asks, &page).await.unwrap();
    assert_eq!(asks.items[0].row.status.name(), "withdrawn");
    let events = world.engine.events(&caller(), &key("s"), 0, 100).await.unwrap();
    assert!(events.iter().any(|(_, event)| event.contains("\"settled\"")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_after_the_decision_is_recorded_only() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { call_timeout_ms: 1_000, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[WRITE], limits).await;
    let stuck = world.run("write", json!({}), "s").await;
    let reply =
        Reply::Fix { action: FixAction::Skip, arguments: None, output: Some(json!("mine")) };
    let ask = stuck.asks[0].row.ask.id;
    let skipped = world.engine.reply(&caller(), ask, reply, None, 10_000).await.unwrap();
    assert_eq!(skipped.run.run.status.name(), "completed");
    world.permits.add_permits(1);
    for _ in 0..500 {
        let events = world.engine.events(&caller(), &key("s"), 0, 100).await.unwrap();
        if events.iter().any(|(_, event)| event.contains("call.late")) {
            let context = world.engine.inspect(&caller(), &key("s")).await.unwrap().context;
            assert_eq!(context["out"], json!("mine"), "a late result was applied");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the late result was not recorded");
}
