//! Plans that a model writes: whatever it answers, what comes of it is a plan that its caller could
//! have written, or the mistakes in it, and nothing is called or kept.

use crate::model::{Says, Scripted, calls, text, told};
use crate::world::{World, caller};
use engine::{Draft, DraftRequest, DraftWrite, Drafted, Models, Refusal, RefusalKind};
use kernel::conversation::llm::{LlmErrorKind, Message, Stop, ToolChoice, Turn, Usage};
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use kernel::tool::call::Reach;
use kernel::values::ids::PlanId;
use serde_json::{Value, json};
use std::sync::Arc;

const GREET: &str = "planId: greet/hello\ndescription: Says hello to a person.\n\
    steps: [{id: end, type: final_response, message: hello}]";
const MEND: &str = "planId: mend/again\nsteps: [{id: put, type: tool_call, toolId: 'slow::write', \
    arguments: {}, nextStepId: end}, {id: end, type: final_response, message: {action: retry}}]";

fn plan(tool: &str) -> Value {
    json!({"planId": "draft/one", "description": "one call", "steps": [
        {"id": "call", "type": "tool_call", "toolId": tool, "arguments": {}, "nextStepId": "end"},
        {"id": "end", "type": "final_response", "message": "done"}]})
}

fn wanted(goal: &str) -> DraftRequest {
    DraftRequest { goal: goal.to_owned(), ..DraftRequest::default() }
}

/// A world whose only model says this.
struct Desk {
    world: World,
    model: Arc<Scripted>,
    _folder: tempfile::TempDir,
}

impl Desk {
    async fn open(limits: Limits, says: impl IntoIterator<Item = Says>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = Scripted::new(says);
        let plans = [GREET, MEND];
        let world = World::talking(folder.path(), (&plans, &[]), limits, model.models()).await;
        Self { world, model, _folder: folder }
    }

    async fn ask(&self, request: DraftRequest) -> Result<Drafted, Refusal> {
        self.world.engine.catalog().draft_plan(&caller(), request).await
    }

    async fn draft(&self, request: DraftRequest) -> Draft {
        let drafted = self.ask(request).await.unwrap();
        assert!(drafted.existing.is_empty(), "{:?}", drafted.existing);
        drafted.draft.unwrap()
    }

    /// What the model was told first, by the server.
    fn system(&self) -> String {
        match self.model.prompt(0).messages.swap_remove(0) {
            Message::System { text } => text,
            other => panic!("{other:?}"),
        }
    }

