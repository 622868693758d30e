//! What a project's files bring, replaced while the engine serves: all of it or none, what is
//! stored stays, and a run that waits keeps its plan.

use crate::model::{Scripted, text, told};
use crate::world::{WAIT_MS, World, caller, files};
use engine::{AgentFile, PipelineFile, ProjectFiles};
use kernel::ask::Reply;
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::rule::{Rule, RuleAction, Rules};
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::values::ids::{PlanId, RealmId};
use serde_json::json;
use std::sync::Arc;

const OLD: &str = "planId: greet\nsteps: [{id: ask, type: human_in_the_loop, message: who?, \
    nextStepIdOnInput: end}, {id: end, type: final_response, message: 'old {{ context.human_input }}'}]";
const NEW: &str = "planId: greet\nsteps: [{id: ask, type: human_in_the_loop, message: who?, \
    nextStepIdOnInput: end}, {id: end, type: final_response, message: 'new {{ context.human_input }}'}]";
const OTHER: &str = "planId: other\nsteps: [{id: end, type: final_response, message: other}]";
const THINKS: &str = "planId: thinks\nsteps: [{id: think, type: agent, agent: helper, input: hi, \
    saveAs: out, nextStepId: end}, {id: end, type: final_response, message: {jsonPath: $.context.out}}]";
const CALLS: &str = "planId: calls\nsteps: [{id: sub, type: plan, planId: other, arguments: {}, \
    saveAs: out, nextStepId: end}, {id: end, type: final_response, message: {jsonPath: $.context.out}}]";
const HELPER: &str = "refName: helper\nllmConfigRef: fast\n";
const DESK: &str = "http: {route: /desk}\nschema: {caseIdField: id, allowedFields: [id, reason], \
    requiredFields: [id, reason]}\nhandlers: [{reason: known, plan: greet}]\n\
    tools: ['slow::read']\nllm: {type: stub}\n";

fn realm() -> RealmId {
    RealmId::from("default")
}

fn brought(plans: &[&str], agents: &[&str]) -> ProjectFiles {
    let agent = |(index, text): (usize, &&str)| AgentFile {
        file: format!("agent{index}.yaml"),
        text: (*text).to_owned(),
    };
    let agents = agents.iter().enumerate().map(agent).collect();
    ProjectFiles { plans: files(plans), agents, ..ProjectFiles::default() }
}

/// The same with the pipeline `desk`.
fn with_desk(plans: &[&str], text: &str) -> ProjectFiles {
    let file = "pipelines/desk.yaml".to_owned();
    let text = text.to_owned();
    let desk = PipelineFile { file, text, default_name: "desk".into() };
    ProjectFiles { pipelines: vec![desk], ..brought(plans, &[]) }
}

/// Takes these files in; panics with what is wrong with them.
fn take(world: &World, plans: &[&str], agents: &[&str]) {
    take_all(world, &brought(plans, agents));
}

fn take_all(world: &World, files: &ProjectFiles) {
    let read = world.engine.catalog().read_files(&realm(), files);
    let (filed, _) = read.unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    world.engine.catalog().set_files(&realm(), filed);
}

