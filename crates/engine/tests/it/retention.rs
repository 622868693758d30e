//! Sessions as a whole: forked, exported, tried again, removed when they are old. And calls that
//! come back too late.

use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, World, caller};
use futures::TryStreamExt;
use kernel::ask::{AskBody, CallDecision, FixAction, Reply};
use kernel::contracts::{AskFilter, LoadResult, PageRequest, SessionRef};
use kernel::event::{self, Event, Fact, VERSION};
use kernel::journal::projection::Append;
use kernel::limits::Limits;
use kernel::session::Session;
use kernel::tool::call::CallProgress;
use kernel::values::fault::Fault;
use kernel::values::ids::{CallId, Fence, Millis, SessionId, Space};
use serde_json::{Value, json};

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

/// How long a call may take, and how long it is waited for after that: a busy machine must get its
/// result out in the second half.
const LATE_MS: u64 = 5_000;

fn key(name: &str) -> SessionRef {
    SessionRef::Key { key: name.into(), space: None }
}

/// The export of a session, read to its end.
async fn exported(world: &World, session: &str) -> Value {
    let pieces = world.engine.sessions().export(&caller(), &key(session)).await.unwrap();
    let pieces: Vec<String> = pieces.try_collect().await.unwrap();
    serde_json::from_str(&pieces.concat()).unwrap()
}

