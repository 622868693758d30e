//! Rows of the kernel as `/api/v1` shows them. Values are moved where they can be: a run's answer
//! may be large.

use super::ask_details::{self, unshared};
use super::remedies::{fix_action, proposal, rule_hold, tried};
use engine::{KnownAgent, ReplyReport, RunReport};
use kernel::ask::{Answerers, AskBody, AskStatus, Decision};
use kernel::contracts::SessionAsk;
use kernel::definition::agent::TALKS;
use kernel::definition::pipeline::{Handler, Pipeline, TallyRow};
use kernel::definition::plan::Plan;
use kernel::definition::plan::mistake::Mistake;
use kernel::journal::projection::{HistoryItem, ParkedSession, RunRow, SessionRow};
use kernel::session::{RunSpent, RunStatus};
use kernel::tool::call::ToolSpec;
use kernel::values::fault::Fault;
use kernel::values::history::EntryResult;
use kernel::values::ids::PlanId;
use wire::rest;

/// A run with its session.
pub fn run_answer(report: RunReport) -> rest::RunAnswer {
    let RunReport { run: row, session, asks, .. } = report;
    let ids = asks.iter().map(|ask| ask.row.ask.id.to_string()).collect();
    rest::RunAnswer { run: run(row, &session, asks), session: self::session(session, ids) }
}

pub fn run(row: RunRow, session: &SessionRow, asks: Vec<SessionAsk>) -> rest::Run {
    rest::Run {
        id: row.id.to_string(),
        session: session.id.to_string(),
        plan: row.plan.as_str().to_owned(),
        status: status(row.status),
        step: row.step.map(|step| step.as_str().to_owned()),
        answer: row.answer,
        last_error: row.last_error.map(fault),
        asks: asks.into_iter().map(|asked| ask(asked, Some(&row.plan))).collect(),
        started_at: row.started_at.rfc3339(),
        ended_at: row.ended_at.map(|at| at.rfc3339()),
        stopped: row.stopped.map(|limit| limit.to_string()),
        cost: cost(row.spent),
    }
}

/// Millionths in one dollar.
const MICROS: f64 = 1_000_000.0;

/// What a run's models took.
fn cost(spent: RunSpent) -> rest::Cost {
    if spent.turns == 0 {
        return rest::Cost::default();
    }
    let is_priced = spent.unpriced < spent.turns;
    let some = |tokens: u64| Some(tokens).filter(|tokens| *tokens > 0);
    let has_cache = spent.cached > 0 || spent.cache_written > 0;
    rest::Cost {
        turns: Some(spent.turns),
        input_tokens: Some(spent.input),
        cached_tokens: some(spent.cached),
        cache_written_tokens: some(spent.cache_written),
        output_tokens: Some(spent.output),
        dollars: is_priced.then_some(spent.cost_micros as f64 / MICROS),
        saved_dollars: (is_priced && has_cache).then_some(spent.saved_micros as f64 / MICROS),
        unpriced_turns: Some(spent.unpriced).filter(|turns| *turns > 0),
    }
}

/// A session with the ids of its open asks.
pub fn session(row: SessionRow, asks: Vec<String>) -> rest::Session {
    rest::Session {
        id: row.id.to_string(),
        realm: row.key.realm.as_str().to_owned(),
        space: row.key.space.as_str().to_owned(),
        key: row.key.id.to_string(),
        status: status(row.status),
        run: row.run.map(|run| run.to_string()),
        plan: row.plan.map(|plan| plan.as_str().to_owned()),
        step: row.step.map(|step| step.as_str().to_owned()),
        last_error: row.last_error.map(fault),
        asks,
        created_at: row.created_at.rfc3339(),
        updated_at: row.updated_at.rfc3339(),
        parked: row.parked.map(parked),
        request_state: None,
    }
}

fn parked(ParkedSession { reason, until }: ParkedSession) -> rest::Parked {
    rest::Parked { reason, until: until.rfc3339() }
}

