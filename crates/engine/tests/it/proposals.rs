//! What models propose about failed steps: a read continues with it, for all else a person takes
//! it.

use crate::model::{Says, Scripted, text, told};
use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, World, caller};
use engine::{Models, Parts, RunReport, ToolSource};
use futures::future::BoxFuture;
use kernel::ask::proposal::proposed;
use kernel::ask::remedy::Remedy;
use kernel::ask::{Ask, AskBody, FixAction};
use kernel::contracts::{SessionRef, Tool};
use kernel::limits::Limits;
use kernel::tool::call::{Call, Caller, Reach, ToolError, ToolOutput, ToolSpec};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A tool that wants a number and counts what it is sent.
struct Strict {
    spec: Arc<ToolSpec>,
    sent: Arc<AtomicU32>,
}

impl Strict {
    fn tool(name: &str, reach: Reach, sent: &Arc<AtomicU32>) -> Arc<dyn Tool> {
        let properties = json!({"n": {"type": "integer"}, "token": {"type": "string"}});
        let schema = json!({"type": "object", "properties": properties, "required": ["n"]});
        let spec = ToolSpec {
            description: "wants a number above zero".into(),
            input_schema: Arc::new(schema),
            reach,
            ..testkit::specs::tool(name)
        };
        Arc::new(Self { spec: Arc::new(spec), sent: sent.clone() })
    }
}

impl Tool for Strict {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// With a negative number every one of them only reads.
    fn reach(&self, arguments: &Value) -> (Reach, bool) {
        match arguments["n"].as_i64() {
            Some(number) if number < 0 => (Reach::Reads, true),
            _ => (self.spec.reach, self.spec.idempotent),
        }
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let number = call.arguments["n"].as_i64().unwrap_or_default();
        Box::pin(async move {
            if number > 0 {
                return Ok(ToolOutput::Value(json!({"n": number})));
            }
            let detail = Map::from_iter([("for".to_owned(), json!(FOR_PROGRAMS))]);
            Err(ToolError::failed("TooSmall", "it must be above zero").detail(detail))
        })
    }
}

/// What their faults say that is not for models.
const FOR_PROGRAMS: &str = "for-programs";

/// What the names of these tools begin with.
const STRICT: &str = "strict::";

/// A server with one that reads and one that writes.
fn strict(sent: &Arc<AtomicU32>) -> ToolSource {
    let tools = vec![
        Strict::tool("strict::read", Reach::Reads, sent),
        Strict::tool("strict::write", Reach::Writes, sent),
    ];
    ToolSource::new("a strict server", tools)
}

/// A world with such tools, a model that says this, and plans whose one step has this rule.
struct Desk {
    world: World,
    model: Arc<Scripted>,
    sent: Arc<AtomicU32>,
}

impl Desk {
    async fn open(folder: &Path, rule: &str, says: impl IntoIterator<Item = Says>) -> Self {
        Self::within(folder, Limits::default(), rule, says).await
    }

    async fn within(
        folder: &Path,
        limits: Limits,
        rule: &str,
        says: impl IntoIterator<Item = Says>,
    ) -> Self {
        Self::changed(folder, rule, says, |mut parts, tools| {
            parts.tools.push(tools);
            let limits = Arc::new(Limits { stop_wait_ms: 0, ..limits });
            Parts { limits, ..parts }
        })
        .await
    }

    /// One whose tools may still come where their names begin so.
    async fn awaiting(
        folder: &Path,
        rule: &str,
        says: impl IntoIterator<Item = Says>,
        awaited: &str,
    ) -> Self {
        Self::changed(folder, rule, says, |mut parts, tools| {
            if awaited != STRICT {
                parts.tools.push(tools);
            }
            Parts { awaited: vec![awaited.to_owned()], ..parts }
        })
        .await
    }

