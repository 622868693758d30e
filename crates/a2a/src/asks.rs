//! What a task asks, as a client of A2A sees it, and what its message says to that. A question is
//! put only to a caller who may answer it; all others learn that someone else is asked.

use super::task::TaskAsks;
use kernel::ask::{Ask, AskBody, CallDecision, FixAction, Reply};
use kernel::values::ids::{AskId, CallId, PlanId};
use serde_json::{Value, json};
use std::sync::Arc;
use wire::a2a::ASKS_EXTENSION;
use wire::a2a::message::{Content, Message, Part, Role};
use wire::a2a::task::TaskState;
use wire::a2a::value::Timestamp;

/// What is said of an ask that the caller may not answer.
const OF_OTHERS: &str = "This task waits for a decision of someone else.";
const FIX_OF_OTHERS: &str = "A step failed. Someone else decides how the task continues.";

/// The state of a task that asks this, and what it says. `may_answer` says what is the caller's.
pub(super) fn status(
    task: &str,
    asking: &TaskAsks,
    may_answer: impl Fn(&Ask) -> bool,
) -> (TaskState, Message) {
    let mut state = TaskState::Working;
    let mut words = Vec::new();
    let mut data = Vec::new();
    let mut more = Vec::new();
    words.extend(asking.misfit.as_ref().map(|why| format!("That is not an answer: {why}")));
    for ask in &asking.asks {
        let is_own = may_answer(ask);
        state = stronger(state, state_of(ask, is_own));
        if !is_own {
            let is_fix = matches!(ask.body, AskBody::Fix { .. });
            words.push(if is_fix { FIX_OF_OTHERS } else { OF_OTHERS }.to_owned());
            continue;
        }
        words.push(question(ask));
        data.push(shown(ask));
        if let AskBody::Authorize { url, .. } = &ask.body {
            more.push(Part::new(Content::Url(url.clone())));
        }
    }
    words.dedup();
    let mut parts = vec![Part::text(words.join("\n"))];
    match data.len() {
        0 => {}
        1 => parts.extend(data.pop().map(Part::data)),
        _ => parts.push(Part::data(json!({"asks": data}))),
    }
    parts.extend(more);
    let message = Message {
        message_id: format!("{task}-{}", asking.no),
        role: Role::Agent,
        parts,
        extensions: vec![ASKS_EXTENSION.to_owned()],
        ..Message::default()
    };
    (state, message)
}

/// An input that the caller can give counts more than one that it waits for.
fn stronger(one: TaskState, other: TaskState) -> TaskState {
    let rank = |state: TaskState| match state {
        TaskState::InputRequired => 2,
        TaskState::AuthRequired => 1,
        _ => 0,
    };
    if rank(other) > rank(one) { other } else { one }
}

fn state_of(ask: &Ask, is_own: bool) -> TaskState {
    match (&ask.body, is_own) {
        (AskBody::Authorize { .. }, _) => TaskState::AuthRequired,
        (_, true) => TaskState::InputRequired,
        // No authorization is missing: a person corrects it.
        (AskBody::Fix { .. }, false) => TaskState::Working,
        (_, false) => TaskState::AuthRequired,
    }
}

fn question(ask: &Ask) -> String {
    match &ask.body {
        AskBody::Clarify { message, .. }
        | AskBody::Fill { message, .. }
        | AskBody::Authorize { message, .. } => message.clone(),
        AskBody::Approve { .. } => ask.title.clone(),
        AskBody::Fix { fault, .. } => fault.to_string(),
    }
}