/// An ask with the decision, and its run.
pub fn reply_answer(report: ReplyReport) -> rest::ReplyAnswer {
    let RunReport { run: row, session, asks, .. } = report.run;
    let ask = ask(report.ask, Some(&row.plan));
    rest::ReplyAnswer { ask, run: run(row, &session, asks) }
}

/// An ask of a run of this plan, where that is known.
pub fn ask(asked: SessionAsk, plan: Option<&PlanId>) -> rest::Ask {
    let SessionAsk { session, key, row } = asked;
    let plan = plan.map(PlanId::as_str);
    let proposal = proposal(&row.ask);
    let mut shown = rest::Ask {
        id: row.ask.id.to_string(),
        kind: kind(&row.ask.body),
        session: rest::AskSession {
            id: session.to_string(),
            space: key.space.as_str().to_owned(),
            key: key.id.to_string(),
        },
        run: row.ask.run.to_string(),
        step: row.ask.step.as_str().to_owned(),
        plan: plan.map(str::to_owned),
        agent: plan.and_then(|plan| plan.strip_prefix(TALKS)).map(str::to_owned),
        pipeline: key.space.pipeline().map(str::to_owned),
        title: row.ask.title,
        body: String::new(),
        calls: Vec::new(),
        questions: Vec::new(),
        schema: None,
        url: None,
        fault: None,
        how: None,
        actions: Vec::new(),
        plans: Vec::new(),
        next: ask_details::next(row.ask.next),
        digest: row.ask.digest.as_str().to_owned(),
        other: row.ask.answerers.as_ref().is_some_and(|answerers| answerers.other),
        may_answer: may_answer(row.ask.answerers),
        yours: None,
        subject: row.ask.subject.map(|subject| subject.to_string()),
        created_at: row.ask.created_at.rfc3339(),
        expires_at: row.ask.expires_at.map(|at| at.rfc3339()),
        status: ask_status(row.status),
        decision: row.decision.map(decision),
        held: row.ask.held.map(rule_hold),
        tried: row.ask.tried.into_iter().map(tried).collect(),
        proposal,
    };
    fill(&mut shown, row.ask.body);
    if let Some(wanted) = row.ask.wanted {
        shown.calls = vec![ask_details::call(wanted.call)];
    }
    ask_details::add_pins(&mut shown.calls, row.ask.about);
    shown
}

/// Who may answer: those of the only list, or of each of several.
fn may_answer(answerers: Option<Answerers>) -> Vec<String> {
    let lists = answerers.map(|answerers| answerers.lists).unwrap_or_default();
    match lists.as_slice() {
        [] => vec!["*".to_owned()],
        [one] => one.clone(),
        several => several.iter().map(|list| list.join(", ")).collect(),
    }
}

/// What is particular to the kind of ask.
fn fill(shown: &mut rest::Ask, body: AskBody) {
    match body {
        AskBody::Clarify { message, questions } => {
            shown.body = message;
            shown.questions = questions.into_iter().map(ask_details::question).collect();
        }
        AskBody::Approve { calls } => {
            let tools: Vec<String> = calls.iter().map(|call| format!("`{}`", call.tool)).collect();
            shown.body = format!("may {} run with these arguments?", tools.join(", "));
            shown.calls = calls.into_iter().map(ask_details::call).collect();
        }
        AskBody::Fill { message, schema } => {
            shown.body = message;
            shown.schema = Some(unshared(schema));
        }
        AskBody::Authorize { message, url } => {
            shown.body = message;
            shown.url = Some(url);
        }
        AskBody::Fix { fault: why, call, how, actions, plans } => {
            shown.body = why.to_string();
            shown.calls = call.into_iter().map(ask_details::call).collect();
            shown.fault = Some(fault(why));
            shown.how = Some(how.name().to_owned());
            shown.actions = actions.into_iter().map(fix_action).collect();
            shown.plans = plans.iter().map(ToString::to_string).collect();
        }
    }
}