    /// The last line of what it was told in a turn.
    fn last_said(&self, turn: usize) -> String {
        told(&self.model.prompt(turn)).pop().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_written_and_every_write_in_it_asks_first() {
    let answer = format!("Here it is:\n```json\n{}\n```", plan("slow::write"));
    let desk = Desk::open(Limits::default(), [text(&answer)]).await;
    let draft = desk.draft(wanted("write something down")).await;
    let drafted = draft.plan.unwrap();
    assert_eq!((drafted.reach, drafted.plan.id.as_str()), (Reach::Writes, "draft/one"));
    let write = DraftWrite {
        step: "call".into(),
        calls: "slow::write".to_owned(),
        reach: Reach::Writes,
        approve: true,
    };
    assert_eq!(drafted.writes, [write]);
    assert_eq!(drafted.plan.source["steps"][0]["approve"], json!(true));
    let usage = Usage { input: 10, output: 2, ..Usage::default() };
    assert_eq!((draft.turns, draft.usage, draft.cost_micros), (1, usage, Some(12)));
    assert_eq!(draft.model, "fast");
    assert!(!draft.mistakes.iter().any(Mistake::is_error), "{:?}", draft.mistakes);

    // It was shown what its caller sees, and could not call it.
    let prompt = desk.model.prompt(0);
    assert_eq!((prompt.tools.len(), prompt.choice), (0, ToolChoice::None));
    let system = desk.system();
    assert!(system.contains("\"slow::read\"") && !system.contains("secret::write"), "{system}");
    // Nothing was called, and nothing is kept.
    assert_eq!(desk.world.sent(), 0);
    let known = desk.world.engine.catalog().plan(&caller(), &PlanId::from("draft/one"));
    assert!(known.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_corrects_is_shown_with_what_it_may_change() {
    let mut healing = plan("slow::read");
    healing["on_error"] = json!([{"plan": "mend/again"}]);
    let desk = Desk::open(Limits::default(), [text(&healing.to_string())]).await;
    let drafted = desk.draft(wanted("read something")).await.plan.unwrap();
    let write = DraftWrite {
        step: "call".into(),
        calls: "mend/again".to_owned(),
        reach: Reach::Writes,
        approve: false,
    };
    assert_eq!((drafted.reach, drafted.writes), (Reach::Writes, vec![write]));
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_go_back_with_their_places_until_it_is_right() {
    let whole = plan("slow::read").to_string();
    let cut = Turn { text: whole[..40].to_owned(), stop: Stop::Length, ..Turn::default() };
    let says = [
        calls([("slow::write", json!({}))]),
        Says::Turn(cut),
        text(&plan("slow::raed").to_string()),
        text(&whole),
    ];
    let desk = Desk::open(Limits::default(), says).await;
    let draft = desk.draft(wanted("read something")).await;
    let drafted = draft.plan.unwrap();
    assert_eq!((draft.turns, drafted.reach, drafted.writes), (4, Reach::Reads, Vec::new()));
    assert!(desk.last_said(1).contains("no JSON object"), "{}", desk.last_said(1));
    assert!(desk.last_said(2).contains("cut off"), "{}", desk.last_said(2));
    let last = desk.last_said(3);
    assert!(last.contains("/steps/0/toolId: there is no tool `slow::raed`"), "{last}");
    assert!(last.contains("did you mean `slow::read`?"), "{last}");
    assert_eq!(desk.world.sent(), 0, "a model that writes a plan calls nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn rounds_are_bounded_and_the_last_draft_comes_with_what_is_wrong() {
    let limits = Limits { draft_rounds_max: 1, ..Limits::default() };
    let hidden = || text(&plan("secret::write").to_string());
    let desk = Desk::open(limits, [hidden(), hidden(), hidden()]).await;
    let draft = desk.draft(wanted("do the secret thing")).await;
    assert!(draft.plan.is_none());
    assert_eq!((draft.turns, desk.model.asked()), (2, 2));
    assert_eq!(draft.source["planId"], "draft/one");
    let errors: Vec<&Mistake> = draft.mistakes.iter().filter(|found| found.is_error()).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].message.contains("there is no tool `secret::write`"), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_that_fit_already_come_first() {
    let desk = Desk::open(Limits::default(), [text(&plan("slow::read").to_string())]).await;
    let found = desk.ask(wanted("say hello to a person")).await.unwrap();
    let ids: Vec<&str> = found.existing.iter().map(|plan| plan.id.as_str()).collect();
    assert_eq!((ids, found.draft.is_none(), desk.model.asked()), (vec!["greet/hello"], true, 0));
    let fresh = DraftRequest { fresh: true, ..wanted("say hello to a person") };
    assert!(desk.draft(fresh).await.plan.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_uses_only_the_tools_that_it_may() {
    let says = [text(&plan("slow::write").to_string()), text(&plan("slow::read").to_string())];
    let desk = Desk::open(Limits::default(), says).await;
    let only = Some(vec!["*::read".to_owned()]);
    let draft = desk.draft(DraftRequest { tools: only, ..wanted("look at it") }).await;
    assert_eq!((draft.turns, draft.plan.is_some()), (2, true));
    assert!(desk.last_said(1).contains("`slow::write`, which is not to be used"));
    let system = desk.system();
    assert!(system.contains("\"slow::read\"") && !system.contains("slow::write"), "{system}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_drafted_is_refused() {
    let desk = Desk::open(Limits::default(), [Says::Fails(LlmErrorKind::Overloaded)]).await;
    let pattern = DraftRequest { tools: Some(vec!["a?".to_owned()]), ..wanted("x") };
    let other = DraftRequest { model: Some("fats".to_owned()), ..wanted("x") };
    for (request, kind, name) in [
        (wanted(" "), RefusalKind::WrongShape, "bad_draft"),
        (wanted(&"x".repeat(4_001)), RefusalKind::WrongShape, "bad_draft"),
        (pattern, RefusalKind::WrongShape, "bad_draft"),
        (other, RefusalKind::NotFound, "not_found"),
        (wanted("x"), RefusalKind::Upstream, "model_failed"),
    ] {
        let refused = desk.ask(request).await.unwrap_err();
        assert_eq!((refused.kind(), refused.code.name()), (kind, name), "{refused:?}");
    }
    assert_eq!(desk.model.asked(), 1);
    desk.world.engine.catalog().replace_models(Models::default());
    let none = desk.ask(wanted("x")).await.unwrap_err();
    assert_eq!((none.kind(), none.code.name()), (RefusalKind::BadRequest, "model_needed"));
}
