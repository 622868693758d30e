//! Reads the body of `/resume` as replies to the asks that it answers. A body answers whole asks:
//! what is missing, unknown, given twice or meant for another kind of ask is refused before
//! anything runs.

use super::{conflict, wrong};
use edge::problem::{Failure, Result};
use edge::request::params::short;
use kernel::ask::{Ask, AskBody, AskStatus, AskedCall, CallDecision, Question, Reply};
use kernel::contracts::SessionAsk;
use kernel::values::ids::AskId;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::conversations::{
    Approval, ClarificationResponse, ElicitationAction, ElicitationResponse, ResumeThread,
};

/// The one list of a body: one kind of answers.
pub(super) enum ReplyList {
    Clarifications(Vec<ClarificationResponse>),
    Approvals(Vec<Approval>),
    Elicitations(Vec<ElicitationResponse>),
}

impl ReplyList {
    /// Its key in the body.
    fn key(&self) -> &'static str {
        match self {
            ReplyList::Clarifications(_) => "clarification_responses",
            ReplyList::Approvals(_) => "approvals",
            ReplyList::Elicitations(_) => "elicitation_responses",
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            ReplyList::Clarifications(list) => list.is_empty(),
            ReplyList::Approvals(list) => list.is_empty(),
            ReplyList::Elicitations(list) => list.is_empty(),
        }
    }

    /// The ids that it names, in order.
    fn ids(&self) -> Vec<&str> {
        match self {
            ReplyList::Clarifications(list) => {
                list.iter().map(|one| one.call_id.as_str()).collect()
            }
            ReplyList::Approvals(list) => list.iter().map(|one| one.call_id.as_str()).collect(),
            ReplyList::Elicitations(list) => {
                list.iter().map(|one| one.elicitation_id.as_str()).collect()
            }
        }
    }

    /// Whether its answers are for this kind of ask.
    fn is_for(&self, body: &AskBody) -> bool {
        match (self, body) {
            (ReplyList::Clarifications(_), AskBody::Clarify { .. })
            | (ReplyList::Approvals(_), AskBody::Approve { .. })
            | (ReplyList::Elicitations(_), AskBody::Fill { .. } | AskBody::Authorize { .. }) => {
                true
            }
            (
                ReplyList::Clarifications(_) | ReplyList::Approvals(_) | ReplyList::Elicitations(_),
                _,
            ) => false,
        }
    }
}

/// The thread of a body and its one list, which must not be empty.
pub(super) fn thread_and_list(body: ResumeThread) -> Result<(String, ReplyList)> {
    let lists = [
        body.clarification_responses.map(ReplyList::Clarifications),
        body.approvals.map(ReplyList::Approvals),
        body.elicitation_responses.map(ReplyList::Elicitations),
    ];
    let mut lists = lists.into_iter().flatten();
    let Some(first) = lists.next() else {
        return Err(Failure::bad_request("nothing_given", "the body answers nothing").hint(
            "send `clarification_responses`, `approvals` or `elicitation_responses`, as \
             `pending_action` asks",
        ));
    };
    if let Some(second) = lists.next() {
        let message = format!("the body has both `{}` and `{}`", first.key(), second.key());
        return Err(Failure::bad_request("several_lists", message).hint("send one after the other"));
    }
    if first.is_empty() {
        let message = format!("`{}` is empty", first.key());
        return Err(wrong("empty_list", format!("/{}", first.key()), message));
    }
    Ok((body.thread_id, first))
}

/// The replies to the asks that a list covers. One that names an ask that is closed is passed on:
/// the engine knows who decided it, and whether this very request did.
pub(super) fn read(
    thread: &str,
    given: ReplyList,
    asks: &[SessionAsk],
) -> Result<Vec<(AskId, Reply)>> {
    let covered = covered(thread, &given, asks)?;
    match given {
        ReplyList::Clarifications(list) => clarification_replies(&list, &covered),
        ReplyList::Approvals(list) => approval_replies(&list, &covered),
        ReplyList::Elicitations(list) => form_replies(&list, &covered),
    }
}

/// The asks that a list answers, each once, in the order of the list.
fn covered<'a>(thread: &str, given: &ReplyList, asks: &'a [SessionAsk]) -> Result<Vec<&'a Ask>> {
    let is_open = |asked: &SessionAsk| asked.row.status == AskStatus::Open;
    let mut seen = BTreeSet::new();
    let mut covered: Vec<&Ask> = Vec::new();
    for (index, id) in given.ids().into_iter().enumerate() {
        let pointer = || format!("/{}/{index}", given.key());
        if !seen.insert(id) {
            let message = format!("`{}` is there twice", short(id));
            return Err(wrong("given_twice", pointer(), message));
        }
        let named = |asked: &&SessionAsk| ids(&asked.row.ask).iter().any(|known| known == id);
        // The same call may have been asked about before: the ask that is open is meant.
        let open = asks.iter().filter(|asked| is_open(asked)).find(named);
        let found = open.or_else(|| asks.iter().rev().find(named)).map(|asked| &asked.row.ask);
        let Some(ask) = found else {
            return Err(match asks.iter().any(is_open) {
                true => unknown(id, pointer(), asks),
                false => nothing_open(thread),
            });
        };
        if !given.is_for(&ask.body) {
            let kind = ask.body.kind();
            let message = format!("`{}` is a `{kind}`, not for `{}`", short(id), given.key());
            return Err(wrong("other_kind", pointer(), message));
        }
        if !covered.iter().any(|known| known.id == ask.id) {
            covered.push(ask);
        }
    }
    Ok(covered)
}