fn decision(decision: Decision) -> rest::Decision {
    rest::Decision {
        by: decision.by.to_string(),
        at: decision.at.rfc3339(),
        // A reply is plain data; writing it as JSON cannot fail.
        reply: serde_json::to_value(&decision.reply).unwrap_or_default(),
        via: decision.via.map(|via| via.to_string()),
    }
}

/// A finished call.
pub fn history_entry(item: HistoryItem) -> rest::HistoryEntry {
    let HistoryItem { run, entry, .. } = item;
    let (output, error) = match entry.result {
        EntryResult::Output(output) => (Some(output.to_value()), None),
        EntryResult::Error(why) => (None, Some(fault(why))),
    };
    rest::HistoryEntry {
        call: entry.call.to_string(),
        run: run.to_string(),
        step: entry.step.as_str().to_owned(),
        tool: entry.tool.as_str().to_owned(),
        arguments: unshared(entry.arguments),
        output,
        error,
        finished_at: entry.at.rfc3339(),
    }
}

/// A tool, or a plan as one.
pub fn tool(spec: &ToolSpec, is_plan: bool) -> rest::Tool {
    rest::Tool {
        name: spec.name.as_str().to_owned(),
        title: spec.title.clone(),
        description: spec.description.clone(),
        input_schema: (*spec.input_schema).clone(),
        output_schema: spec.output_schema.as_ref().map(|schema| (**schema).clone()),
        reach: spec.reach.name().to_owned(),
        idempotent: spec.idempotent,
        tags: spec.tags.clone(),
        kind: if is_plan { "plan" } else { "tool" }.to_owned(),
        pace: spec.pace.name().to_owned(),
        journal: !spec.unrecorded,
    }
}

/// A plan in a list.
pub fn plan_summary(plan: &Plan) -> rest::PlanSummary {
    rest::PlanSummary {
        id: plan.id.as_str().to_owned(),
        description: plan.description.clone(),
        parameters: plan.parameters.as_ref().map(|schema| (**schema).clone()),
        output_schema: plan.output_schema.as_ref().map(|schema| (**schema).clone()),
        hash: plan.hash.as_str().to_owned(),
    }
}

/// An agent in a list.
pub fn agent_summary(known: &KnownAgent, is_default: bool) -> rest::AgentSummary {
    let agent = &known.agent;
    rest::AgentSummary {
        ref_name: agent.name.to_string(),
        name: agent.title.clone(),
        description: agent.description.clone(),
        llm_config_ref: agent.model.to_string(),
        tool_types: agent.types.keys().cloned().collect(),
        from_file: known.version.is_none(),
        version: known.version,
        default: is_default,
        hash: agent.hash.as_str().to_owned(),
    }
}

/// A pipeline in a list.
pub fn pipeline(pipeline: &Pipeline) -> rest::PipelineSummary {
    let handler = |handler: &Handler| rest::PipelineHandler {
        reason: handler.reasons.text(),
        kind: handler.kind.name().to_owned(),
    };
    rest::PipelineSummary {
        name: pipeline.name.to_string(),
        description: pipeline.description.clone(),
        route: pipeline.route.clone(),
        case_id_field: pipeline.schema.case_id_field.clone(),
        handlers: pipeline.handlers.iter().map(handler).collect(),
        tools: pipeline.tools.clone(),
        llm: pipeline.llm.name().to_string(),
    }
}

/// A pipeline with all that its file says, secrets left out.
pub fn pipeline_answer(pipeline: &Pipeline) -> rest::PipelineAnswer {
    let addresses = &pipeline.addresses;
    rest::PipelineAnswer {
        summary: self::pipeline(pipeline),
        addresses: rest::PipelineAddresses {
            inbound: addresses.inbound.clone(),
            agent: addresses.agent.clone(),
            events: addresses.events.clone(),
        },
        port: pipeline.port,
        request_timeout_ms: pipeline.request_timeout_ms,
        allowed_fields: pipeline.schema.allowed.clone(),
        required_fields: pipeline.schema.required.clone(),
        plan: pipeline.plan.to_string(),
        agent: pipeline.agent.to_string(),
    }
}

