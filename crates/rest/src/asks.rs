//! `/api/v1/asks`: the inbox, and replies by kind of ask.

use super::logins::{own_login_for, proven};
use super::upstreams::missing;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::{RawBody, parse};
use edge::request::cursors::Purpose;
use edge::request::key::{Key, replayed};
use edge::request::params::{Params, PathName, Wait, no_such, page, session_ref};
use edge::request::server_state::{ServerState, Who};
use edge::views::ask_details::add_specs;
use edge::views::rows;
use engine::{IdempotencyKey, PinnedDefinitions, RefusalCode};
use kernel::ask::proposal::proposed;
use kernel::ask::reply::no_proposal;
use kernel::ask::{Ask, AskBody, AskStatus, CallDecision, FixAction, Reply};
use kernel::contracts::policy::Resource;
use kernel::contracts::{AskFilter, SessionAsk};
use kernel::identity::audit::Object;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::{BadId, CallId, PlanId, RunId, SessionId, StepId};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use wire::rest::{self, AskKind, AuthorizeAction, FillAction};

/// `?session=&space=&run=&step=&kind=&status=&held=&limit=&cursor=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InboxQuery {
    session: Option<String>,
    space: Option<String>,
    run: Option<String>,
    step: Option<String>,
    kind: Option<String>,
    status: Option<String>,
    held: Option<bool>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Where in the body stood what the engine refuses.
fn pointer_of(code: &RefusalCode) -> Option<&'static str> {
    match code {
        RefusalCode::InputMisfit(_) => Some("/content"),
        RefusalCode::CallsMismatch(_) | RefusalCode::FeedbackMissing(_) => Some("/decisions"),
        RefusalCode::BadAction(_) | RefusalCode::UnsafeAction(_) => Some("/action"),
        _ => None,
    }
}

/// `GET /asks`, oldest first: the open ones, unless `status` says otherwise (`any` for all), and
/// those that no rule holds, unless `held` says otherwise.
pub(crate) async fn list(
    Who { server, caller }: Who,
    Params(query): Params<InboxQuery>,
) -> Result<Json<rest::Page<rest::Ask>>> {
    let limit = query.limit;
    let cursor = query.cursor.clone();
    let filter = filter(&server, &caller, query).await?;
    let of = Purpose::of(&caller, "/api/v1/asks").filtered(&filter);
    let page = page(limit, server.cursors.start(&of, cursor)?, server.limits());
    let found = server.engine.asks().list(&caller, &filter, &page).await?;
    // An ask shows the arguments of a call: of others' runs, that is a read of what they wrote.
    let is_own = |ask: &&SessionAsk| ask.row.ask.subject.as_deref() == Some(&*caller.subject);
    let others = found.items.iter().filter(|ask| !is_own(ask)).count();
    if others > 0 {
        let object = Object::only("asks");
        server.engine.audits().note_shown(&caller, object, json!({"ofOthers": others}))?;
    }
    // What is not open is history, and there may be much of it.
    let is_open = |ask: &SessionAsk| ask.row.status == AskStatus::Open;
    let open: Vec<&SessionAsk> = found.items.iter().filter(|ask| is_open(ask)).collect();
    let pinned = server.engine.asks().pinned(&caller, &open).await?;
    let items = found.items.into_iter().map(|asked| match is_open(&asked) {
        true => shown(&server, &caller, asked, &pinned),
        false => rows::ask(asked, None),
    });
    let items = items.collect();
    Ok(Json(rest::Page { items, next_cursor: server.cursors.next(&of, found.next_cursor) }))
}

/// `GET /asks/{id}`.
pub(crate) async fn show(Who { server, caller }: Who, name: PathName) -> Result<Json<rest::Ask>> {
    let ask = server.engine.asks().get(&caller, name.ask()?).await?;
    let pinned = server.engine.asks().pinned(&caller, &[&ask]).await?;
    Ok(Json(shown(&server, &caller, ask, &pinned)))
}

/// An ask with what its run pinned, and whether this caller may answer it.
fn shown(
    server: &ServerState,
    caller: &Caller,
    asked: SessionAsk,
    pinned: &PinnedDefinitions,
) -> rest::Ask {
    let yours = (asked.row.status == AskStatus::Open).then(|| {
        let answer = server.engine.asks().may_answer(caller, &asked);
        rest::YourAnswer { answer, why: (!answer).then(|| not_yours(&asked)) }
    });
    let plan = pinned.plan(asked.row.ask.run);
    let about = asked.row.ask.about.clone();
    let mut shown = rest::Ask { yours, ..rows::ask(asked, plan) };
    add_specs(&mut shown.calls, &about, pinned);
    shown
}

