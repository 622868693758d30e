//! Validation of replies. A reply is checked before it is recorded, so that an invalid one leaves
//! its ask open.

use crate::ask::proposal::proposed;
use crate::ask::{Ask, AskBody, CallDecision, FixAction, Question, Reply};
use crate::tool::call::CallProgress;
use crate::tool::schema::{Misfit, Schemas};
use crate::values::ids::{CallId, PlanId};
use serde_json::{Value, json};
use std::sync::Arc;

/// Why a reply does not fit its ask.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadReply {
    /// A reply of another kind.
    #[error("this ask is a `{asked}`; a `{given}` reply does not fit it")]
    OtherKind {
        asked: &'static str,
        /// What came.
        given: &'static str,
    },
    /// The calls are not exactly the ones that were asked.
    #[error("{0}")]
    Calls(String),
    /// The content does not fit the schema.
    #[error("the answer does not fit its schema")]
    Misfits(Vec<Misfit>),
    /// The action is not offered, or lacks what it needs.
    #[error("{0}")]
    Action(String),
}

impl Reply {
    /// The kind's name in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Reply::Clarify { .. } => "clarify",
            Reply::Approve { .. } => "approve",
            Reply::Fill { .. } => "fill",
            Reply::Authorize { .. } => "authorize",
            Reply::Fix { .. } => "fix",
        }
    }

    /// To a failed step, with nothing but this.
    pub fn fix(action: FixAction) -> Self {
        Reply::Fix { action, arguments: None, output: None, plan_id: None }
    }
}

/// Whether the reply fits the ask. Edited arguments are the gate's to check.
pub fn check(ask: &Ask, reply: &Reply, schemas: &dyn Schemas) -> Result<(), BadReply> {
    match (&ask.body, reply) {
        (AskBody::Clarify { questions, .. }, Reply::Clarify { answer: Some(answer) })
            if !questions.is_empty() =>
        {
            check_answers(questions, answer)
        }
        (AskBody::Clarify { .. }, Reply::Clarify { .. })
        | (AskBody::Authorize { .. }, Reply::Authorize { .. })
        | (AskBody::Fill { .. }, Reply::Fill { content: None }) => Ok(()),
        (AskBody::Fill { schema, .. }, Reply::Fill { content: Some(content) }) => {
            schemas.check(schema, content).map_err(BadReply::Misfits)
        }
        (AskBody::Approve { calls }, Reply::Approve { decisions }) => {
            let asked: Vec<_> = calls.iter().map(|call| call.call_id).collect();
            check_calls(&asked, decisions)
        }
        (
            AskBody::Fix { actions, plans, .. },
            Reply::Fix { action, arguments, output, plan_id },
        ) => {
            check_action(actions, *action, arguments.is_some(), output.is_some())?;
            check_plan(plans, *action, plan_id.as_ref())
        }
        (asked, reply) => Err(BadReply::OtherKind { asked: asked.kind(), given: reply.kind() }),
    }
}

/// The answers to an agent's questions: a text for each call id and no other, or one text where
/// there is one question.
fn check_answers(questions: &[Question], answer: &Value) -> Result<(), BadReply> {
    let wrong = |message: String| Err(BadReply::Calls(message));
    let says = |text: &str| !text.trim().is_empty();
    let answers = match (answer, questions) {
        (Value::String(text), [_]) if says(text) => return Ok(()),
        (Value::Object(answers), _) => answers,
        (Value::String(_), [_]) => return wrong("the answer is empty".to_owned()),
        _ => {
            let ids: Vec<String> =
                questions.iter().map(|asked| format!("`{}`", asked.call_id)).collect();
            let ids = ids.join(", ");
            return wrong(format!("the answer must be an object with a text for each of {ids}"));
        }
    };
    for asked in questions {
        let id = asked.call_id;
        match answers.get(&id.to_string()) {
            Some(Value::String(text)) if says(text) => {}
            Some(Value::String(_)) => return wrong(format!("the answer to `{id}` is empty")),
            Some(_) => return wrong(format!("the answer to `{id}` is not a text")),
            None => return wrong(format!("question `{id}` is not answered")),
        }
    }
    let asked = |id: &&String| questions.iter().any(|asked| asked.call_id.to_string() == **id);
    match answers.keys().find(|id| !asked(id)) {
        Some(id) => wrong(format!("`{id}` is not a question of this ask")),
        None => Ok(()),
    }
}

/// The call that is rejected without a word, if there is one. An agent whose call is rejected must
/// learn why: its model reads these words.
pub fn wordless(decisions: &[CallDecision]) -> Option<CallId> {
    let said = |words: &String| !words.trim().is_empty();
    let wordless = |decision: &&CallDecision| {
        !decision.approve && !decision.feedback.as_ref().is_some_and(said)
    };
    decisions.iter().find(wordless).map(|decision| decision.call_id)
}

