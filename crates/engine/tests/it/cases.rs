//! Cases of pipelines: the deterministic road and the agent's, who waits for whom, and what is
//! counted.

use crate::model::{Says, Scripted, text, told};
use crate::world::{WAIT_MS, World, caller};
use engine::{
    CaseReport, IdempotencyKey, PipelineFile, Refusal, RefusalKind, RunReport, SubmitOptions,
};
use futures::FutureExt;
use kernel::ask::Reply;
use kernel::contracts::SessionRef;
use kernel::definition::pipeline::TallyRow;
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use kernel::values::ids::{ContentHash, Space};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

const SLOW: &str = "planId: slow\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: {jsonPath: $.promptInput.n}}, saveAs: out, nextStepId: end}, \
    {id: end, type: final_response, message: {jsonPath: $.context.out}}]";
/// Asks first, in a step that is called like the pipeline's own for its agent, and takes its time
/// then.
const ASK: &str = "planId: ask\nsteps: [{id: agent, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: call}, {id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: 0}, nextStepId: end}, {id: end, type: final_response, message: done}]";
const CASES: &str = "\
http: {route: /cases}
schema: {caseIdField: id, allowedFields: [id, reason, n], requiredFields: [id, reason]}
handlers:
  - {reason: known, type: escalate}
  - {reason: slow, plan: slow}
  - {reason: ask, plan: ask}
tools: ['slow::read']
llm: {type: model, params: {name: fast}}
";

/// Long enough to begin something, and too short for what is held back.
const SHORT_MS: u64 = 30;

fn file(name: &str, text: &str) -> PipelineFile {
    PipelineFile {
        file: format!("pipelines/{name}.yaml"),
        text: text.to_owned(),
        default_name: name.into(),
    }
}

async fn world_with(folder: &Path, model: &Arc<Scripted>, limits: Limits) -> World {
    let world = World::talking(folder, (&[SLOW, ASK], &[]), limits, model.models()).await;
    let set = world.engine.catalog().set_pipelines(&"default".into(), vec![file("cases", CASES)]);
    assert_eq!(set, Ok(Vec::new()));
    world
}

/// A world in which nobody should ask the model.
async fn world(folder: &Path) -> World {
    world_with(folder, &Scripted::new([]), Limits::default()).await
}

async fn submit_with(
    world: &World,
    body: Value,
    options: SubmitOptions,
) -> Result<CaseReport, Refusal> {
    let pipeline = world.engine.catalog().pipeline(&caller(), &"cases".into()).unwrap();
    let case = pipeline.admit(&body).unwrap();
    world.engine.cases().submit(&caller(), &pipeline, case, options).await
}

async fn submit(world: &World, body: Value, wait_ms: u64) -> Result<CaseReport, Refusal> {
    submit_with(world, body, SubmitOptions { wait_ms, ..SubmitOptions::default() }).await
}

/// A case whose handler takes its time.
fn slow(id: &str, n: u64) -> Value {
    json!({"id": id, "reason": "slow", "n": n})
}

#[track_caller]
fn ran(report: Result<CaseReport, Refusal>) -> RunReport {
    match report {
        Ok(CaseReport::Ran(report)) => report,
        other => panic!("it did not run to its end: {other:?}"),
    }
}

fn session(id: &str) -> SessionRef {
    SessionRef::Key { key: id.into(), space: Some(Space::case(&"cases".into())) }
}

/// The journal of a case.
async fn journal(world: &World, id: &str) -> Vec<Value> {
    let events = world.engine.sessions().events(&caller(), &session(id), 0, 1_000).await.unwrap();
    events.iter().map(|(_, text)| serde_json::from_str(text).unwrap()).collect()
}

/// What the slow tool was sent, in order.
fn sent(world: &World) -> Vec<Value> {
    let ledger = world.ledger.0.lock().unwrap();
    ledger.iter().map(|(_, arguments)| arguments["n"].clone()).collect()
}

