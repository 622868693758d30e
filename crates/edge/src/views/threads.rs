//! Conversations as `/run` and `/resume` show them: what someone has to do, the outcome of a run,
//! and the state of a request.

use crate::problem::{Failure, Result};
use axum::http::StatusCode;
use engine::{RunReport, Transcript};
use kernel::ask::{Ask, AskBody, AskedCall, Question, Reply};
use kernel::contracts::SessionAsk;
use kernel::conversation::llm::{Message, ModelCall};
use kernel::session::RunStatus;
use serde_json::{Value, json};
use wire::conversations::{
    ApprovalOutcome, ClarificationInfo, PendingAction, RejectedToolFeedback, RequestState,
    ThreadAnswer, ThreadStatus, ToolCallInfo,
};

/// What someone has to do about these open asks: questions first, then approvals, forms, pages.
/// A failed step is none of these.
pub fn pending(asks: &[SessionAsk]) -> Option<PendingAction> {
    let open = || asks.iter().map(|asked| &asked.row.ask);
    let clarifications: Vec<ClarificationInfo> = open().flat_map(clarifications).collect();
    if !clarifications.is_empty() {
        return Some(PendingAction::Clarification { clarifications });
    }
    let tool_calls: Vec<ToolCallInfo> = open().flat_map(tool_calls).collect();
    if !tool_calls.is_empty() {
        return Some(PendingAction::Confirmation { tool_calls });
    }
    open().find_map(form).or_else(|| open().find_map(page))
}

fn clarifications(ask: &Ask) -> Vec<ClarificationInfo> {
    let AskBody::Clarify { message, questions } = &ask.body else { return Vec::new() };
    let asked = |asked: &Question| ClarificationInfo {
        call_id: asked.call_id.to_string(),
        question: asked.question.clone(),
        context: asked.context.clone(),
    };
    if !questions.is_empty() {
        return questions.iter().map(asked).collect();
    }
    // A question of a plan is asked by no call: its ask stands for one.
    let call_id = ask.id.to_string();
    let question = message.clone();
    vec![ClarificationInfo { call_id, question, context: String::new() }]
}

fn tool_calls(ask: &Ask) -> Vec<ToolCallInfo> {
    let AskBody::Approve { calls } = &ask.body else { return Vec::new() };
    let shown = |call: &AskedCall| ToolCallInfo {
        call_id: call.call_id.to_string(),
        tool_name: call.tool.to_string(),
        arguments: (*call.arguments).clone(),
    };
    calls.iter().map(shown).collect()
}

fn form(ask: &Ask) -> Option<PendingAction> {
    let AskBody::Fill { message, schema } = &ask.body else { return None };
    Some(PendingAction::FormElicitation {
        elicitation_id: ask.id.to_string(),
        schema: (**schema).clone(),
        message: message.clone(),
    })
}

fn page(ask: &Ask) -> Option<PendingAction> {
    let AskBody::Authorize { message, url } = &ask.body else { return None };
    Some(PendingAction::OauthUrl {
        elicitation_id: ask.id.to_string(),
        url: url.clone(),
        message: message.clone(),
    })
}

/// The outcome of a run, or why it has none. What the caller may not answer it is not asked: it
/// learns that another caller is.
pub fn answer(
    report: &RunReport,
    may_answer: impl Fn(&SessionAsk) -> bool,
) -> Result<ThreadAnswer> {
    let thread = &report.session.key.id;
    let own: Vec<SessionAsk> =
        report.asks.iter().filter(|asked| may_answer(asked)).cloned().collect();
    match report.run.status {
        RunStatus::Completed => {
            let response = report.run.answer.as_ref().map(words);
            Ok(ThreadAnswer { response, ..ThreadAnswer::new(ThreadStatus::Success) })
        }
        RunStatus::Failed => Err(failed(report)),
        RunStatus::Cancelled => {
            let message = format!("the request in thread `{thread}` was cancelled");
            let detail = json!({"run": report.run.id});
            Err(Failure::new(StatusCode::CONFLICT, "run_cancelled", message).detail(detail))
        }
        RunStatus::Paused => Ok(going_on(thread, "someone paused it")),
        RunStatus::Stuck if report.is_moving() => {
            Ok(going_on(thread, "a failed step is tried again"))
        }
        RunStatus::Running => Ok(match pending(&own) {
            Some(action) => asking(thread, action),
            None => going_on(thread, "it is still at work"),
        }),
        RunStatus::Waiting | RunStatus::Stuck => match (pending(&own), report.asks.first()) {
            (Some(action), _) => Ok(asking(thread, action)),
            (None, Some(asked)) if own.is_empty() && pending(&report.asks).is_some() => {
                let why =
                    format!("ask `{}` waits for the answer of another caller", asked.row.ask.id);
                Ok(going_on(thread, &why))
            }
            (None, _) => Err(stuck(report)),
        },
    }
}