    /// Over other parts, which may have the strict tools.
    async fn changed(
        folder: &Path,
        rule: &str,
        says: impl IntoIterator<Item = Says>,
        change: impl FnOnce(Parts, ToolSource) -> Parts,
    ) -> Self {
        let model = Scripted::new(says);
        let sent = Arc::new(AtomicU32::new(0));
        let [read, write] = ["read", "write"].map(|name| plan(name, rule));
        let models = model.models();
        let tools = strict(&sent);
        let world = World::changed(folder, &[&read, &write], |parts: Parts| Parts {
            models,
            ..change(parts, tools)
        })
        .await;
        Self { world, model, sent }
    }

    async fn run(&self, plan: &str, input: Value) -> RunReport {
        self.world.run(plan, input, "s").await
    }

    async fn take(&self, ask: &Ask, action: FixAction) -> RunReport {
        let reply = proposed(ask, action).unwrap();
        let taken = self.world.engine.asks().reply(&caller(), ask.id, reply, None, WAIT_MS).await;
        taken.unwrap().run
    }

    fn sent(&self) -> u32 {
        self.sent.load(Ordering::SeqCst)
    }
}

fn plan(name: &str, rule: &str) -> String {
    format!(
        "planId: {name}\nsteps: [{{id: call, type: tool_call, toolId: 'strict::{name}', arguments: \
         {{n: {{jsonPath: $.promptInput.n}}, token: hush-hush}}, saveAs: out, on_error: [{rule}], \
         nextStepId: end}}, {{id: end, type: final_response, message: {{jsonPath: \
         $.context.out}}}}]"
    )
}

const PROPOSE: &str = "{propose: {}}, ask";

fn arguments(number: Value) -> Says {
    let hidden = json!({"n": number, "token": "(hidden)"});
    text(&json!({"arguments": hidden, "why": "a number"}).to_string())
}