/// Why a caller may not answer an ask, as far as the ask says it.
fn not_yours(asked: &SessionAsk) -> String {
    let narrowed = asked.row.ask.answerers.as_ref();
    let why = match narrowed {
        Some(narrowed) if narrowed.other => {
            "another person than those who started the run or changed what it does has to answer"
        }
        Some(narrowed) if !narrowed.is_general => "a policy says who answers it: see `mayAnswer`",
        Some(_) | None => "your roles do not allow you to answer it: see `mayAnswer`",
    };
    why.to_owned()
}

/// `POST /asks/{id}`: 200 once the reply has won, whatever the run does then.
pub(crate) async fn reply(
    Who { server, caller }: Who,
    name: PathName,
    Params(wait): Params<Wait>,
    key: Key,
    RawBody(body): RawBody,
) -> Result<Response> {
    let wait_ms = wait.ms(&server)?;
    let id = name.ask()?;
    let ask = server.engine.asks().get(&caller, id).await?;
    let (reply, code) = read(&ask.row.ask, &body, server.limits().body_depth_max)?;
    let once = key.once(&body);
    drop(body);
    if let Some(code) = code {
        prove(&server, &caller, &ask, &code, once.as_ref()).await?;
    }
    let report = server.engine.asks().reply(&caller, id, reply, once, wait_ms).await;
    let report = report.map_err(|refusal| Failure::in_body(refusal, pointer_of))?;
    let again = report.replayed;
    Ok(replayed(Json(rows::reply_answer(report)).into_response(), again))
}

async fn filter(server: &ServerState, caller: &Caller, query: InboxQuery) -> Result<AskFilter> {
    let session: Option<SessionId> = match &query.session {
        None => None,
        Some(name) => {
            let wanted = session_ref(name, query.space.as_deref());
            Some(server.engine.sessions().get(caller, &wanted).await?.id)
        }
    };
    let run = query.run.as_deref().map(str::parse::<RunId>).transpose();
    let run = run.map_err(|bad: BadId| Failure::bad_request("bad_query", bad.to_string()))?;
    let kinds = AskKind::ALL.map(AskKind::name);
    let status = match one_of("status", query.status, &STATUSES)?.as_deref() {
        Some("any") => None,
        Some(status) => Some(status.to_owned()),
        None => Some("open".to_owned()),
    };
    // What a rule holds is no one's to answer yet: the inbox shows it to who asks for it.
    let inbox = status.as_deref() == Some("open");
    Ok(AskFilter {
        session,
        run,
        kind: one_of("kind", query.kind, &kinds)?,
        status,
        step: query.step.map(StepId::from),
        held: query.held.or(inbox.then_some(false)),
    })
}

const STATUSES: [&str; 5] = ["open", "decided", "expired", "withdrawn", "any"];

fn one_of(name: &str, given: Option<String>, known: &[&str]) -> Result<Option<String>> {
    match given {
        Some(given) if !known.contains(&given.as_str()) => Err(no_such(name, &given, known)),
        given => Ok(given),
    }
}

/// The reply that this kind of ask takes, and beside it the code of a login, which is not kept.
fn read(ask: &Ask, body: &[u8], depth_max: usize) -> Result<(Reply, Option<String>)> {
    let reply = match &ask.body {
        AskBody::Clarify { .. } => clarify(parse(body, depth_max)?)?,
        AskBody::Approve { .. } => approve(parse(body, depth_max)?)?,
        AskBody::Fill { .. } => fill(parse(body, depth_max)?)?,
        AskBody::Authorize { .. } => return authorize(parse(body, depth_max)?),
        AskBody::Fix { .. } => fix(ask, parse(body, depth_max)?)?,
    };
    Ok((reply, None))
}