/// The ids by which an answer names the parts of an ask.
fn ids(ask: &Ask) -> Vec<String> {
    match &ask.body {
        AskBody::Clarify { questions, .. } if !questions.is_empty() => {
            questions.iter().map(|asked| asked.call_id.to_string()).collect()
        }
        AskBody::Approve { calls } => calls.iter().map(|call| call.call_id.to_string()).collect(),
        AskBody::Clarify { .. }
        | AskBody::Fill { .. }
        | AskBody::Authorize { .. }
        | AskBody::Fix { .. } => vec![ask.id.to_string()],
    }
}

fn unknown(id: &str, pointer: String, asks: &[SessionAsk]) -> Failure {
    let open = asks.iter().filter(|asked| asked.row.status == AskStatus::Open);
    let known: Vec<String> = open.flat_map(|asked| ids(&asked.row.ask)).collect();
    let message = format!("nothing in this thread asks about `{}`", short(id));
    wrong("unknown_call", pointer, message).hint(format!("asked is: {}", known.join(", ")))
}

fn nothing_open(thread: &str) -> Failure {
    let message = format!("thread `{}` waits for no answer", short(thread));
    conflict("no_open_ask", message, json!([])).hint("POST /run says something new in it")
}

fn missing(id: &str, key: &str) -> Failure {
    let message = format!("`{id}` is asked too, and nothing is said about it");
    wrong("calls_missing", format!("/{key}"), message).hint("nothing was done; cover all of them")
}

/// Answers to questions.
fn clarification_replies(
    list: &[ClarificationResponse],
    covered: &[&Ask],
) -> Result<Vec<(AskId, Reply)>> {
    if let Some(index) = list.iter().position(|one| one.response.trim().is_empty()) {
        let pointer = format!("/clarification_responses/{index}/response");
        let message = format!("the answer to `{}` is empty", short(&list[index].call_id));
        return Err(wrong("empty_answer", pointer, message));
    }
    let said = |id: &str| list.iter().find(|one| one.call_id == id).map(|one| &one.response);
    let mut replies = Vec::new();
    for ask in covered {
        let AskBody::Clarify { questions, .. } = &ask.body else { continue };
        let answer = if questions.is_empty() {
            said(&ask.id.to_string()).map(|text| json!(text)).unwrap_or_default()
        } else {
            each(questions, said)?
        };
        replies.push((ask.id, Reply::Clarify { answer: Some(answer) }));
    }
    Ok(replies)
}

/// An answer for each question of an ask, by its call.
fn each<'a>(questions: &[Question], said: impl Fn(&str) -> Option<&'a String>) -> Result<Value> {
    let mut answers = Map::new();
    for asked in questions {
        let id = asked.call_id.to_string();
        let Some(text) = said(&id) else { return Err(missing(&id, "clarification_responses")) };
        answers.insert(id, json!(text));
    }
    Ok(Value::Object(answers))
}

/// Decisions about calls.
fn approval_replies(list: &[Approval], covered: &[&Ask]) -> Result<Vec<(AskId, Reply)>> {
    for (index, one) in list.iter().enumerate() {
        let id = short(&one.call_id);
        let says = one.feedback.as_ref().is_some_and(|words| !words.trim().is_empty());
        if !one.approved && !says {
            let message = format!("`{id}` is rejected without `feedback`");
            let pointer = format!("/approvals/{index}/feedback");
            return Err(wrong("feedback_missing", pointer, message)
                .hint("say why not, or what instead: the agent reads it"));
        }
        if !one.approved && one.arguments.is_some() {
            let message = format!("`{id}` is rejected and edited");
            let pointer = format!("/approvals/{index}/arguments");
            return Err(wrong("rejected_and_edited", pointer, message));
        }
    }
    let mut replies = Vec::new();
    for ask in covered {
        let AskBody::Approve { calls } = &ask.body else { continue };
        let decide = |call: &AskedCall| {
            let id = call.call_id.to_string();
            let one = list.iter().find(|one| one.call_id == id);
            let one = one.ok_or_else(|| missing(&id, "approvals"))?;
            Ok::<_, Failure>(CallDecision {
                call_id: call.call_id,
                approve: one.approved,
                feedback: one.feedback.clone(),
                arguments: one.arguments.clone().map(Arc::new),
            })
        };
        let decisions = calls.iter().map(decide).collect::<Result<Vec<_>, _>>()?;
        replies.push((ask.id, Reply::Approve { decisions }));
    }
    Ok(replies)
}

/// Answers to forms and pages.
fn form_replies(list: &[ElicitationResponse], covered: &[&Ask]) -> Result<Vec<(AskId, Reply)>> {
    let declined = |one: &ElicitationResponse| one.action != ElicitationAction::Accept;
    if let Some(index) = list.iter().position(|one| declined(one) && one.content.is_some()) {
        let pointer = format!("/elicitation_responses/{index}/content");
        return Err(wrong("contradiction", pointer, "what is declined has no content".to_owned()));
    }
    let mut replies = Vec::new();
    for ask in covered {
        let id = ask.id.to_string();
        let Some(one) = list.iter().find(|one| one.elicitation_id == id) else { continue };
        let accepted = !declined(one);
        let reply = match &ask.body {
            AskBody::Authorize { .. } => Reply::Authorize { done: accepted },
            _ => {
                let content = || one.content.clone().unwrap_or_else(|| json!({}));
                Reply::Fill { content: accepted.then(content) }
            }
        };
        replies.push((ask.id, reply));
    }
    Ok(replies)
}