fn shown(ask: &Ask) -> Value {
    let mut data = match &ask.body {
        AskBody::Clarify { questions, .. } => json!({"kind": "question", "questions": questions}),
        AskBody::Fill { schema, .. } => {
            json!({"kind": "elicitation", "mode": "form", "requestedSchema": **schema})
        }
        AskBody::Authorize { url, .. } => {
            json!({"kind": "elicitation", "mode": "url", "url": url, "host": host(url)})
        }
        AskBody::Approve { calls } => {
            json!({"kind": "approval", "approvalId": ask.id, "calls": calls})
        }
        AskBody::Fix { fault, actions, .. } => json!({"kind": "fix", "actions": actions,
            "error": {"name": fault.name, "message": fault.message}}),
    };
    data["askId"] = json!(ask.id);
    data["key"] = json!(ask.id);
    data["digest"] = json!(ask.digest);
    if let Some(expires_at) = ask.expires_at {
        data["expiresAt"] = json!(Timestamp(expires_at.0));
    }
    data
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// What a message says to the open asks that its sender may answer.
#[derive(Debug)]
pub(super) enum Answer {
    To(AskId, Reply),
    /// It is no reply, only a note.
    Note,
    /// It is meant as a reply and is none, for this reason.
    Misfit(String),
}

/// Reads a message as a reply.
pub(super) fn answer(asks: &[&Arc<Ask>], message: &Message) -> Answer {
    let data = message.parts.iter().find_map(Part::as_data);
    let named = data.and_then(|data| {
        ["askId", "approvalId", "key"].iter().find_map(|key| data.get(key)?.as_str())
    });
    let ask = match (named, asks) {
        (Some(named), _) => asks.iter().find(|ask| ask.id.to_string() == named),
        (None, [only]) => Some(only),
        (None, _) => {
            return Answer::Misfit("several things are asked; name one by `askId`".to_owned());
        }
    };
    let Some(ask) = ask else {
        return Answer::Misfit("`askId` names nothing that is open".to_owned());
    };
    let read = match data {
        Some(data) => of_data(ask, data),
        None => of_text(ask, &message.words()),
    };
    match read {
        Ok(Some(reply)) => Answer::To(ask.id, reply),
        Ok(None) => Answer::Note,
        Err(why) => Answer::Misfit(why),
    }
}

fn of_data(ask: &Ask, data: &Value) -> Result<Option<Reply>, String> {
    if data.get("digest").is_some_and(|digest| *digest != json!(ask.digest)) {
        return Err("`digest` is not that of the question".to_owned());
    }
    let action = data["action"].as_str().unwrap_or("accept");
    let declines = matches!(action, "decline" | "cancel" | "deny");
    let wanted = |key: &str| match data.get(key) {
        Some(value) => Ok(Some(value.clone())),
        None => Err(format!("`{key}` is missing")),
    };
    match &ask.body {
        AskBody::Clarify { .. } if declines => Ok(Some(Reply::Clarify { answer: None })),
        AskBody::Clarify { .. } => Ok(Some(Reply::Clarify { answer: wanted("answer")? })),
        AskBody::Fill { .. } if declines => Ok(Some(Reply::Fill { content: None })),
        AskBody::Fill { .. } => Ok(Some(Reply::Fill { content: wanted("content")? })),
        AskBody::Authorize { .. } => Ok(Some(Reply::Authorize { done: !declines })),
        AskBody::Approve { .. } => decisions(ask, data).map(Some),
        AskBody::Fix { .. } => fix(data).map(Some),
    }
}

fn decisions(ask: &Ask, data: &Value) -> Result<Reply, String> {
    let AskBody::Approve { calls } = &ask.body else { return Err(String::new()) };
    let word = data["decision"].as_str().or(data["action"].as_str());
    let for_all =
        data["approve"].as_bool().or(word.map(|word| matches!(word, "approve" | "accept")));
    let feedback = |value: &Value| value["feedback"].as_str().map(str::to_owned);
    let Some(listed) = data.get("decisions").and_then(Value::as_array) else {
        let approve = for_all.ok_or("`approve` or `decisions` is missing")?;
        let decide = |call_id: CallId| CallDecision {
            call_id,
            approve,
            feedback: feedback(data),
            arguments: None,
        };
        let decisions = calls.iter().map(|call| decide(call.call_id)).collect();
        return Ok(Reply::Approve { decisions });
    };
    let one = |value: &Value| -> Result<CallDecision, &'static str> {
        let call_id = value["callId"].as_str().and_then(|id| id.parse().ok());
        Ok(CallDecision {
            call_id: call_id.ok_or("a decision names its call by `callId`")?,
            approve: value["approve"].as_bool().ok_or("a decision has `approve`")?,
            feedback: feedback(value),
            arguments: value.get("arguments").cloned().map(Arc::new),
        })
    };
    let decisions: Result<Vec<CallDecision>, &'static str> = listed.iter().map(one).collect();
    Ok(Reply::Approve { decisions: decisions? })
}

fn fix(data: &Value) -> Result<Reply, String> {
    let action: FixAction = serde_json::from_value(data["action"].clone())
        .map_err(|_| "`action` is none of the actions".to_owned())?;
    Ok(Reply::Fix {
        action,
        arguments: data.get("arguments").cloned().map(Arc::new),
        output: data.get("output").cloned(),
        plan_id: data["planId"].as_str().map(PlanId::from),
    })
}