/// Finishes the caller's own login that an ask waits for. Who may not answer the ask is refused
/// with its reply, and a request that is repeated has sent its code before.
async fn prove(
    server: &ServerState,
    caller: &Caller,
    asked: &SessionAsk,
    code: &str,
    once: Option<&IdempotencyKey>,
) -> Result<()> {
    if !server.engine.asks().may_answer(caller, asked) {
        return Ok(());
    }
    if let Some(once) = once
        && server.engine.runs().done_before(caller, once).await?.is_some()
    {
        return Ok(());
    }
    let tool = asked.row.ask.wanted.as_ref().map(|wanted| &wanted.call.tool);
    let Some(name) = tool.and_then(|tool| own_login_for(server, caller, tool)) else {
        return Err(Failure::wrong_value("/code", "this ask waits for no login of your own")
            .hint("leave `code` out"));
    };
    // As where the code is sent without an ask.
    let readable = server.engine.admin().permit(caller, Act::Read, Resource::Upstream(&name));
    readable.map_err(|_| missing(server, caller, &name))?;
    proven(server, caller, &name, code).await.map_err(|failure| match failure.status() {
        StatusCode::CONFLICT => {
            failure.hint("leave `code` out if it was sent before; else begin another login")
        }
        _ => failure,
    })
}

fn clarify(reply: rest::ClarifyReply) -> Result<Reply> {
    match (reply.action, reply.answer) {
        (Some(FillAction::Decline), None) => Ok(Reply::Clarify { answer: None }),
        (Some(FillAction::Decline), Some(_)) => Err(contradiction("answer")),
        (Some(FillAction::Accept) | None, Some(answer)) => {
            Ok(Reply::Clarify { answer: Some(answer) })
        }
        (Some(FillAction::Accept) | None, None) => {
            Err(Failure::wrong_value("/answer", "`answer` is missing")
                .hint("send `{\"answer\": ..}`, or `{\"action\": \"decline\"}`"))
        }
    }
}

fn approve(reply: rest::ApproveReply) -> Result<Reply> {
    let mut decisions = Vec::with_capacity(reply.decisions.len());
    for (index, decision) in reply.decisions.into_iter().enumerate() {
        let call_id: CallId = decision.call_id.parse().map_err(|bad: BadId| {
            Failure::wrong_value(&format!("/decisions/{index}/callId"), bad.to_string())
        })?;
        decisions.push(CallDecision {
            call_id,
            approve: decision.approve,
            feedback: decision.feedback,
            arguments: decision.arguments.map(Arc::new),
        });
    }
    Ok(Reply::Approve { decisions })
}

fn fill(reply: rest::FillReply) -> Result<Reply> {
    match (reply.action, reply.content) {
        (FillAction::Accept, Some(content)) => Ok(Reply::Fill { content: Some(content) }),
        (FillAction::Decline, None) => Ok(Reply::Fill { content: None }),
        (FillAction::Decline, Some(_)) => Err(contradiction("content")),
        (FillAction::Accept, None) => Err(Failure::wrong_value("/content", "`content` is missing")
            .hint("send the answer by the ask's schema, or decline")),
    }
}

fn authorize(reply: rest::AuthorizeReply) -> Result<(Reply, Option<String>)> {
    let done = reply.action == AuthorizeAction::Done;
    match reply.code {
        Some(_) if !done => Err(contradiction("code")),
        code => Ok((Reply::Authorize { done }, code)),
    }
}

fn fix(ask: &Ask, reply: rest::FixReply) -> Result<Reply> {
    let action = match reply.action {
        rest::FixAction::Retry => FixAction::Retry,
        rest::FixAction::Edit => FixAction::Edit,
        rest::FixAction::Skip => FixAction::Skip,
        rest::FixAction::Abort => FixAction::Abort,
        rest::FixAction::Settle => FixAction::Settle,
        rest::FixAction::Correct => FixAction::Correct,
        rest::FixAction::Propose => FixAction::Propose,
    };
    let rest::FixReply { arguments, output, plan_id, proposal, .. } = reply;
    if proposal {
        return taken(ask, action, arguments.is_some() || output.is_some() || plan_id.is_some());
    }
    let arguments = arguments.map(Arc::new);
    let plan_id = plan_id.map(PlanId::from);
    Ok(Reply::Fix { action, arguments, output, plan_id })
}

/// The ask's own proposal, taken as it is: an ask does not change, so that it is what was seen.
fn taken(ask: &Ask, action: FixAction, says_more: bool) -> Result<Reply> {
    if says_more {
        let message = "`proposal` takes what is proposed, and nothing else is said beside it";
        return Err(Failure::bad_request("contradiction", message)
            .hint("leave out `arguments`, `output` and `planId`, or `proposal`"));
    }
    proposed(ask, action).ok_or_else(|| {
        Failure::wrong_value("/proposal", no_proposal(action).to_string())
            .hint("`proposal` of the ask says what is proposed, and which action takes it")
    })
}

fn contradiction(key: &str) -> Failure {
    let message = format!("a declined ask has no `{key}`");
    Failure::bad_request("contradiction", message).hint("leave it out, or accept")
}
