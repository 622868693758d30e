//! What a caller can call directly: tools that ask back, plans as tools, slow ones as tasks.

use crate::world::{World, caller};
use engine::{CallReport, CallRequest, PlanFile};
use kernel::tool::call::{InputResponses, Pace, Reach};
use serde_json::json;
use std::collections::BTreeMap;

const GREET: &str = "planId: demo/greet\ndescription: greets\npace: slow\n\
    parameters: {type: object, required: [name]}\n\
    steps: [{id: ask, type: human_in_the_loop, message: 'really?', nextStepIdOnInput: end}, \
    {id: end, type: final_response, message: 'hello {{ promptInput.name }}'}]";
const WRITES: &str = "planId: demo/writes\nsteps: [{id: inner, type: plan, planId: demo/inner, \
    arguments: {}}]";
const INNER: &str = "planId: demo/inner\nsteps: [{id: call, type: tool_call, \
    toolId: 'slow::write', arguments: {n: 1}, on_error: fail}]";

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_callable_as_a_tool() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[GREET, WRITES, INNER]).await;
    let engine = &world.engine;
    let greet = engine.tools().callable(&caller(), "demo/greet").unwrap();
    assert_eq!((greet.reach, greet.pace), (Reach::Reads, Pace::Slow));
    assert_eq!(greet.input_schema["required"], json!(["name"]));
    // What a plan does to the world is what its steps do, those of its sub-plans included.
    assert_eq!(engine.tools().callable(&caller(), "demo/writes").unwrap().reach, Reach::Writes);
    let names: Vec<String> =
        engine.tools().callables(&caller()).iter().map(|spec| spec.name.to_string()).collect();
    assert!(names.is_sorted() && names.contains(&"demo/inner".to_owned()), "{names:?}");

    let request = |arguments| world.call_request("demo/greet", arguments);
    let wrong = engine.tools().call_with(&caller(), request(json!({}))).await.unwrap_err();
    assert_eq!(wrong.code.name(), "input_misfit");
    let run = engine.runs().new_id();
    let started = CallRequest { run: Some(run), ..request(json!({"name": "ann"})) };
    let asked = engine.tools().call_with(&caller(), started).await.unwrap();
    let CallReport::Pending(report) = asked else { panic!("{asked:?}") };
    assert_eq!((report.run.id, report.asks.len()), (run, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_tool_becomes_a_run_for_callers_that_accept_one() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[GREET, INNER]).await;
    let arguments = json!({"name": "ann"});
    let request = CallRequest { as_task: true, ..world.call_request("demo/greet", arguments) };
    let report = world.engine.tools().call_with(&caller(), request).await.unwrap();
    assert!(matches!(report, CallReport::Pending(_)), "{report:?}");
    // A quick plan is waited for all the same.
    world.permits.add_permits(1);
    let request = CallRequest { as_task: true, ..world.call_request("demo/inner", json!({})) };
    let report = world.engine.tools().call_with(&caller(), request).await.unwrap();
    assert!(matches!(report, CallReport::Done(_)), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_requires_input_is_called_again_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    world.permits.add_permits(10);
    let request = world.call_request("slow::read", json!({"wants": true}));
    let wants = world.engine.tools().call_with(&caller(), request.clone()).await.unwrap();
    let CallReport::Wants(wants) = wants else { panic!("{wants:?}") };
    assert_eq!(wants.inputs.keys().collect::<Vec<_>>(), ["who"]);
    let inputs = BTreeMap::from([("who".to_owned(), json!({"action": "accept"}))]);
    let given = InputResponses { inputs, state: wants.state, ..InputResponses::default() };
    let again = CallRequest { given, ..request };
    let done = world.engine.tools().call_with(&caller(), again).await.unwrap();
    assert_eq!(done, CallReport::Done(json!({"got": {"wants": true}})));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_plan_changes_the_catalogs_version() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[INNER]).await;
    let mut version = world.engine.catalog().version(&caller().realm);
    version.mark_unchanged();
    let source = json!({"planId": "a", "steps": [{"id": "e", "type": "final_response",
        "message": "x"}]});
    world.engine.catalog().register_plan(&caller(), source, None).await.unwrap();
    assert!(version.has_changed().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_id_is_no_tools_name_is_refused_when_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    let steps = "steps: [{id: end, type: final_response, message: x}]";
    let load = |id: &str| {
        let text = format!("planId: {id}\n{steps}");
        let file = PlanFile { file: "plans/a.yaml".to_owned(), text, default_id: "a".into() };
        world.engine.catalog().load_plans(&caller().realm, vec![file])
    };
    // A slash is written with two characters.
    let longest = format!("a/{}", "b".repeat(125));
    assert!(load(&longest).is_ok());
    let mistakes = load(&format!("{longest}c")).unwrap_err();
    let mistake = mistakes.iter().find(|mistake| mistake.is_error()).unwrap();
    let place = (mistake.pointer.as_str(), mistake.file.as_deref());
    assert_eq!(place, ("/planId", Some("plans/a.yaml")));
    let source = json!({"planId": "x".repeat(129), "steps": [{"id": "e", "type": "final_response",
        "message": "x"}]});
    let refused = world.engine.catalog().register_plan(&caller(), source, None).await.unwrap_err();
    assert_eq!(
        (refused.code.name(), refused.errors[0].pointer.as_str()),
        ("invalid_plan", "/planId")
    );
}