fn check_calls(asked: &[CallId], decisions: &[CallDecision]) -> Result<(), BadReply> {
    for (index, decision) in decisions.iter().enumerate() {
        let id = decision.call_id;
        if !asked.contains(&id) {
            return Err(BadReply::Calls(format!("call `{id}` is not part of this ask")));
        }
        if decisions[..index].iter().any(|other| other.call_id == id) {
            return Err(BadReply::Calls(format!("call `{id}` is decided twice")));
        }
        if !decision.approve && decision.arguments.is_some() {
            return Err(BadReply::Calls(format!("call `{id}` is rejected and edited")));
        }
    }
    match asked.iter().find(|id| !decisions.iter().any(|decision| decision.call_id == **id)) {
        Some(missing) => Err(BadReply::Calls(format!("call `{missing}` is not decided"))),
        None => Ok(()),
    }
}

/// `correct` names one of the plans that the run has for it; nothing else names one.
fn check_plan(plans: &[PlanId], action: FixAction, plan: Option<&PlanId>) -> Result<(), BadReply> {
    match (action, plan) {
        (FixAction::Correct, Some(plan)) if plans.contains(plan) => Ok(()),
        (FixAction::Correct, _) => {
            let offered = json!(plans);
            Err(BadReply::Action(format!("\"correct\" needs a `planId` of {offered}")))
        }
        (_, None) => Ok(()),
        (action, Some(_)) => Err(BadReply::Action(format!("{} takes no `planId`", json!(action)))),
    }
}

pub(super) fn check_action(
    actions: &[FixAction],
    action: FixAction,
    has_arguments: bool,
    has_output: bool,
) -> Result<(), BadReply> {
    if !actions.contains(&action) {
        let offered = json!(actions);
        return Err(BadReply::Action(format!("{} is not one of {offered}", json!(action))));
    }
    let fits = match action {
        FixAction::Edit => has_arguments && !has_output,
        FixAction::Settle => has_output && !has_arguments,
        FixAction::Skip => !has_arguments,
        FixAction::Retry | FixAction::Abort | FixAction::Correct | FixAction::Propose => {
            !has_arguments && !has_output
        }
    };
    if fits {
        return Ok(());
    }
    let needs = match action {
        FixAction::Edit => "needs `arguments` and nothing else",
        FixAction::Settle => "needs `output` and nothing else",
        FixAction::Skip => "takes `output` only",
        FixAction::Retry | FixAction::Abort | FixAction::Correct | FixAction::Propose => {
            "takes neither `arguments` nor `output`"
        }
    };
    Err(BadReply::Action(format!("{} {needs}", json!(action))))
}

/// A reply in the short form of `/sessions/{id}/resume` and of a plan's examples.
pub fn short_form(ask: &Ask, input: Option<&Value>) -> Result<Reply, BadReply> {
    match &ask.body {
        AskBody::Clarify { .. } => {
            Ok(Reply::Clarify { answer: Some(input.cloned().ok_or_else(|| missing("an answer"))?) })
        }
        AskBody::Fill { .. } => Ok(Reply::Fill {
            content: Some(input.cloned().ok_or_else(|| missing("the form's content"))?),
        }),
        AskBody::Authorize { .. } => Ok(Reply::Authorize { done: true }),
        AskBody::Approve { calls } => {
            let input = input.ok_or_else(|| missing("{approve: true|false}"))?;
            if let Some(decisions) = input.get("decisions") {
                return decided_each(decisions);
            }
            let approve = input["approve"].as_bool().ok_or_else(|| {
                BadReply::Action("an approval needs {approve: true|false}".to_owned())
            })?;
            let feedback = input["feedback"].as_str().map(str::to_owned);
            let decide = |call: &crate::ask::AskedCall| CallDecision {
                call_id: call.call_id,
                approve,
                feedback: feedback.clone(),
                arguments: None,
            };
            Ok(Reply::Approve { decisions: calls.iter().map(decide).collect() })
        }
        AskBody::Fix { how, actions, .. } => match input.filter(|it| it["proposal"] == true) {
            Some(input) => taken(ask, input),
            None => fix_form(*how, actions, input),
        },
    }
}

/// The ask's own proposal, taken as it is.
fn taken(ask: &Ask, input: &Value) -> Result<Reply, BadReply> {
    let action = serde_json::from_value(input["action"].clone()).unwrap_or(FixAction::Edit);
    let others = ["arguments", "output", "planId"];
    if let Some(other) = others.into_iter().find(|name| input.get(name).is_some()) {
        let message = format!("`proposal` takes what is proposed, without `{other}`");
        return Err(BadReply::Action(message));
    }
    proposed(ask, action).ok_or_else(|| no_proposal(action))
}

/// The ask has no proposal for this action.
pub fn no_proposal(action: FixAction) -> BadReply {
    BadReply::Action(format!("nothing is proposed for {}", json!(action)))
}

/// Several calls, each decided by itself.
fn decided_each(decisions: &Value) -> Result<Reply, BadReply> {
    let decisions = serde_json::from_value(decisions.clone()).map_err(|error| {
        let wanted = "`decisions` is a list of {callId, approve, feedback?, arguments?}";
        BadReply::Action(format!("{wanted}: {error}"))
    })?;
    Ok(Reply::Approve { decisions })
}

fn missing(what: &str) -> BadReply {
    BadReply::Action(format!("`input` is missing: this ask wants {what}"))
}