fn answer(words: &str) -> Reply {
    Reply::Clarify { answer: Some(json!(words)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_its_own_asks_and_diverges() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let asking = world.run("ask", json!({}), "s").await;
    let ask = asking.asks[0].row.ask.clone();
    let at = asking.session.seq;
    let first =
        world.engine.asks().reply(&caller(), ask.id, answer("Ann"), None, WAIT_MS).await.unwrap();
    assert_eq!(first.run.run.answer, Some(json!("Ann")));

    let fork = world.engine.sessions().fork(&caller(), &key("s"), Some(at)).await.unwrap();
    assert_ne!(fork.id, asking.session.id);
    assert_eq!((fork.status.name(), &*fork.key.id), ("waiting", fork.id.to_string().as_str()));
    let report = world.engine.runs().report(&caller(), fork.run.unwrap()).await.unwrap();
    let again = &report.asks[0].row.ask;
    assert!(again.id != ask.id && again.digest != ask.digest && again.run != ask.run);
    let second = world.engine.asks().reply(&caller(), again.id, answer("Eve"), None, WAIT_MS).await;
    assert_eq!(second.unwrap().run.run.answer, Some(json!("Eve")));
    let source = world.engine.sessions().inspect(&caller(), &key("s")).await.unwrap();
    assert_eq!(source.context["human_input"], json!("Ann"), "the fork reached back");

    // The whole session, when no event is named: it is over here too.
    let whole = world.engine.sessions().fork(&caller(), &key("s"), None).await.unwrap();
    assert_eq!(whole.status.name(), "completed");
    let late = world.engine.sessions().fork(&caller(), &key("s"), Some(10_000)).await.unwrap_err();
    assert_eq!(late.code.name(), "bad_fork_point");
    world.crash().await;
    let world = World::open(folder.path(), &[]).await;
    let kept = world.engine.sessions().inspect(&caller(), &SessionRef::Id(fork.id)).await.unwrap();
    assert_eq!(kept.context["human_input"], json!("Eve"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_can_be_pinned_again_after_its_last_session_was_removed() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let ask = world.run("ask", json!({}), "s").await.asks[0].row.ask.id;
    world.engine.asks().reply(&caller(), ask, answer("Ann"), None, WAIT_MS).await.unwrap();
    world.engine.sessions().remove(&caller(), &key("s")).await.unwrap();
    let ask = world.run("ask", json!({}), "t").await.asks[0].row.ask.id;
    let fork = world.engine.sessions().fork(&caller(), &key("t"), None).await.unwrap();
    world.engine.asks().reply(&caller(), ask, answer("Ann"), None, WAIT_MS).await.unwrap();
    world.engine.sessions().remove(&caller(), &key("t")).await.unwrap();
    world.crash().await;
    // Nothing is left but the fork, and its plan is in no file any more.
    let world = World::open(folder.path(), &[]).await;
    let report = world.engine.runs().report(&caller(), fork.run.unwrap()).await.unwrap();
    let ask = report.asks[0].row.ask.id;
    let second = world.engine.asks().reply(&caller(), ask, answer("Eve"), None, WAIT_MS).await;
    assert_eq!(second.unwrap().run.run.answer, Some(json!("Eve")));
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
    let approved = world.engine.asks().reply(&caller(), ask.id, reply, None, 0).await.unwrap();
    world.until("the write to be sent", |world| world.sent() == 1).await;

    // Right after the decision: asked again.
    let decided = asking.session.seq + 1;
    let fork = world.engine.sessions().fork(&caller(), &key("s"), Some(decided)).await.unwrap();
    assert_eq!(fork.status.name(), "waiting");
    // While the write is under way: nobody here knows how it ends.
    let fork = world.engine.sessions().fork(&caller(), &key("s"), None).await.unwrap();
    let report = world.until_status(fork.run.unwrap(), "stuck").await;
    let AskBody::Fix { how, .. } = &report.asks[0].row.ask.body else { panic!("not a fix") };
    assert_eq!((*how, world.sent()), (CallProgress::Unknown, 1));
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
    let export = exported(&world, "a").await;
    let events = export["events"].as_array().unwrap();
    assert_eq!(events.len() as u64, asking.session.seq);
    assert_eq!((&events[0]["type"], &events[0]["seq"]), (&json!("session.created"), &json!(1)));
    assert_eq!(export["session"]["id"], json!(asking.session.id));
    let written = world.run("write", json!({}), "w").await;
    assert!(written.session.seq > 7, "the plan has become too short for this test");
    let refusal = world.engine.sessions().export(&caller(), &key("w")).await.err().unwrap();
    assert_eq!(refusal.code.name(), "export_events_max");
}

#[tokio::test(flavor = "multi_thread")]
async fn active_exports_are_bounded_and_a_dropped_one_frees_its_slot() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { exports_active_max: 1, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[ASK], limits).await;
    world.run("ask", json!({}), "a").await;
    let mut first = world.engine.sessions().export(&caller(), &key("a")).await.unwrap();
    let begun = first.try_next().await.unwrap().unwrap();
    assert!(begun.starts_with("{\"events\":[{"), "{begun}");
    // Its client reads nothing more of it.
    let refusal = world.engine.sessions().export(&caller(), &key("a")).await.err().unwrap();
    assert_eq!(refusal.code.name(), "too_many_exports");
    drop(first);
    let export = exported(&world, "a").await;
    assert_eq!(export["events"][0]["type"], "session.created");
    exported(&world, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cached_session_changed_by_another_writer_is_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    world.permits.add_permits(2);
    let first = world.run("write", json!({}), "s").await;
    assert_eq!(first.run.status.name(), "completed");
    let rests = |world: &World| world.engine.counts().sessions_active == 0;
    world.until("the session rests", rests).await;
    // As another process would write it.
    let key = first.session.key;
    let LoadResult::Found(stored) = world.store.load(&key, None).await.unwrap() else {
        panic!("the session is not there");
    };
    let mut session = Session::new(stored.id, key.clone());
    for row in &stored.tail {
        event::read(row).unwrap().iter().for_each(|event| drop(session.apply(event)));
    }
    let seq = session.seq + 1;
    let fact = Fact::TimerFired { timer: "theirs".to_owned() };
    let theirs = Event { seq, at: Millis(1), v: VERSION, fact };
    session.apply(&theirs);
    let append = Append::new(&session, stored.fence, &[theirs], Vec::new(), Millis(1)).unwrap();
    world.store.append(append).await.unwrap();
    let second = world.run("write", json!({}), "s").await;
    assert_eq!(second.run.status.name(), "completed");
    let events = world.store.events(&key, 0, 1_000).await.unwrap();
    let seqs: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, (1..=second.session.seq).collect::<Vec<_>>(), "one after the other");
    assert!(events[seq as usize - 1].1.contains("theirs"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_journal_is_exported_and_forked_in_slices() {
    const EVENTS: u64 = 20_001;
    // A loop of as many items as one may have, each with one call, is within the limit.
    let limits = Limits::default();
    assert!(limits.export_events_max > 6 * limits.loop_items_max);
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    let id = SessionId(7);
    let long = caller().key(Space::session(), "long");
    let event = |seq: u64| {
        let result = Err(Fault::new("Late", "too late to count"));
        let fact = match seq {
            1 => Fact::SessionCreated { id, key: long.clone(), owner: long.owner.clone() },
            _ => Fact::CallLate { call: CallId(seq.into()), result },
        };
        Event { seq, at: Millis(1), v: VERSION, fact }
    };
    let events: Vec<Event> = (1..=EVENTS).map(event).collect();
    let mut session = Session::new(id, long.clone());
    let mut fence = Fence::NONE;
    for slice in events.chunks(1_000) {
        slice.iter().for_each(|event| drop(session.apply(event)));
        let append = Append::new(&session, fence, slice, Vec::new(), Millis(1)).unwrap();
        world.store.append(append).await.unwrap();
        fence = fence.next();
    }

    let export = exported(&world, "long").await;
    let exported = export["events"].as_array().unwrap();
    assert_eq!(exported.len() as u64, EVENTS);
    assert_eq!(exported.last().unwrap()["seq"], json!(EVENTS));
    assert_eq!((&export["history"], &export["session"]["seq"]), (&json!([]), &json!(EVENTS)));

    let fork = world.engine.sessions().fork(&caller(), &key("long"), None).await.unwrap();
    assert_eq!(fork.seq, EVENTS + 1, "all of it, and where it comes from");
    let page =
        world.engine.sessions().events(&caller(), &SessionRef::Id(fork.id), EVENTS - 1, 10).await;
    let kinds: Vec<Value> = page.unwrap().iter().map(|(_, text)| kind(text)).collect();
    assert_eq!(kinds, ["call.late", "session.forked"]);
}

fn kind(event: &str) -> Value {
    serde_json::from_str::<Value>(event).unwrap()["type"].take()
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
    world.engine.sessions().create(&caller(), Some("empty".to_owned())).await.unwrap();
    let waiting = world.run("ask", json!({}), "waits").await;
    world.until("the drivers to end", |world| world.engine.counts().sessions_active == 0).await;
    let young = world.engine.admin().prune(&caller(), 3_600_000).await.unwrap();
    assert_eq!(young, engine::PruneReport::default());
    let clock = world.engine.clock();
    clock.sleep_until(clock.now().plus_ms(5)).await;
    let stranger = kernel::tool::call::Caller { realm: "other".into(), ..caller() };
    assert_eq!(world.engine.admin().prune(&stranger, 0).await.unwrap().sessions, 0);
    let pruned = world.engine.admin().prune(&caller(), 0).await.unwrap();
    assert_eq!(pruned.sessions, 6);
    assert!(pruned.rows > 6, "{pruned:?}");
    assert_eq!(world.engine.counts().sessions_removed, 6);
    let page = PageRequest { cursor: None, limit: 50 };
    let left = world.engine.sessions().list(&caller(), &Default::default(), &page).await.unwrap();
    let left: Vec<_> = left.items.iter().map(|row| row.id).collect();
    assert_eq!(left, [waiting.session.id]);
}

const LARGE: &str = "planId: large\nsteps: [{id: make, type: tool_call, toolId: 'slow::read', \
    arguments: {repeat: {jsonPath: $.promptInput.bytes}}, \
    saveAs: big, nextStepId: end}, {id: end, type: final_response, message: ok}]";

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_of_an_active_session_are_trimmed() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { snapshot_floor_bytes: 256, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[WRITE, ASK], limits).await;
    world.permits.add_permits(10);
    let once = engine::IdempotencyKey::new(
        "POST /runs".to_owned(),
        "k".to_owned(),
        kernel::values::ids::ContentHash::of(b"body"),
    );
    let keyed = engine::RunRequest { once: Some(once), ..world.request("write", json!({}), "s") };
    let first = world.engine.runs().start(&caller(), keyed.clone(), WAIT_MS).await.unwrap();
    let second = world.run("ask", json!({}), "s").await;
    let ask = second.asks[0].row.ask.id;
    world.engine.asks().reply(&caller(), ask, answer("Ann"), None, WAIT_MS).await.unwrap();
    let cut = world.engine.sessions().get(&caller(), &key("s")).await.unwrap().seq;
    let waiting = world.run("ask", json!({}), "s").await;
    let before = world.engine.sessions().inspect(&caller(), &key("s")).await.unwrap();
    world.at_rest().await;
    let pruned = world.engine.admin().prune(&caller(), 0).await.unwrap();
    assert_eq!((pruned.sessions, pruned.runs), (0, 2), "{pruned:?}");
    assert_eq!(
        world.engine.runs().start(&caller(), keyed, 0).await.unwrap_err().code.name(),
        "gone"
    );
    let again = world.engine.admin().prune(&caller(), 0).await.unwrap();
    assert_eq!(again, engine::PruneReport { rows: 1, ..Default::default() }, "the key, at last");

    let after = world.engine.sessions().inspect(&caller(), &key("s")).await.unwrap();
    assert_eq!((&after.row, &after.context), (&before.row, &before.context));
    let events = world.engine.sessions().events(&caller(), &key("s"), 0, 100).await.unwrap();
    assert_eq!(events[0].0, cut);
    assert!(events[0].1.contains("\"base.set\""), "{}", events[0].1);
    let refusal =
        world.engine.sessions().events(&caller(), &key("s"), cut - 1, 100).await.unwrap_err();
    assert_eq!(refusal.code.name(), "cursor_gone");
    for run in [first.run.id, second.run.id] {
        let refusal = world.engine.runs().report(&caller(), run).await.unwrap_err();
        assert_eq!(refusal.code.name(), "not_found");
    }
    assert_eq!(world.engine.asks().get(&caller(), ask).await.unwrap_err().code.name(), "not_found");
    let export = exported(&world, "s").await;
    assert_eq!(export["events"].as_array().unwrap().len(), events.len());
    assert_eq!(export["history"], json!([]), "the newest run has called nothing");
    world.crash().await;

    // The session continues after a restart: same context, the next number, its own asks.
    let world = World::open(folder.path(), &[WRITE]).await;
    world.permits.add_permits(1);
    let open = waiting.asks[0].row.ask.id;
    let done =
        world.engine.asks().reply(&caller(), open, answer("Eve"), None, WAIT_MS).await.unwrap();
    assert_eq!((done.run.run.no, done.run.run.answer), (3, Some(json!("Eve"))));
    let next = world.run("write", json!({}), "s").await;
    assert_eq!((next.run.no, next.run.status.name()), (4, "completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trimmed_session_is_forked_from_its_base() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { export_events_max: 12, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[WRITE, ASK], limits).await;
    world.permits.add_permits(10);
    for _ in 0..3 {
        world.run("write", json!({}), "s").await;
    }
    let cut = world.engine.sessions().get(&caller(), &key("s")).await.unwrap().seq;
    assert!(cut > 12, "the plan has become too short for this test");
    let waiting = world.run("ask", json!({}), "s").await;
    world.at_rest().await;
    assert_eq!(world.engine.admin().prune(&caller(), 0).await.unwrap().runs, 3);
    let refusal =
        world.engine.sessions().fork(&caller(), &key("s"), Some(cut - 1)).await.unwrap_err();
    assert_eq!(refusal.code.name(), "fork_point_gone");
    assert!(refusal.hint.unwrap().contains(&cut.to_string()));
    // At the base itself: what the runs left, and nothing more.
    let empty = world.engine.sessions().fork(&caller(), &key("s"), Some(cut)).await.unwrap();
    assert_eq!((empty.run, empty.created_at), (None, empty.updated_at));
    let left = world.engine.sessions().inspect(&caller(), &SessionRef::Id(empty.id)).await.unwrap();
    assert_eq!(left.context["out"], json!({"got": {"n": 1}}));
    // What is too long for a fork is what is there, not what was.
    let whole = world.engine.sessions().fork(&caller(), &key("s"), None).await.unwrap();
    let report = world.engine.runs().report(&caller(), whole.run.unwrap()).await.unwrap();
    assert_eq!((report.run.no, report.run.status.name()), (4, "waiting"));
    assert_ne!(report.asks[0].row.ask.id, waiting.asks[0].row.ask.id);
    let events =
        world.engine.sessions().events(&caller(), &SessionRef::Id(whole.id), 0, 3).await.unwrap();
    assert!(events[0].1.contains("\"session.created\"") && events[1].1.contains("\"base.set\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_go_with_the_last_session_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        context_inline_bytes_max: 256,
        blob_grace_ms: 1,
        prune_batch_max: 1,
        ..Limits::default()
    };
    let world = World::with_limits(folder.path(), &[LARGE, ASK], limits).await;
    world.permits.add_permits(10);
    for (bytes, session) in [(1_000, "a"), (1_000, "b"), (2_000, "a")] {
        world.run("large", json!({"bytes": bytes}), session).await;
    }
    let hash = |bytes: usize| {
        let text = json!("x".repeat(bytes)).to_string();
        kernel::values::ids::ContentHash::of(text.as_bytes())
    };
    let has =
        async |bytes: usize| world.engine.sessions().blob(&caller(), &hash(bytes)).await.is_ok();
    assert!(has(1_000).await && has(2_000).await);
    world.at_rest().await;
    world.engine.admin().prune_expired().await;
    assert!(has(1_000).await && has(2_000).await, "they are named");
    // The first run of `a` goes; `b` still names what it made.
    world.run("ask", json!({}), "a").await;
    world.at_rest().await;
    assert_eq!(world.engine.admin().prune(&caller(), 3_600_000).await.unwrap().runs, 0);
    world.engine.sessions().remove(&caller(), &key("b")).await.unwrap();
    assert_eq!(world.engine.admin().prune(&caller(), 0).await.unwrap().runs, 2);
    world.at_rest().await;
    world.engine.admin().prune_expired().await;
    assert!(!has(1_000).await, "nothing names it any more");
    assert!(has(2_000).await, "it is in the context that the runs left");
}

#[tokio::test(flavor = "multi_thread")]
async fn session_retention_is_per_realm() {
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
        world.engine.admin().prune_expired().await;
        let found = world.engine.sessions().get(&caller(), &key("a")).await;
        assert_eq!(found.is_ok(), stays, "{limit} {own:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_is_retried_by_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[FAIL, ASK]).await;
    world.permits.add_permits(2);
    let stuck = world.run("fail", json!({}), "s").await;
    let again = world.engine.runs().retry(&caller(), stuck.run.id, WAIT_MS).await.unwrap();
    assert_eq!((again.run.status.name(), world.sent()), ("stuck", 2));
    let asking = world.run("ask", json!({}), "a").await;
    let refusal = world.engine.runs().retry(&caller(), asking.run.id, 1_000).await.unwrap_err();
    assert_eq!(refusal.code.name(), "no_open_ask");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_success_settles_its_open_ask() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { call_timeout_ms: LATE_MS, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[WRITE], limits).await;
    let stuck = world.run("write", json!({}), "s").await;
    assert_eq!(stuck.run.last_error.unwrap().name, "Timeout");
    world.permits.add_permits(1);
    let report = world.until_status(stuck.run.id, "completed").await;
    assert_eq!((report.run.answer, world.sent()), (Some(json!("ok")), 1));
    let asks = AskFilter { run: Some(stuck.run.id), ..AskFilter::default() };
    let page = PageRequest { cursor: None, limit: 10 };
    let asks = world.engine.asks().list(&caller(), &asks, &page).await.unwrap();
    assert_eq!(asks.items[0].row.status.name(), "withdrawn");
    let events = world.engine.sessions().events(&caller(), &key("s"), 0, 100).await.unwrap();
    assert!(events.iter().any(|(_, event)| event.contains("\"settled\"")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_after_the_decision_is_recorded_only() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { call_timeout_ms: LATE_MS, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[WRITE], limits).await;
    let stuck = world.run("write", json!({}), "s").await;
    let reply = crate::fix(FixAction::Skip, Some(json!("mine")));
    let ask = stuck.asks[0].row.ask.id;
    let skipped = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(skipped.run.run.status.name(), "completed");
    world.permits.add_permits(1);
    for _ in 0..LOOKS_MAX {
        let events = world.engine.sessions().events(&caller(), &key("s"), 0, 100).await.unwrap();
        if events.iter().any(|(_, event)| event.contains("call.late")) {
            let context =
                world.engine.sessions().inspect(&caller(), &key("s")).await.unwrap().context;
            assert_eq!(context["out"], json!("mine"), "a late result was applied");
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("the late result was not recorded");
}