/// A value as an answer in words.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn going_on(thread: &str, why: &str) -> ThreadAnswer {
    ThreadAnswer {
        thread_id: Some(thread.to_owned()),
        message: Some(format!("{why}; `Location` says where to look")),
        ..ThreadAnswer::new(ThreadStatus::Running)
    }
}

fn asking(thread: &str, action: PendingAction) -> ThreadAnswer {
    let status = match &action {
        PendingAction::Clarification { .. } => ThreadStatus::ClarificationRequired,
        PendingAction::Confirmation { .. } => ThreadStatus::ConfirmationRequired,
        PendingAction::FormElicitation { .. } => ThreadStatus::FormRequired,
        PendingAction::OauthUrl { .. } => ThreadStatus::OauthRequired,
    };
    let mut answer = ThreadAnswer::new(status);
    answer.thread_id = Some(thread.to_owned());
    match &action {
        PendingAction::FormElicitation { message, .. } => answer.message = Some(message.clone()),
        PendingAction::OauthUrl { url, message, .. } => {
            answer.response = Some(message.clone());
            answer.url = Some(url.clone());
            answer.message = Some(message.clone());
        }
        PendingAction::Clarification { .. } | PendingAction::Confirmation { .. } => {}
    }
    answer.pending_action = Some(action);
    answer
}

fn failed(report: &RunReport) -> Failure {
    let thread = &report.session.key.id;
    let fault = report.run.last_error.as_ref();
    let why = fault.map_or_else(|| "the reason is unknown".to_owned(), ToString::to_string);
    let message = format!("the request in thread `{thread}` failed: {why}");
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "run_failed", message)
        .detail(json!({"run": report.run.id, "fault": fault.map(|fault| &fault.name)}))
        .maybe_hint(fault.and_then(|fault| fault.hint.clone()))
}

/// A step failed and a person has to say what to do: not here: this API has no word for it.
fn stuck(report: &RunReport) -> Failure {
    let thread = &report.session.key.id;
    let fault = report.run.last_error.as_ref();
    let why = fault.map_or_else(|| "a step failed".to_owned(), ToString::to_string);
    let message = format!("the request in thread `{thread}` is stuck: {why}");
    let shown = |asked: &SessionAsk| {
        let ask = &asked.row.ask;
        let actions = match &ask.body {
            AskBody::Fix { actions, .. } => json!(actions),
            _ => Value::Null,
        };
        json!({"askId": ask.id, "kind": ask.body.kind(), "title": ask.title, "actions": actions})
    };
    let asks: Vec<Value> = report.asks.iter().map(shown).collect();
    let hint = match report.asks.first() {
        Some(asked) => {
            let ask = asked.row.ask.id;
            format!("say what to do: `waypost inbox show {ask}`, or POST /api/v1/asks/{ask}")
        }
        None => "look at the run".to_owned(),
    };
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "run_stuck", message)
        .hint(hint)
        .detail(json!({"run": report.run.id, "asks": asks}))
}