fn only_ask(report: &RunReport) -> &Ask {
    let [asked] = report.asks.as_slice() else { panic!("{:?}", report.asks) };
    &asked.row.ask
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_continues_with_a_models_proposal() {
    let folder = tempfile::tempdir().unwrap();
    let says = [arguments(json!("seven")), arguments(json!(7))];
    let desk = Desk::open(folder.path(), PROPOSE, says).await;
    let report = desk.run("read", json!({"n": "x"})).await;
    assert_eq!(report.run.status.name(), "completed", "{:?}", report.asks);
    assert_eq!((report.run.answer, desk.sent()), (Some(json!({"n": 7})), 1));
    assert_eq!((report.run.spent.turns, report.run.spent.cost_micros), (2, 24));
    // What did not fit went back with the exact fault, and no secret left the house.
    let last = told(&desk.model.prompt(1)).pop().unwrap();
    assert!(last.contains("do not fit its schema"), "{last}");
    let prompt = format!("{:?}", desk.model.prompt(1));
    assert!(prompt.contains("(hidden)") && !prompt.contains("hush-hush"), "{prompt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_does_not_see_what_a_fault_has_for_programs() {
    for (rule, says) in
        [(PROPOSE, arguments(json!(3))), ("{draft: {}}", correction("strict::read"))]
    {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::open(folder.path(), rule, [says]).await;
        let report = desk.run("write", json!({"n": 0})).await;
        let AskBody::Fix { fault, .. } = &only_ask(&report).body else { panic!("not a fix") };
        assert!(fault.detail.is_some());
        let prompt = format!("{:?}", desk.model.prompt(0));
        assert!(prompt.contains("TooSmall") && !prompt.contains(FOR_PROGRAMS), "{prompt}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_for_a_write_waits_for_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), PROPOSE, [arguments(json!(3))]).await;
    let report = desk.run("write", json!({"n": 0})).await;
    assert_eq!((report.run.status.name(), desk.sent()), ("stuck", 1));
    let ask = only_ask(&report).clone();
    assert!(ask.held.is_none(), "it is a person's");
    let done = desk.take(&ask, FixAction::Edit).await;
    assert_eq!((done.run.answer, desk.sent()), (Some(json!({"n": 3})), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_that_turns_a_write_into_a_read_waits_for_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), PROPOSE, [arguments(json!(-1))]).await;
    let report = desk.run("write", json!({"n": 0})).await;
    assert_eq!((report.run.status.name(), desk.sent()), ("stuck", 1), "{:?}", report.asks);
    let ask = only_ask(&report);
    assert!(ask.held.is_none() && proposed(ask, FixAction::Edit).is_some(), "{ask:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn proposals_are_bounded_and_then_a_person_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let says = [
        text("I would rather not."),
        arguments(json!("y")),
        arguments(json!("z")),
        arguments(json!(1)),
    ];
    let desk = Desk::open(folder.path(), PROPOSE, says).await;
    let report = desk.run("read", json!({"n": "x"})).await;
    assert_eq!((report.run.status.name(), desk.model.asked(), desk.sent()), ("stuck", 3, 0));
    let ask = only_ask(&report);
    let fault = ask.tried[0].found.as_ref().unwrap().fault.as_ref().unwrap();
    assert_eq!(fault.name, "NoProposal");
    assert!(fault.message.contains("do not fit its schema"), "{fault}");
    assert_eq!(proposed(ask, FixAction::Edit), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_at_its_proposal_limit_goes_to_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { run_proposals_max: 1, ..Limits::default() };
    // A draft and what is wrong with it, three times: that is asked once.
    let rules = "{draft: {}}, {propose: {}}, ask";
    let says = [(); 4].map(|()| text("I would rather not."));
    let says = says.into_iter().chain([arguments(json!(1))]);
    let desk = Desk::within(folder.path(), limits, rules, says).await;
    let report = desk.run("read", json!({"n": "x"})).await;
    assert_eq!((report.run.status.name(), desk.model.asked(), desk.sent()), ("stuck", 4, 0));
    let ask = only_ask(&report);
    assert!(ask.held.is_none(), "it is a person's");
    let times: Vec<(&str, u32)> = ask.tried.iter().map(|it| (it.does.name(), it.times)).collect();
    assert_eq!(times, [("draft", 1), ("propose", 0)]);
    assert_eq!(ask.tried[1].does, Remedy::Propose("default".into()));
    let limit = ask.tried[1].found.as_ref().unwrap().fault.clone().unwrap();
    assert_eq!(limit.name, "LimitReached");
    assert!(limit.message.contains("at most 1 times"), "{limit}");
    assert_eq!(limit.hint.as_deref(), Some("raise `run_proposals_max` in [limits]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_is_requested_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), PROPOSE, [Says::Hangs("well")]).await;
    let run = desk.world.start("read", json!({"n": "x"}), "s").await.run.id;
    let asked = desk.model.clone();
    desk.world.until("the model to be asked", |_| asked.asked() == 1).await;
    desk.world.crash().await;

    let desk = Desk::open(folder.path(), PROPOSE, [arguments(json!(5))]).await;
    desk.world.engine.admin().keep_recovering();
    let report = desk.world.until_status(run, "completed").await;
    assert_eq!((report.run.answer, desk.model.asked()), (Some(json!({"n": 5})), 1));
}

/// Waits until the journal of the session `s` says so often that a model is about to be asked.
async fn until_about_to_ask(world: &World, times: usize) {
    let session = SessionRef::Key { key: "s".into(), space: None };
    let mut asked = 0;
    for _ in 0..LOOKS_MAX {
        let events = world.engine.sessions().events(&caller(), &session, 0, 1_000).await.unwrap();
        asked = events.iter().filter(|(_, text)| text.contains("\"proposal.asked\"")).count();
        if asked >= times {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for {times} `proposal.asked`, last seen: {asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_waits_for_tools_of_starting_upstreams() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), PROPOSE, [Says::Hangs("well")]).await;
    let run = desk.world.start("read", json!({"n": "x"}), "s").await.run.id;
    let asked = desk.model.clone();
    desk.world.until("the model to be asked", |_| asked.asked() == 1).await;
    desk.world.crash().await;

    let says = [arguments(json!(5))];
    let desk = Desk::awaiting(folder.path(), PROPOSE, says, STRICT).await;
    desk.world.engine.admin().keep_recovering();
    until_about_to_ask(&desk.world, 2).await;
    assert_eq!(desk.model.asked(), 0, "it was asked before the tool was there");
    let tools = desk.world.engine.tools();
    assert_eq!(tools.replace(strict(&desk.sent)), []);
    tools.end_arrivals();
    let report = desk.world.until_status(run, "completed").await;
    assert_eq!((report.run.answer, desk.model.asked()), (Some(json!({"n": 5})), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_run_drops_its_proposal() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), PROPOSE, [Says::Hangs("well")]).await;
    let run = desk.world.start("read", json!({"n": "x"}), "s").await.run.id;
    let model = desk.model.clone();
    desk.world.until("the model to be asked", |_| model.asked() == 1).await;
    let cancelled = desk.world.engine.runs().cancel(&caller(), run).await.unwrap();
    assert_eq!(cancelled.run.status.name(), "cancelled");
    desk.world.until("the model to be given up", |_| model.dropped() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_without_its_model_leaves_the_step_to_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), "{propose: {model: gone}}", []).await;
    let report = desk.run("read", json!({"n": "x"})).await;
    let fault = only_ask(&report).tried[0].found.as_ref().unwrap().fault.clone().unwrap();
    assert!(fault.message.contains("no model `gone`"), "{fault}");
    desk.world.engine.catalog().replace_models(Models::default());
    let report = desk.world.run("write", json!({"n": "x"}), "t").await;
    assert_eq!(report.run.status.name(), "stuck");
}

/// A correction that calls this tool and settles with what it says.
fn correction(tool: &str) -> Says {
    let steps = json!([
        {"id": "look", "type": "tool_call", "toolId": tool, "arguments": {"n": 4},
         "saveAs": "seen", "nextStepId": "say"},
        {"id": "say", "type": "final_response",
         "message": {"action": "settle", "output": {"jsonPath": "$.context.seen"}}}]);
    text(&json!({"planId": "fix/it", "description": "Looks first.", "steps": steps}).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drafted_correction_runs_after_approval() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), "{draft: {}}", [correction("strict::read")]).await;
    let report = desk.run("write", json!({"n": 0})).await;
    assert_eq!((report.run.status.name(), desk.sent()), ("stuck", 1));
    let ask = only_ask(&report).clone();
    let drafted = ask.tried[0].found.clone().unwrap();
    assert_eq!(drafted.plan.as_ref().unwrap()["steps"][0]["toolId"], "strict::read");
    let done = desk.take(&ask, FixAction::Correct).await;
    assert_eq!((done.run.answer, desk.sent()), (Some(json!({"n": 4})), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_read_only_corrections_run_unapproved_and_only_if_their_rule_allows() {
    let auto = "{draft: {auto: reads}}";
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), auto, [correction("strict::read")]).await;
    let report = desk.run("read", json!({"n": 0})).await;
    assert_eq!(report.run.status.name(), "completed", "{:?}", report.asks);
    assert_eq!((report.run.answer, desk.sent()), (Some(json!({"n": 4})), 2));

    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), auto, [correction("strict::write")]).await;
    let report = desk.run("read", json!({"n": 0})).await;
    assert_eq!((report.run.status.name(), desk.sent()), ("stuck", 1));
    // What it would write asks a person once more, when it runs.
    let ask = only_ask(&report).clone();
    let asked = desk.take(&ask, FixAction::Correct).await;
    assert_eq!((asked.run.status.name(), desk.sent()), ("waiting", 1));
    assert_eq!(only_ask(&asked).body.kind(), "approve");
}

#[tokio::test(flavor = "multi_thread")]
async fn models_never_settle_the_outcome_of_a_write() {
    for answer in [
        json!({"action": "settle", "output": {"paid": true}}),
        json!({"action": "skip", "output": {"paid": true}}),
        json!({"action": "abort"}),
        json!({"action": "retry"}),
        json!({"action": "edit", "arguments": {"n": 5}}),
    ] {
        let steps = json!([{"id": "say", "type": "final_response", "message": answer}]);
        let plan = json!({"planId": "fix/it", "description": "Says it.", "steps": steps});
        let says = text(&plan.to_string());
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::open(folder.path(), "{draft: {auto: reads}}", [says]).await;
        let report = desk.run("write", json!({"n": 0})).await;
        assert_eq!((report.run.status.name(), desk.sent()), ("stuck", 1), "{answer}");
        let ask = only_ask(&report);
        assert!(ask.held.is_none(), "{answer}: it is a person's");
        let found = ask.tried[0].found.as_ref().unwrap();
        assert!(!found.acts && found.plan.is_some(), "{answer}: {found:?}");
        assert!(proposed(ask, FixAction::Correct).is_some(), "{answer}: {ask:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_waits_for_tools_of_starting_upstreams() {
    let folder = tempfile::tempdir().unwrap();
    let rule = "{draft: {auto: reads}}";
    let says = [correction("late.read")];
    let desk = Desk::awaiting(folder.path(), rule, says, "late.").await;
    desk.world.permits.add_permits(1);
    let run = desk.world.start("read", json!({"n": 0}), "s").await.run.id;
    until_about_to_ask(&desk.world, 1).await;
    assert_eq!(desk.model.asked(), 0, "it was asked before all tools were there");
    let tools = desk.world.engine.tools();
    assert_eq!(tools.replace(desk.world.late("late.read")), []);
    tools.end_arrivals();
    let report = desk.world.until_status(run, "completed").await;
    assert_eq!(report.run.answer, Some(json!({"got": {"n": 4}})), "{:?}", report.asks);
    let prompt = format!("{:?}", desk.model.prompt(0));
    assert!(desk.model.asked() == 1 && prompt.contains("late.read"), "{prompt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drafted_correction_continues_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), "{draft: {}}", [correction("strict::write")]).await;
    let report = desk.run("read", json!({"n": 0})).await;
    let asked = desk.take(&only_ask(&report).clone(), FixAction::Correct).await;
    let approval = only_ask(&asked).clone();
    desk.world.crash().await;

    let desk = Desk::open(folder.path(), "{draft: {}}", []).await;
    let input = json!({"approve": true});
    let reply = kernel::ask::reply::short_form(&approval, Some(&input)).unwrap();
    let asks = desk.world.engine.asks();
    let done = asks.reply(&caller(), approval.id, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(done.run.run.answer, Some(json!({"n": 4})), "{:?}", done.run.asks);
    assert_eq!((desk.sent(), desk.model.asked()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_correction_is_ignored() {
    let steps = json!([{"id": "sub", "type": "plan", "planId": "read", "nextStepId": "end"},
                       {"id": "end", "type": "final_response", "message": "x"}]);
    let runs_a_plan = || text(&json!({"planId": "a/b", "steps": steps}).to_string());
    let says = [
        text("{\"planId\": "),
        correction("strict::raed"),
        correction("secret::write"),
        runs_a_plan(),
        correction("strict::read"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path(), "{draft: {auto: reads}}", says).await;
    let report = desk.run("write", json!({"n": 0})).await;
    assert_eq!((report.run.status.name(), desk.model.asked(), desk.sent()), ("stuck", 4, 1));
    let ask = only_ask(&report);
    assert_eq!(proposed(ask, FixAction::Correct), None);
    let fault = ask.tried[0].found.as_ref().unwrap().fault.clone().unwrap();
    assert!(fault.message.contains("runs a plan or an agent"), "{fault}");
}