fn fix_form(
    how: CallProgress,
    actions: &[FixAction],
    input: Option<&Value>,
) -> Result<Reply, BadReply> {
    let empty = input.is_none_or(|input| input.as_object().is_some_and(serde_json::Map::is_empty));
    if empty {
        // An empty body means retry, except where that might do a write twice.
        if how == CallProgress::Unknown {
            let offered = json!(actions);
            return Err(BadReply::Action(format!(
                "it is unknown whether the call happened: choose an action of {offered}"
            )));
        }
        return Ok(Reply::fix(FixAction::Retry));
    }
    let input = input.cloned().unwrap_or_default();
    let action = serde_json::from_value::<FixAction>(input["action"].clone())
        .map_err(|_| BadReply::Action(format!("`action` must be one of {}", json!(actions))))?;
    let member = |name: &str| input.get(name).cloned();
    Ok(Reply::Fix {
        action,
        arguments: member("arguments").map(Arc::new),
        output: member("output"),
        plan_id: input["planId"].as_str().map(PlanId::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::AskedCall;
    use crate::values::ids::{AskId, ContentHash, FrameId, Millis, RunId};

    /// Nothing here has a schema.
    struct NoSchemas;

    impl Schemas for NoSchemas {
        fn compile(&self, _schema: &Arc<Value>) -> Result<usize, Misfit> {
            Ok(1)
        }
        fn steps(&self, _schema: &Arc<Value>, _value: &Value) -> u64 {
            1
        }
        fn check(&self, _schema: &Arc<Value>, _value: &Value) -> Result<(), Vec<Misfit>> {
            Ok(())
        }
    }

    fn ask(body: AskBody) -> Ask {
        Ask {
            id: AskId(1),
            run: RunId(1),
            frame: FrameId(1),
            step: "work".into(),
            title: "go on?".to_owned(),
            body,
            digest: ContentHash::of(b""),
            created_at: Millis(0),
            expires_at: None,
            wanted: None,
            answerers: None,
            subject: None,
            held: None,
            tried: Vec::new(),
            next: crate::ask::context::NextSteps::default(),
            about: Vec::new(),
        }
    }

    fn questions(count: u128) -> AskBody {
        let question = |number| Question {
            call_id: CallId(number),
            question: "what?".to_owned(),
            context: String::new(),
        };
        AskBody::Clarify {
            message: "what?".to_owned(),
            questions: (1..=count).map(question).collect(),
        }
    }

    fn answered(body: AskBody, answer: Value) -> Result<(), BadReply> {
        check(&ask(body), &Reply::Clarify { answer: Some(answer) }, &NoSchemas)
    }

    #[test]
    fn all_questions_of_an_agent_are_answered_and_no_others() {
        let [one, two] = [CallId(1), CallId(2)].map(|id| id.to_string());
        assert_eq!(answered(questions(1), json!("tomorrow")), Ok(()));
        assert_eq!(answered(questions(1), json!({&one: "tomorrow"})), Ok(()));
        assert_eq!(answered(questions(2), json!({&one: "a", &two: "b"})), Ok(()));
        // A question of a plan takes any answer, as ever.
        assert_eq!(answered(questions(0), json!(3)), Ok(()));
        for (count, wrong) in [
            (1, json!(" ")),
            (1, json!(3)),
            (1, json!({})),
            (1, json!({&one: ""})),
            (1, json!({&one: "a", &two: "b"})),
            (2, json!("both")),
            (2, json!({&one: "a"})),
            (2, json!({&one: "a", &two: 2})),
        ] {
            let came = answered(questions(count), wrong.clone());
            assert!(matches!(came, Err(BadReply::Calls(_))), "{wrong}: {came:?}");
        }
        let declined = Reply::Clarify { answer: None };
        assert_eq!(check(&ask(questions(2)), &declined, &NoSchemas), Ok(()));
    }

    #[test]
    fn the_short_form_decides_all_calls_alike_or_each_by_itself() {
        let call = |number| AskedCall {
            call_id: CallId(number),
            tool: "write::pay".into(),
            arguments: Arc::new(json!({})),
        };
        let ask = ask(AskBody::Approve { calls: vec![call(1), call(2)] });
        let reply = |input: Value| short_form(&ask, Some(&input)).unwrap();
        let Reply::Approve { decisions } = reply(json!({"approve": false})) else {
            panic!("not an approval")
        };
        assert_eq!((decisions.len(), wordless(&decisions)), (2, Some(CallId(1))));
        let each = json!({"decisions": [
            {"callId": CallId(2), "approve": false, "feedback": "too much"},
            {"callId": CallId(1), "approve": true},
        ]});
        let each = reply(each);
        assert_eq!(check(&ask, &each, &NoSchemas), Ok(()));
        let Reply::Approve { decisions } = each else { panic!("not an approval") };
        assert_eq!(wordless(&decisions), None);
        let some = Reply::Approve { decisions: decisions[..1].to_vec() };
        assert!(matches!(check(&ask, &some, &NoSchemas), Err(BadReply::Calls(_))));
    }
}