/// The state of a conversation. `approval` is the last decided one.
pub fn request_state(
    transcript: Transcript,
    report: Option<&RunReport>,
    approval: Option<&SessionAsk>,
) -> RequestState {
    let asks = report.map(|report| report.asks.as_slice()).unwrap_or_default();
    let auth_url = asks.iter().find_map(|asked| match &asked.row.ask.body {
        AskBody::Authorize { url, .. } => Some(url.clone()),
        _ => None,
    });
    let done = report.filter(|report| report.run.status == RunStatus::Completed);
    RequestState {
        messages: transcript.messages.iter().map(message).collect(),
        allowed_tool_types: transcript.allowed,
        pending_action: pending(asks),
        final_response: done.and_then(|report| report.run.answer.as_ref()).map(words),
        approval_outcome: approval.and_then(outcome),
        auth_url,
    }
}

/// A message in the shape that its clients know.
fn message(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({"type": "system", "content": text}),
        Message::User { text } => json!({"type": "human", "content": text}),
        Message::Assistant { text, calls, .. } => {
            let call = |call: &ModelCall| {
                json!({
                    "id": call.id, "name": call.tool, "args": call.arguments, "type": "tool_call"
                })
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            json!({"type": "ai", "content": text, "tool_calls": calls})
        }
        Message::Result { id, tool, text, failed } => {
            let status = if *failed { "error" } else { "success" };
            json!({
                "type": "tool", "content": text, "tool_call_id": id, "name": tool, "status": status
            })
        }
    }
}