/// Words alone answer a question, a form with one text, and yes or no.
fn of_text(ask: &Ask, text: &str) -> Result<Option<Reply>, String> {
    let word = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    match &ask.body {
        AskBody::Clarify { .. } => {
            Ok(Some(Reply::Clarify { answer: Some(Value::String(text.to_owned())) }))
        }
        AskBody::Fill { schema, .. } => {
            let name = only_text(schema).ok_or("a form is answered by a `data` part")?;
            Ok(Some(Reply::Fill { content: Some(json!({name: text})) }))
        }
        AskBody::Authorize { .. } => match word.as_str() {
            "decline" | "no" => Ok(Some(Reply::Authorize { done: false })),
            "done" => Ok(Some(Reply::Authorize { done: true })),
            _ => Ok(None),
        },
        AskBody::Approve { .. } => match word.as_str() {
            "yes" | "approve" | "approved" => decisions(ask, &json!({"approve": true})).map(Some),
            "no" | "deny" | "reject" | "decline" => {
                decisions(ask, &json!({"approve": false, "feedback": text})).map(Some)
            }
            _ => Err("an approval is answered by `approve` or `deny`".to_owned()),
        },
        AskBody::Fix { .. } => fix(&json!({"action": word})).map(Some),
    }
}

/// The only member of a form, where that is a text.
fn only_text(schema: &Value) -> Option<&str> {
    let properties = schema["properties"].as_object().filter(|members| members.len() == 1)?;
    let (name, member) = properties.iter().next()?;
    (member["type"] == "string").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(body: &Value) -> Arc<Ask> {
        let id = format!("ask_{:032x}", 4);
        Arc::new(
            serde_json::from_value(json!({"id": id, "run": format!("run_{:032x}", 7),
                "frame": 1, "step": "s", "title": "send it?", "body": body, "digest": "d",
                "createdAt": 5}))
            .unwrap(),
        )
    }

    fn form() -> Arc<Ask> {
        ask(&json!({"kind": "fill", "message": "name?", "schema": {"type": "object",
            "properties": {"name": {"type": "string"}}}}))
    }

    fn approval() -> Arc<Ask> {
        let call = format!("call_{:032x}", 1);
        ask(&json!({"kind": "approve",
            "calls": [{"callId": call, "tool": "mail::send", "arguments": {"to": "ann"}}]}))
    }

    fn asking(asks: Vec<Arc<Ask>>) -> TaskAsks {
        TaskAsks { no: 1, asks, misfit: None }
    }

    fn said(part: Part) -> Message {
        Message { parts: vec![part], ..Message::default() }
    }

    #[test]
    fn who_may_answer_decides_the_state_and_what_is_shown() {
        let (state, message) = status("t", &asking(vec![approval()]), |_| true);
        assert_eq!((state, message.message_id.as_str()), (TaskState::InputRequired, "t-1"));
        assert_eq!(message.parts[1].as_data().unwrap()["calls"][0]["arguments"]["to"], "ann");
        let (state, message) = status("t", &asking(vec![approval()]), |_| false);
        assert_eq!((state, message.parts.len()), (TaskState::AuthRequired, 1));
        assert!(!message.words().contains("send it?"), "nothing of the question is told");
        let fix = ask(&json!({"kind": "fix", "fault": {"name": "Boom", "message": "b"},
            "how": "failed", "actions": ["retry"]}));
        let (state, _) = status("t", &asking(vec![fix]), |_| false);
        assert_eq!(state, TaskState::Working);
    }

    #[test]
    fn words_and_values_answer() {
        let form = form();
        let reply = |ask: &Arc<Ask>, part| match answer(&[ask], &said(part)) {
            Answer::To(_, reply) => json!(reply),
            other => panic!("{other:?}"),
        };
        let filled = json!({"kind": "fill", "content": {"name": "Ann"}});
        assert_eq!(reply(&form, Part::text("Ann")), filled);
        let sent = json!({"askId": form.id, "action": "accept", "content": {"name": "Ann"}});
        assert_eq!(reply(&form, Part::data(sent)), filled);
        let approved = reply(&approval(), Part::text("Yes."));
        assert_eq!(approved["decisions"][0]["approve"], true);
        let denied = reply(&approval(), Part::data(json!({"approve": false, "digest": "d"})));
        assert_eq!(denied["decisions"][0]["approve"], false);
    }

    #[test]
    fn what_does_not_fit_says_why() {
        for (ask, part) in [
            (approval(), Part::text("perhaps")),
            (approval(), Part::data(json!({"approve": true, "digest": "other"}))),
            (approval(), Part::data(json!({"askId": "ask_1", "approve": true}))),
            (form(), Part::data(json!({"action": "accept"}))),
        ] {
            let read = answer(&[&ask], &said(part));
            assert!(matches!(read, Answer::Misfit(_)), "{read:?}");
        }
        let one = form();
        let other = approval();
        assert!(matches!(answer(&[&one, &other], &said(Part::text("a"))), Answer::Misfit(_)));
    }
}