/// Polls a request once, so that it stands where it waits.
macro_rules! begun {
    ($request:expr) => {{
        let mut request = Box::pin($request);
        assert!((&mut request).now_or_never().is_none(), "it did not wait");
        request
    }};
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_reason_asks_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([]);
    let world = world_with(folder.path(), &model, Limits::default()).await;
    let body = json!({"id": "T-1", "reason": "known", "correlationId": "mine"});
    let done = ran(submit(&world, body, WAIT_MS).await);
    let event = json!({"type": "TradeEscalated", "id": "T-1", "by": "deterministic-processor",
        "reason": "known"});
    let answer = json!({"status": "ok", "path": "deterministic", "resultEvent": event});
    assert_eq!(done.run.answer, Some(answer));
    assert_eq!(done.session.key.space.as_str(), "case:cases");
    let journal = journal(&world, "T-1").await;
    let types: Vec<&str> = journal.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert!(!types.iter().any(|kind| kind.starts_with("turn.") || kind.starts_with("agent.")));
    let published: Vec<&Value> = journal
        .iter()
        .filter(|event| event["type"] == "event.published")
        .map(|event| &event["data"]["published"])
        .collect();
    assert_eq!(published, [&json!({"source": "events.out", "event": event})]);
    let input = &journal[1]["data"]["input"]["value"];
    assert_eq!(*input, json!({"id": "T-1", "reason": "known"}), "it was not whittled");
    assert_eq!(model.asked(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_reason_goes_to_the_agent_and_the_case_keeps_its_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let command = |n: u64| {
        let args = json!({"n": n});
        json!({"intent": "CALL_TOOL", "tool": "slow::read", "args": args}).to_string()
    };
    let before = Scripted::new([text(&command(1))]);
    let first = world_with(folder.path(), &before, Limits::default()).await;
    first.permits.add_permits(1);
    let case = |id: &str, why: &str| json!({"id": id, "reason": why});
    let done = ran(submit(&first, case("T-1", "odd"), WAIT_MS).await);
    let answer = json!({"status": "ok", "path": "agent", "result": {"got": {"n": 1}}, "id": "T-1"});
    assert_eq!(done.run.answer, Some(answer));
    first.crash().await;

    let model = Scripted::new([text(&command(2)), text(&command(3))]);
    let world = world_with(folder.path(), &model, Limits::default()).await;
    world.permits.add_permits(2);
    let again = ran(submit(&world, case("T-1", "still odd"), WAIT_MS).await);
    assert_eq!(again.run.no, 2);
    let lines = told(&model.prompt(0));
    assert_eq!(lines[0], format!("user: {}", case("T-1", "odd")));
    assert!(lines.iter().any(|line| line.ends_with("{\"got\":{\"n\":1}}")), "{lines:?}");
    assert_eq!(*lines.last().unwrap(), format!("user: {}", case("T-1", "still odd")));
    // Another case knows nothing of it.
    ran(submit(&world, case("T-2", "odd"), WAIT_MS).await);
    assert_eq!(told(&model.prompt(1)), [format!("user: {}", case("T-2", "odd"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_and_agents_get_a_large_case_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { context_inline_bytes_max: 64, ..Limits::default() };
    let command = json!({"intent": "CALL_TOOL", "tool": "slow::read", "args": {"n": 1}});
    let model = Scripted::new([text(&command.to_string())]);
    let world = world_with(folder.path(), &model, limits).await;
    world.permits.add_permits(2);
    let much = "x".repeat(200);
    let handled = json!({"id": "T-1", "reason": "slow", "n": much});
    ran(submit(&world, handled, WAIT_MS).await);
    assert_eq!(sent(&world), [json!(much)]);
    let odd = json!({"id": "T-2", "reason": "odd", "n": much});
    ran(submit(&world, odd.clone(), WAIT_MS).await);
    assert_eq!(told(&model.prompt(0)), [format!("user: {odd}")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_for_one_case_are_answered_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    let first = begun!(submit(&world, slow("T-1", 1), WAIT_MS));
    world.until("the first to be under way", |world| world.sent() == 1).await;
    let second = begun!(submit(&world, slow("T-1", 2), WAIT_MS));
    let third = begun!(submit(&world, slow("T-1", 3), WAIT_MS));
    // Another case does not wait for them.
    let other = begun!(submit(&world, slow("T-2", 9), WAIT_MS));
    world.until("the other case to be under way", |world| world.sent() == 2).await;
    world.permits.add_permits(4);
    let numbers = [ran(first.await), ran(second.await), ran(third.await)].map(|done| done.run.no);
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(ran(other.await).run.no, 1);
    assert_eq!(sent(&world), [1, 9, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_request_takes_the_path_of_its_own_reason() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    let first = begun!(submit(&world, slow("T-1", 1), WAIT_MS));
    world.until("the first to be under way", |world| world.sent() == 1).await;
    let second = begun!(submit(&world, slow("T-1", 2), WAIT_MS));
    // Its handler goes, then the whole pipeline: that is for those who come later.
    let engine = &world.engine;
    let realm = "default".into();
    let other = CASES.replace("  - {reason: slow, plan: slow}\n", "");
    assert_eq!(engine.catalog().set_pipelines(&realm, vec![file("cases", &other)]), Ok(Vec::new()));
    assert_eq!(engine.catalog().set_pipelines(&realm, Vec::new()), Ok(Vec::new()));
    world.permits.add_permits(2);
    for done in [ran(first.await), ran(second.await)] {
        assert_eq!(done.run.answer.as_ref().unwrap()["path"], "deterministic", "{:?}", done.run);
    }
    let tallies = engine.cases().tallies(&caller(), &"cases".into()).await.unwrap();
    assert_eq!((tallies[0].deterministic, tallies[0].count), (true, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_queue_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { case_queue_max: 1, ..Limits::default() };
    let world = world_with(folder.path(), &Scripted::new([]), limits).await;
    let first = begun!(submit(&world, slow("T-1", 1), WAIT_MS));
    let second = begun!(submit(&world, slow("T-1", 2), WAIT_MS));
    let busy = submit(&world, slow("T-1", 3), WAIT_MS).await.unwrap_err();
    assert_eq!((busy.code.name(), busy.kind()), ("case_busy", RefusalKind::TooMany));
    // A client that goes away makes room.
    drop(second);
    let third = begun!(submit(&world, slow("T-1", 3), WAIT_MS));
    world.permits.add_permits(2);
    assert_eq!((ran(first.await).run.no, ran(third.await).run.no), (1, 2));
    assert_eq!(sent(&world), [1, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_outlasts_its_request_continues_and_keeps_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    let late = submit(&world, slow("T-1", 1), SHORT_MS).await.unwrap();
    let CaseReport::Late(Some(report)) = late else { panic!("{late:?}") };
    assert_eq!(report.run.status.name(), "running");
    // The next one does not even begin, and never will.
    let later = submit(&world, slow("T-1", 2), SHORT_MS).await;
    assert_eq!(later, Ok(CaseReport::Late(None)));
    let third = begun!(submit(&world, slow("T-1", 3), WAIT_MS));
    world.permits.add_permits(2);
    assert_eq!(ran(third.await).run.no, 2);
    world.until_status(report.run.id, "completed").await;
    assert_eq!(sent(&world), [1, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_caller_went_away_keeps_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    let first = begun!(submit(&world, slow("T-1", 1), WAIT_MS));
    world.until("the first to be under way", |world| world.sent() == 1).await;
    drop(first);
    let second = begun!(submit(&world, slow("T-1", 2), WAIT_MS));
    world.permits.add_permits(2);
    assert_eq!(ran(second.await).run.no, 2);
    assert_eq!(sent(&world), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_waiting_for_a_person_is_answered_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    let asking = ran(submit(&world, json!({"id": "T-1", "reason": "ask"}), WAIT_MS).await);
    assert_eq!((asking.run.status.name(), asking.asks.len()), ("waiting", 1));
    let known = || json!({"id": "T-1", "reason": "known"});
    let waits = submit(&world, known(), WAIT_MS).await.unwrap();
    let CaseReport::Waits { report, deterministic } = waits else { panic!("{waits:?}") };
    assert!(deterministic, "a handler has it, whatever its plan's step is called: {report:?}");
    let ask = report.asks[0].row.ask.id;
    assert_eq!((report.run.id, ask), (asking.run.id, asking.asks[0].row.ask.id));

    // A client whose time is up first learns that nothing was begun.
    let late = submit(&world, known(), 0).await.unwrap();
    assert!(matches!(late, CaseReport::Late(None) | CaseReport::Waits { .. }), "{late:?}");
    assert_eq!(world.engine.cases().tallies(&caller(), &"cases".into()).await.unwrap().len(), 1);

    // Once somebody answered, the case is worked on again, and waited for.
    let reply = Reply::Clarify { answer: Some(json!("yes")) };
    world.engine.asks().reply(&caller(), ask, reply, None, 0).await.unwrap();
    world.until("the answered run to go on", |world| world.sent() == 1).await;
    let late = submit(&world, known(), SHORT_MS).await;
    assert_eq!(late, Ok(CaseReport::Late(None)), "the run before it is not over");
    world.permits.add_permits(1);
    assert_eq!(ran(submit(&world, known(), WAIT_MS).await).run.no, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_case_request_returns_the_same_run_without_queueing() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    let keyed = |wait_ms: u64| {
        let route = "POST /cases".to_owned();
        let key = "k".to_owned();
        let once = Some(IdempotencyKey::new(route, key, ContentHash::of(b"body")));
        submit_with(
            &world,
            slow("T-1", 1),
            SubmitOptions { wait_ms, once, ..SubmitOptions::default() },
        )
    };
    let late = keyed(SHORT_MS).await.unwrap();
    let CaseReport::Late(Some(first)) = late else { panic!("{late:?}") };
    let other = begun!(submit(&world, slow("T-1", 2), WAIT_MS));
    let again = keyed(SHORT_MS).await.unwrap();
    let CaseReport::Late(Some(report)) = again else { panic!("{again:?}") };
    assert_eq!((report.run.id, report.replayed), (first.run.id, true));
    world.permits.add_permits(2);
    let done = ran(keyed(WAIT_MS).await);
    assert_eq!((done.run.id, done.run.status.name()), (first.run.id, "completed"));
    assert_eq!(ran(other.await).run.no, 2);
    let tallies = world.engine.cases().tallies(&caller(), &"cases".into()).await.unwrap();
    assert_eq!(tallies[0].count, 2, "a repeat was counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_paths_are_counted_by_reason() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { tally_reason_chars_max: 4, ..Limits::default() };
    let model = Scripted::new([Says::Hangs("well"), Says::Hangs("well")]);
    let world = world_with(folder.path(), &model, limits).await;
    for id in ["a", "b", "c"] {
        ran(submit(&world, json!({"id": id, "reason": "known"}), WAIT_MS).await);
    }
    for (id, reason) in [("d", "unheard of"), ("e", "unheard")] {
        let late = submit(&world, json!({"id": id, "reason": reason}), SHORT_MS).await.unwrap();
        assert!(matches!(late, CaseReport::Late(Some(_))), "{late:?}");
    }
    // What only waits for its turn took no road.
    let waits = submit(&world, json!({"id": "d", "reason": "known"}), SHORT_MS).await;
    assert_eq!(waits, Ok(CaseReport::Late(None)));
    let tallies = world.engine.cases().tallies(&caller(), &"cases".into()).await.unwrap();
    let shown = |row: &TallyRow| (row.reason.clone(), row.deterministic, row.count);
    let shown: Vec<(String, bool, u64)> = tallies.iter().map(shown).collect();
    assert_eq!(shown, [("know".to_owned(), true, 3), ("unhe".to_owned(), false, 2)]);
    let stranger = kernel::tool::call::Caller { realm: "other".into(), ..caller() };
    assert_eq!(world.engine.cases().tallies(&stranger, &"cases".into()).await.unwrap(), []);
    assert!(world.engine.catalog().pipeline(&stranger, &"cases".into()).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_are_replaced_all_or_none_with_mistakes_reported() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    let engine = &world.engine;
    let realm = "default".into();
    let broken = CASES
        .replace("'slow::read'", "'slow::reed', 'slow::read'")
        .replace("plan: slow", "plan: slo");
    let other = CASES.replace("/cases", "/other");
    let files = [
        file("broken", &broken),
        file("cases", CASES),
        file("cases", &other),
        file("same-route", CASES),
        file("other-port", &CASES.replace("/cases", "/cases, port: 0")),
    ];
    let mistakes = engine.catalog().set_pipelines(&realm, files.to_vec()).unwrap_err();
    let told: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    let expected = [
        "pipelines/broken.yaml:7:9: error: there is no tool `slow::reed`; hint: did you mean",
        "pipelines/broken.yaml:5:5: error: there is no plan `slo`; hint: ",
        "pipelines/cases.yaml: error: pipeline `cases` is already defined in pipelines/cases.yaml",
        "pipelines/same-route.yaml: error: route `/cases` is taken by pipelines/cases.yaml",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "expected {expected}\n     got {told}");
    }
    assert_eq!(engine.catalog().pipelines(&caller()).len(), 1, "some of them were taken");

    let plan = "pipeline/cases".into();
    let me = caller();
    assert_eq!(engine.catalog().plans(&me).len(), 2, "a list shows it");
    assert!(
        engine.tools().callable(&me, "pipeline/cases").is_none()
            && engine.catalog().agents(&me).is_empty()
    );
    assert!(engine.catalog().plan(&me, &plan).is_some());
    let step = json!({"id": "a", "type": "final_response", "message": "mine"});
    let mine = json!({"planId": "pipeline/mine", "steps": [step]});
    assert_eq!(
        engine.catalog().register_plan(&me, mine, None).await.unwrap_err().code.name(),
        "invalid_plan"
    );
    let agent = json!({"refName": "pipeline/mine", "llmConfigRef": "fast"});
    assert_eq!(
        engine.catalog().register_agent(&me, agent, None).await.unwrap_err().code.name(),
        "invalid_agent"
    );

    let pipeline = engine.catalog().pipeline(&me, &"cases".into()).unwrap();
    assert_eq!(engine.catalog().set_pipelines(&realm, Vec::new()), Ok(Vec::new()));
    assert!(
        engine.catalog().pipelines(&me).is_empty() && engine.catalog().plan(&me, &plan).is_none()
    );
    let case = pipeline.admit(&json!({"id": "T-1", "reason": "known"})).unwrap();
    let gone =
        engine.cases().submit(&me, &pipeline, case, SubmitOptions::default()).await.unwrap_err();
    assert_eq!(gone.code.name(), "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_may_still_appear_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([]);
    let world = World::awaiting(folder.path(), &[], model.models(), "late.").await;
    let text = "http: {route: /late}\nschema: {caseIdField: id, allowedFields: [id, reason], \
        requiredFields: [id, reason]}\ntools: [late.read]\nllm: {type: stub}\n";
    let set =
        world.engine.catalog().set_pipelines(&"default".into(), vec![file("late", text)]).unwrap();
    let told: Vec<String> = set.iter().map(Mistake::to_string).collect();
    let expected = "pipelines/late.yaml:3:9: warning: tool `late.read` is not there yet";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
}