fn outcome(asked: &SessionAsk) -> Option<ApprovalOutcome> {
    let AskBody::Approve { calls } = &asked.row.ask.body else { return None };
    let Reply::Approve { decisions } = &asked.row.decision.as_ref()?.reply else { return None };
    let (approved, rejected): (Vec<_>, Vec<_>) =
        decisions.iter().partition(|decision| decision.approve);
    let tool = |id| calls.iter().find(|call| call.call_id == id).map(|call| call.tool.to_string());
    let feedback = |decision: &&kernel::ask::CallDecision| RejectedToolFeedback {
        call_id: decision.call_id.to_string(),
        tool_name: tool(decision.call_id).unwrap_or_default(),
        feedback: decision.feedback.clone().unwrap_or_default(),
    };
    Some(ApprovalOutcome {
        all_approved: rejected.is_empty(),
        approved_call_ids: approved.iter().map(|decision| decision.call_id.to_string()).collect(),
        rejected_feedback: rejected.iter().map(feedback).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::ask::AskStatus;
    use kernel::journal::projection::{AskRow, RunRow, SessionRow};
    use kernel::session::RunSpent;
    use kernel::values::ids::{
        AskId, CallId, ContentHash, Fence, FrameId, Millis, RunId, SessionId, SessionKey, Space,
    };
    use std::sync::Arc;

    fn asked(number: u128, body: AskBody) -> SessionAsk {
        let ask = Ask {
            id: AskId(number),
            run: RunId(1),
            frame: FrameId(1),
            step: "work".into(),
            title: "t".to_owned(),
            body,
            digest: ContentHash::of(b""),
            created_at: Millis(0),
            expires_at: None,
            wanted: None,
            answerers: None,
            subject: None,
            held: None,
            tried: Vec::new(),
            next: kernel::ask::context::NextSteps::default(),
            about: Vec::new(),
        };
        SessionAsk {
            session: SessionId(1),
            key: SessionKey::new("r", Space::thread(), "t"),
            row: AskRow { ask, status: AskStatus::Open, decision: None },
        }
    }

    fn approve(number: u128) -> SessionAsk {
        let call = AskedCall {
            call_id: CallId(number),
            tool: "create_event".into(),
            arguments: Arc::new(json!({"name": "x"})),
        };
        asked(number, AskBody::Approve { calls: vec![call] })
    }

    fn authorize() -> SessionAsk {
        let message = "log in".to_owned();
        let url = "https://a.test/".to_owned();
        asked(8, AskBody::Authorize { message, url })
    }

    #[test]
    fn questions_come_before_approvals_and_these_before_forms_and_pages() {
        let question =
            asked(1, AskBody::Clarify { message: "what?".to_owned(), questions: vec![] });
        let form =
            asked(7, AskBody::Fill { message: "who?".to_owned(), schema: Arc::new(json!({})) });
        let mut asks = vec![authorize(), form, approve(2), approve(3), question];
        let kind = |asks: &[SessionAsk]| json!(pending(asks))["kind"].clone();
        let shown = json!(pending(&asks));
        assert_eq!(shown["clarifications"][0]["call_id"], json!(AskId(1)));
        assert_eq!(shown["clarifications"][0]["context"], "");
        asks.pop();
        let shown = json!(pending(&asks));
        assert_eq!(shown["tool_calls"].as_array().unwrap().len(), 2, "all of them");
        assert_eq!(shown["tool_calls"][0]["arguments"], json!({"name": "x"}));
        asks.truncate(2);
        assert_eq!(kind(&asks), "form_elicitation");
        asks.truncate(1);
        assert_eq!(kind(&asks), "oauth_url");
        assert_eq!(pending(&[]), None);
    }

    fn waiting(asks: Vec<SessionAsk>) -> RunReport {
        let status = RunStatus::Waiting;
        let at = Millis(0);
        RunReport {
            run: RunRow {
                id: RunId(1),
                no: 1,
                owner: None,
                plan: "agent/helper".into(),
                status,
                step: None,
                answer: None,
                last_error: None,
                started_at: at,
                ended_at: None,
                changed_at: at,
                spent: RunSpent::default(),
                stopped: None,
                bytes: 0,
            },
            session: SessionRow {
                id: SessionId(1),
                key: SessionKey::new("r", Space::thread(), "t"),
                owner: None,
                status,
                run: Some(RunId(1)),
                plan: None,
                step: None,
                last_error: None,
                seq: 1,
                wake_at: None,
                created_at: at,
                updated_at: at,
                parked: None,
                fence: Fence::NONE,
            },
            asks,
            replayed: false,
            elsewhere: false,
        }
    }

    #[test]
    fn an_approval_is_put_to_nobody_who_may_not_give_it() {
        let report = waiting(vec![approve(2)]);
        let own = answer(&report, |_| true).unwrap();
        assert_eq!(own.status, ThreadStatus::ConfirmationRequired);
        let others = answer(&report, |_| false).unwrap();
        assert_eq!((others.status, &others.pending_action), (ThreadStatus::Running, &None));
        let message = others.message.unwrap();
        assert!(message.contains(&AskId(2).to_string()), "{message}");
        // Of several it gets its own.
        let question =
            asked(1, AskBody::Clarify { message: "what?".to_owned(), questions: vec![] });
        let report = waiting(vec![question, approve(2)]);
        let own = answer(&report, |asked| asked.row.ask.id == AskId(2)).unwrap();
        assert_eq!(own.status, ThreadStatus::ConfirmationRequired);
        // What no one is asked here stays an error.
        assert!(answer(&waiting(Vec::new()), |_| false).is_err());
    }

    #[test]
    fn a_login_fills_all_that_a_client_may_look_at() {
        let answer = asking("t", pending(&[authorize()]).unwrap());
        let expected = json!({
            "status": "oauth_required", "response": "log in", "thread_id": "t",
            "pending_action": {"kind": "oauth_url", "elicitation_id": AskId(8),
                "url": "https://a.test/", "message": "log in"},
            "url": "https://a.test/", "message": "log in",
        });
        assert_eq!(json!(answer), expected);
    }

    #[test]
    fn messages_have_the_shapes_that_clients_know() {
        let call = ModelCall {
            id: "call_1".to_owned(),
            tool: "list_events".to_owned(),
            arguments: Arc::new(json!({"a": 1})),
        };
        let said = Message::Assistant { text: String::new(), calls: vec![call], native: None };
        let calls = json!([{"id": "call_1", "name": "list_events", "args": {"a": 1},
            "type": "tool_call"}]);
        assert_eq!(message(&said), json!({"type": "ai", "content": "", "tool_calls": calls}));
        let result = Message::Result {
            id: "call_1".to_owned(),
            tool: "list_events".to_owned(),
            text: "none".to_owned(),
            failed: true,
        };
        let expected = json!({"type": "tool", "content": "none", "tool_call_id": "call_1",
            "name": "list_events", "status": "error"});
        assert_eq!(message(&result), expected);
    }
}