/// Which paths a pipeline's cases took, the busiest first. Longer reasons than this are counted by
/// their beginning.
pub fn pipeline_stats(
    pipeline: &Pipeline,
    rows: Vec<TallyRow>,
    reason_chars_max: usize,
) -> rest::PipelineStats {
    let (handled, unknown): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.deterministic);
    let count = |rows: &[TallyRow]| rows.iter().map(|row| row.count).sum::<u64>();
    let deterministic = count(&handled);
    let agent = count(&unknown);
    let total = deterministic + agent;
    let mut handlers = handler_counts(pipeline, handled, reason_chars_max);
    handlers.sort_by_key(|handler| std::cmp::Reverse(handler.count));
    let reason = |row: TallyRow| rest::ReasonCount {
        reason: row.reason,
        count: row.count,
        last_at: row.last_at.rfc3339(),
    };
    let mut unknown: Vec<rest::ReasonCount> = unknown.into_iter().map(reason).collect();
    unknown.sort_by(|left, right| {
        right.count.cmp(&left.count).then_with(|| left.reason.cmp(&right.reason))
    });
    rest::PipelineStats {
        pipeline: pipeline.name.to_string(),
        total,
        deterministic,
        agent,
        share: (total > 0).then(|| deterministic as f64 / total as f64),
        handlers,
        unknown,
    }
}

/// The handlers that there are, and those that cases were counted for before.
fn handler_counts(
    pipeline: &Pipeline,
    mut rows: Vec<TallyRow>,
    reason_chars_max: usize,
) -> Vec<rest::HandlerCount> {
    let mut counts = Vec::new();
    for handler in &pipeline.handlers {
        let is_its = |row: &TallyRow| handler.reasons.take_counted(&row.reason, reason_chars_max);
        let (its, others): (Vec<TallyRow>, Vec<TallyRow>) = rows.into_iter().partition(is_its);
        rows = others;
        counts.push(rest::HandlerCount {
            reason: handler.reasons.text(),
            kind: handler.kind.name().to_owned(),
            count: its.iter().map(|row| row.count).sum(),
            last_at: its.iter().map(|row| row.last_at).max().map(|last| last.rfc3339()),
        });
    }
    let removed = rows.into_iter().map(|row| rest::HandlerCount {
        reason: row.reason,
        kind: "removed".to_owned(),
        count: row.count,
        last_at: Some(row.last_at.rfc3339()),
    });
    counts.extend(removed);
    counts
}

/// A mistake in a plan that came as JSON.
pub fn plan_mistake(mistake: Mistake) -> rest::PlanMistake {
    rest::PlanMistake { pointer: mistake.pointer, detail: mistake.message, hint: mistake.hint }
}

pub fn fault(fault: Fault) -> rest::Fault {
    let Fault { name, message, hint, detail, .. } = fault;
    rest::Fault { name, message, hint, detail }
}

/// Where a run stands.
pub fn status(status: RunStatus) -> rest::Status {
    match status {
        RunStatus::Running => rest::Status::Running,
        RunStatus::Waiting => rest::Status::Waiting,
        RunStatus::Stuck => rest::Status::Stuck,
        RunStatus::Paused => rest::Status::Paused,
        RunStatus::Completed => rest::Status::Completed,
        RunStatus::Failed => rest::Status::Failed,
        RunStatus::Cancelled => rest::Status::Cancelled,
    }
}