fn ids(world: &World) -> Vec<String> {
    world.engine.catalog().plans(&caller()).iter().map(|plan| plan.id.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_run_keeps_its_plan_and_the_next_uses_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[OLD, OTHER]).await;
    let waiting = world.run("greet", json!({}), "a").await;
    let version = world.engine.catalog().version(&realm());
    take(&world, &[NEW], &[]);
    assert!(version.has_changed().unwrap(), "whoever lists plans is told");
    assert_eq!(ids(&world), ["greet"], "the other's file is gone");
    assert!(world.engine.tools().callable(&caller(), "other").is_none());

    let answered = |report: engine::RunReport| {
        let engine = world.engine.clone();
        let ask = report.asks[0].row.ask.id;
        async move {
            let reply = Reply::Clarify { answer: Some(json!("Ada")) };
            let done = engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
            done.run.run.answer
        }
    };
    assert_eq!(answered(waiting).await, Some(json!("old Ada")));
    let next = world.run("greet", json!({}), "b").await;
    assert_eq!(answered(next).await, Some(json!("new Ada")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_plan_stays_and_shadows_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[OLD]).await;
    let step = json!({"id": "end", "type": "final_response", "message": "stored"});
    let plan = |id: &str| json!({"planId": id, "steps": [step]});
    world.engine.catalog().register_plan(&caller(), plan("kept"), None).await.unwrap();
    world.engine.catalog().register_plan(&caller(), plan("other"), None).await.unwrap();
    take(&world, &[OTHER, CALLS], &[]);
    assert_eq!(ids(&world), ["calls", "kept", "other"]);
    let done = world.run("calls", json!({}), "s").await;
    assert_eq!(done.run.answer, Some(json!("stored")), "{:?}", done.run);
    take(&world, &[], &[]);
    assert_eq!(ids(&world), ["kept", "other"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_taken_completely_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([text("Here."), text("Still here.")]);
    let brings: (&[&str], &[&str]) = (&[OTHER, THINKS], &[HELPER]);
    let world = World::talking(folder.path(), brings, Limits::default(), model.models()).await;
    let refused = |plans: &[&str], agents: &[&str]| -> String {
        let read = world.engine.catalog().read_files(&realm(), &brought(plans, agents));
        let Err(mistakes) = read else { panic!("they were taken") };
        mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")
    };
    // Every mistake of both kinds is reported, each with its file.
    let told_all =
        refused(&[OTHER, "planId: x\nsteps: [{id: a, type: nonsense}]", THINKS], &["refName: 3"]);
    for file in ["plan1.yaml", "plan2.yaml", "agent0.yaml"] {
        assert!(told_all.contains(file), "no {file}: {told_all}");
    }
    assert!(refused(&[CALLS], &[HELPER]).contains("`other`"), "its file is gone");
    assert_eq!(ids(&world), ["other", "thinks"]);
    let done = world.run("thinks", json!({}), "s").await;
    assert_eq!(done.run.answer, Some(json!("Here.")));

    // A plan and the agent that it names come together, and go together.
    take(&world, &[OTHER], &[]);
    assert!(world.engine.catalog().agents(&caller()).is_empty());
    assert_eq!(ids(&world), ["other"]);
    take(&world, &[OTHER, THINKS], &[HELPER]);
    let done = world.run("thinks", json!({}), "s").await;
    assert_eq!(done.run.answer, Some(json!("Still here.")));
    assert_eq!(told(&model.last()), ["user: hi"]);
    assert!(world.engine.catalog().plan(&caller(), &PlanId::from("agent/helper")).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_brings_its_plan_and_only_plans_change_lists() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[OTHER]).await;
    let engine = &world.engine;
    let version = engine.catalog().version(&realm());
    let Err(mistakes) = engine.catalog().read_files(&realm(), &with_desk(&[NEW, CALLS], DESK))
    else {
        panic!("a plan is named that is not there")
    };
    assert!(mistakes[0].to_string().contains("`other`"), "{mistakes:?}");
    let Err(mistakes) = engine.catalog().read_files(&realm(), &with_desk(&[OTHER], DESK)) else {
        panic!("a handler's plan is not there")
    };
    let told = mistakes[0].to_string();
    assert!(told.starts_with("pipelines/desk.yaml:3:") && told.contains("`greet`"), "{told}");
    assert!(!version.has_changed().unwrap(), "nothing came in, not for a moment");
    assert!(engine.catalog().pipelines(&caller()).is_empty() && ids(&world) == ["other"]);

    take_all(&world, &with_desk(&[OTHER, NEW], DESK));
    assert!(version.has_changed().unwrap(), "there is one more plan");
    assert_eq!(engine.catalog().pipelines(&caller()).len(), 1);

    // Plans that say the same are the same, and no one is notified of a pipeline.
    let version = engine.catalog().version(&realm());
    let plan = || engine.catalog().plan(&caller(), &PlanId::from("greet")).unwrap();
    let before = plan();
    take_all(&world, &with_desk(&[OTHER, NEW], &DESK.replace("/desk", "/table")));
    assert_eq!(engine.catalog().pipelines(&caller())[0].route, "/table");
    assert!(Arc::ptr_eq(&before, &plan()) && !version.has_changed().unwrap());
    take_all(&world, &with_desk(&[OTHER, OLD], DESK));
    assert!(!Arc::ptr_eq(&before, &plan()) && version.has_changed().unwrap());
    take(&world, &[OTHER], &[]);
    assert!(engine.catalog().pipelines(&caller()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_do_not_fit_a_realm_are_left_out_with_their_dependents() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    let catalog = world.engine.catalog();
    let there = Caller::new("acme", "ann");
    let ids_there = || -> Vec<String> {
        catalog.plans(&there).iter().map(|plan| plan.id.to_string()).collect()
    };
    let lost = "planId: other\nsteps: [{id: a, type: tool_call, toolId: gone.tool, arguments: {}}]";
    let (filed, left_out) =
        catalog.read_fitting_files(&there.realm, &with_desk(&[lost, CALLS, NEW], DESK));
    assert!(ids_there().is_empty(), "they are only read");
    let mut told: Vec<Option<&str>> =
        left_out.iter().map(|mistake| mistake.file.as_deref()).collect();
    told.dedup();
    assert_eq!(told, [Some("plan0.yaml"), Some("plan1.yaml")], "{left_out:?}");
    assert!(left_out[0].message.contains("`gone.tool`"), "{left_out:?}");
    catalog.set_files(&there.realm, filed);
    assert_eq!(ids_there(), ["greet"]);
    assert_eq!(catalog.all_pipelines(&there.realm).len(), 1, "its plan is there");
    assert!(ids(&world).is_empty(), "the other realm has nothing of it");

    // A pipeline goes with the plan of its handler.
    let without = with_desk(&[&NEW.replace("greet", "hello")], DESK);
    let (filed, left_out) = catalog.read_fitting_files(&there.realm, &without);
    catalog.set_files(&there.realm, filed);
    assert_eq!(left_out[0].file.as_deref(), Some("pipelines/desk.yaml"), "{left_out:?}");
    assert_eq!(ids_there(), ["hello"]);
    assert!(catalog.all_pipelines(&there.realm).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_with_an_unfit_plan_excludes_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    let catalog = world.engine.catalog();
    let there = Caller::new("acme", "ann");
    let lost = "planId: other\nsteps: [{id: a, type: tool_call, toolId: gone.tool, arguments: {}}]";
    let correcting = |plan: &str| Rule::always(RuleAction::Plan(plan.into()));
    let project = vec![correcting("greet"), correcting("other")];
    let rules = Rules { project, ..Rules::default() };
    let files = ProjectFiles { rules, ..brought(&[lost, NEW], &[]) };
    let (filed, left_out) = catalog.read_fitting_files(&there.realm, &files);
    catalog.set_files(&there.realm, filed);
    let plans = catalog.plans(&there);
    assert_eq!(plans.iter().map(|plan| plan.id.as_str()).collect::<Vec<_>>(), ["greet"]);
    let of_rules: Vec<&Mistake> = left_out.iter().filter(|told| told.file.is_none()).collect();
    assert_eq!(of_rules.len(), 1, "{left_out:?}");
    assert!(of_rules[0].message.contains("rule 2 of"), "{left_out:?}");
}