fn kind(body: &AskBody) -> rest::AskKind {
    match body {
        AskBody::Clarify { .. } => rest::AskKind::Clarify,
        AskBody::Approve { .. } => rest::AskKind::Approve,
        AskBody::Fill { .. } => rest::AskKind::Fill,
        AskBody::Authorize { .. } => rest::AskKind::Authorize,
        AskBody::Fix { .. } => rest::AskKind::Fix,
    }
}

fn ask_status(status: AskStatus) -> rest::AskStatus {
    match status {
        AskStatus::Open => rest::AskStatus::Open,
        AskStatus::Decided => rest::AskStatus::Decided,
        AskStatus::Expired => rest::AskStatus::Expired,
        AskStatus::Withdrawn => rest::AskStatus::Withdrawn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::journal::projection::AskRow;
    use kernel::values::ids::{SessionId, SessionKey, Space};
    use serde_json::{Value, json};

    fn shown_with(members: Value) -> Value {
        let mut asked = json!({
            "id": format!("ask_{:032x}", 4), "run": format!("run_{:032x}", 7), "frame": 1,
            "step": "work", "title": "go on?", "digest": "d", "createdAt": 5,
            "body": {"kind": "clarify", "message": "go on?"},
        });
        asked.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let asked = serde_json::from_value(asked).unwrap();
        let row = AskRow { ask: asked, status: AskStatus::Open, decision: None };
        let key = SessionKey::new("r", Space::session(), "s");
        json!(ask(SessionAsk { session: SessionId(1), key, row }, None))
    }

    #[test]
    fn a_faults_detail_is_shown_where_there_is_one() {
        let written = json!({"name": "Conflict", "message": "it was changed",
            "detail": {"version": 4}});
        let read = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(json!(fault(read)), written);
        let plain = json!({"name": "Conflict", "message": "it was changed"});
        assert_eq!(json!(fault(Fault::new("Conflict", "it was changed"))), plain);
    }

    #[test]
    fn an_ask_says_nothing_of_what_it_did_not_record() {
        let call = format!("call_{:032x}", 9);
        let body = json!({"kind": "approve", "calls": [
            {"callId": call, "tool": "bank::pay", "arguments": {}},
        ]});
        let plain = shown_with(json!({"body": body}));
        assert_eq!(plain.get("next"), None);
        let known = json!({"callId": call, "tool": "bank::pay", "arguments": {}});
        assert_eq!(plain["calls"], json!([known]));
        let pins = json!({"spec": "s", "reach": "writes", "idempotent": false});
        let about = json!([{"callId": call, "pins": pins, "why": {"policy": "large"}}]);
        let next = json!({"yes": {"step": "done"}, "no": "ends"});
        let full = shown_with(json!({"body": body, "about": about, "next": next}));
        assert_eq!(full["next"], json!({"yes": {"step": "done"}, "no": {"ends": true}}));
        let shown = &full["calls"][0];
        assert_eq!((&shown["reach"], &shown["idempotent"]), (&json!("writes"), &json!(false)));
        assert_eq!(shown["why"], json!({"by": "policy", "says": "large"}));
    }

    #[test]
    fn an_ask_shows_who_may_answer_only_where_that_is_narrowed() {
        let everyones = shown_with(json!({}));
        assert_eq!(everyones["mayAnswer"], json!(["*"]));
        assert_eq!((everyones.get("other"), everyones.get("subject")), (None, None));
        let answerers = json!({"lists": [["role:lead", "principal:eve"]], "other": true});
        let narrowed = shown_with(json!({"answerers": answerers, "subject": "ann"}));
        assert_eq!(narrowed["mayAnswer"], json!(["role:lead", "principal:eve"]));
        assert_eq!((&narrowed["other"], &narrowed["subject"]), (&json!(true), &json!("ann")));
        let answerers = json!({"lists": [["role:lead", "principal:eve"], ["role:auditor"]]});
        let twice = shown_with(json!({"answerers": answerers}));
        assert_eq!(twice["mayAnswer"], json!(["role:lead, principal:eve", "role:auditor"]));
    }
}
