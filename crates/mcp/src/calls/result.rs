//! The outcome of a call, as MCP writes it: a result in the shape of the client's version, or a
//! task that stands for a run. Results are written straight into text; most calls need nothing
//! else.

use super::input_required::lacking;
use crate::answer::{AnswerResult, Kind, Outcome};
use crate::client::Version;
use edge::record_calls::is_of_records;
use engine::refusal::{Quota, Refusal, RefusalCode, RefusalKind};
use engine::{Engine, RunReport};
use kernel::session::RunStatus;
use kernel::tool::call::{Caller, OutputKind, RawFailure, ToolSpec};
use kernel::tool::schema::sentence;
use kernel::values::fault::Fault;
use kernel::values::ids::Space;
use kernel::values::members::take;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wire::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};

/// In `_meta` of a result: the run that it speaks of.
const META_RUN: &str = "waypost/run";
/// In `_meta` of a result: the open asks of that run.
const META_ASKS: &str = "waypost/asks";
/// How often a client should look at a task.
const TASK_POLL_MS: u64 = 1_000;

/// Faults that are the runtime's: neither a tool nor a person said so.
const RUNTIME_FAULTS: [&str; 11] = [
    "LimitReached", "RecoveryGaveUp", "OutcomeUnknown", "PlanError", "PointerError",
    "TemplateError", "ConditionError", "LoopError", "StoreError", "ToolNotFoundError",
    "UpstreamTaskFailed",
];

/// A tool's output as a result. The tool is none where it is gone since it was called.
pub(crate) fn done(spec: Option<&ToolSpec>, output: Value, version: Version) -> Outcome {
    match (spec, output) {
        (
            Some(ToolSpec { yields: OutputKind::Content, output_schema, .. }),
            Value::Object(output),
        ) if output.get("content").is_some_and(Value::is_array) => {
            blocks(output_schema.as_deref(), output, version)
        }
        (spec, output) => {
            let schema = spec.filter(|spec| spec.yields == OutputKind::Value);
            value(schema.and_then(|spec| spec.output_schema.as_deref()), &output, version)
        }
    }
}

/// A result in words.
pub(crate) fn words(text: &str, is_error: bool) -> Outcome {
    let mut members = Vec::with_capacity(text.len() + 64);
    text_block(&mut members, text);
    if is_error {
        members.extend_from_slice(b",\"isError\":true");
    }
    written(members)
}

/// A failure in words. What its fault has for programs is the structure of the result, where the
/// tool promises none that this would have to keep to.
fn failure(
    text: &str,
    fault: Option<&Fault>,
    spec: Option<&ToolSpec>,
    version: Version,
) -> Outcome {
    let is_free = spec.is_some_and(|spec| spec.output_schema.is_none());
    let detail = fault.and_then(|fault| fault.detail.as_ref());
    match detail.filter(|_| is_free && version >= Version::June2025) {
        Some(detail) => {
            let content = json!([{"type": "text", "text": text}]);
            let result = json!({"content": content, "structuredContent": detail, "isError": true});
            Outcome::of(Kind::Complete, &result)
        }
        None => match fault.filter(|_| spec.is_some_and(|it| is_of_records(it.name.as_str()))) {
            Some(fault) => words_with_fault(fault),
            None => words(text, true),
        },
    }
}

/// A failure of a tool of records, whose results have a structure of their own: in words, and as
/// JSON in a second text, in the form of `/api/query`.
fn words_with_fault(fault: &Fault) -> Outcome {
    let mut told = fault.detail.as_deref().cloned().unwrap_or_default();
    told.insert("error".to_owned(), json!(fault.name));
    told.insert("message".to_owned(), json!(fault.message));
    told.extend(fault.hint.as_ref().map(|hint| ("hint".to_owned(), json!(hint))));
    let told = Value::Object(told).to_string();
    let text = in_words(fault);
    let content = json!([{"type": "text", "text": text}, {"type": "text", "text": told}]);
    Outcome::of(Kind::Complete, &json!({"content": content, "isError": true}))
}

/// Whether this version wants a bare output in an object, `{result: ..}`, and its schema likewise.
pub(crate) fn is_wrapped(schema: &Value, version: Version) -> bool {
    !version.is_modern() && schema["type"] != "object"
}

fn value(schema: Option<&Value>, output: &Value, version: Version) -> Outcome {
    let mut members = Vec::with_capacity(128);
    let text = match output {
        Value::String(_) => None,
        other => Some(other.to_string()),
    };
    text_block(&mut members, text.as_deref().or(output.as_str()).unwrap_or_default());
    if let Some(schema) = schema.filter(|_| version >= Version::June2025) {
        let (before, after) =
            if is_wrapped(schema, version) { ("{\"result\":", "}") } else { ("", "") };
        members.extend_from_slice(b",\"structuredContent\":");
        members.extend_from_slice(before.as_bytes());
        match &text {
            Some(text) => members.extend_from_slice(text.as_bytes()),
            None => put(&mut members, output),
        }
        members.extend_from_slice(after.as_bytes());
    }
    written(members)
}

/// Blocks pass as they are; only what the version cannot hold is changed.
fn blocks(schema: Option<&Value>, mut output: Map<String, Value>, version: Version) -> Outcome {
    take(&mut output, "resultType");
    let meta = match take(&mut output, "_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    if version < Version::June2025 {
        take(&mut output, "structuredContent");
    } else if let Some(structured) = output.get_mut("structuredContent") {
        let bare = !version.is_modern() && !structured.is_object();
        if schema.map_or(bare, |schema| is_wrapped(schema, version)) {
            *structured = json!({"result": structured.take()});
        }
    }
    Outcome::of(Kind::Complete, &output).with_meta(meta)
}

fn text_block(members: &mut Vec<u8>, text: &str) {
    members.extend_from_slice(b"\"content\":[{\"type\":\"text\",\"text\":");
    put(members, text);
    members.extend_from_slice(b"}]");
}

fn put(members: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Plain data into memory: this cannot fail.
    drop(serde_json::to_writer(members, value));
}

fn written(members: Vec<u8>) -> Outcome {
    Outcome::written(Kind::Complete, String::from_utf8(members).unwrap_or_default())
}

/// A run that ended without an output: as the other side itself said it, else in words.
pub(crate) fn failed(
    spec: Option<&ToolSpec>,
    report: &RunReport,
    raw_failure: Option<RawFailure>,
    version: Version,
) -> AnswerResult {
    if let Some(answered) = raw_failure.and_then(|raw| as_is(raw, version)) {
        return answered.map(|outcome| outcome.and_meta(about(report)));
    }
    let run = report.run.id;
    let fault = report.run.last_error.as_ref();
    let text = match fault {
        Some(fault) => format!("{}\nrun: {run}", in_words(fault)),
        None => format!("run `{run}` was {}", report.run.status.name()),
    };
    Ok(failure(&text, fault, spec, version).with_meta(about(report)))
}

/// What the other side of a failed call said, to the letter: a result, or an error of the protocol.
fn as_is(raw_failure: RawFailure, version: Version) -> Option<AnswerResult> {
    match raw_failure {
        RawFailure::Result(result) => Some(Ok(blocks(None, own_result(result)?, version))),
        RawFailure::Error(mut error) => {
            let data = error.get_mut("data").map(Value::take);
            let code = error["code"].as_i64()?;
            let message = error["message"].as_str()?;
            Some(Err(RpcError { code, message: message.to_owned(), data }))
        }
        // A lack that has no name in the protocol is explained in words.
        RawFailure::Lacks(lacks) => (!lacks.is_none()).then(|| Err(lacking(lacks))),
        RawFailure::Reply(_) => None,
    }
}

/// A run that is not over, in words: where it stands and how to continue it. A tool that promises
/// a structure cannot be answered without it, so there this counts as an error.
pub(crate) fn unfinished(report: &RunReport, spec: &ToolSpec, version: Version) -> Outcome {
    let promised = spec.output_schema.is_some() && version >= Version::June2025;
    words(&standing(report), promised).with_meta(about(report))
}

/// Where a run stands that is not over.
fn standing(report: &RunReport) -> String {
    let run = report.run.id;
    let mut text = match report.run.status {
        RunStatus::Paused => {
            format!("Run `{run}` is paused; `waypost session continue` lets it go on.")
        }
        _ if report.asks.is_empty() => format!("Run `{run}` is still running."),
        _ => format!("Run `{run}` waits for a person:"),
    };
    for ask in report.asks.iter().map(|asked| &asked.row.ask) {
        text.push_str(&format!("\n- `{}` ({}): {}", ask.id, ask.body.kind(), ask.title));
    }
    if !report.asks.is_empty() {
        text.push_str("\nAnswer with `waypost inbox answer <ask>` or `POST /api/v1/asks/<ask>`.");
    }
    text.push_str(&format!("\nLook at it with `GET /api/v1/runs/{run}`."));
    text
}

fn about(report: &RunReport) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert(META_RUN.to_owned(), json!(report.run.id));
    if !report.asks.is_empty() {
        let asks: Vec<_> = report.asks.iter().map(|asked| asked.row.ask.id).collect();
        meta.insert(META_ASKS.to_owned(), json!(asks));
    }
    meta
}

/// A fault with its hint.
pub(crate) fn in_words(fault: &Fault) -> String {
    match &fault.hint {
        Some(hint) => format!("{fault}; {hint}"),
        None => fault.to_string(),
    }
}

/// A refusal as a result, where the caller can do something about it: other arguments, another
/// tool. What a tool that failed said itself is passed on as it is. Anything else is no result.
pub(crate) fn refused(
    spec: Option<&ToolSpec>,
    mut refusal: Refusal,
    version: Version,
) -> AnswerResult {
    match &mut refusal.code {
        RefusalCode::ToolFailed(raw_failure) => {
            if let Some(answered) = raw_failure.take().and_then(|raw| as_is(*raw, version)) {
                return answered;
            }
        }
        // A lack that has no name in the protocol is an error in words.
        RefusalCode::CallerLacks(lacks) if !lacks.is_none() => return Err(lacking(*lacks)),
        _ => {}
    }
    match refusal.kind() {
        RefusalKind::WrongShape
        | RefusalKind::BadRequest
        | RefusalKind::Forbidden
        | RefusalKind::Conflict
        | RefusalKind::TooLarge
        | RefusalKind::Upstream => {
            let mut text = refusal.message;
            let details = sentence(&refusal.errors);
            if !text.contains(&details) {
                text.push_str(&format!(": {details}"));
            }
            if let Some(hint) = refusal.hint {
                text.push_str(&format!("; {hint}"));
            }
            Ok(failure(&text, refusal.fault.as_deref(), spec, version))
        }
        RefusalKind::NotFound
        | RefusalKind::Gone
        | RefusalKind::TooMany
        | RefusalKind::NoRoom
        | RefusalKind::Unavailable
        | RefusalKind::Failed => Err(trouble(refusal)),
    }
}

/// The result in which a tool itself said that it failed.
fn own_result(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(mut result) if result.get("content").is_some_and(Value::is_array) => {
            result.insert("isError".to_owned(), Value::Bool(true));
            Some(result)
        }
        _ => None,
    }
}

/// A refusal as an error of the protocol.
pub(crate) fn trouble(refusal: Refusal) -> RpcError {
    let code = match refusal.kind() {
        RefusalKind::BadRequest
        | RefusalKind::WrongShape
        | RefusalKind::NotFound
        | RefusalKind::Conflict
        | RefusalKind::Gone
        | RefusalKind::TooLarge => INVALID_PARAMS,
        RefusalKind::Forbidden
        | RefusalKind::TooMany
        | RefusalKind::NoRoom
        | RefusalKind::Unavailable
        | RefusalKind::Failed
        | RefusalKind::Upstream => INTERNAL_ERROR,
    };
    let mut data = json!({"code": refusal.code.name()});
    if let Some(hint) = refusal.hint {
        data["hint"] = Value::String(hint);
    }
    // Where the answer is 200, no header can say it.
    if let Some(retry_ms) = refusal.code.retry_ms() {
        data["retryAfterMs"] = json!(retry_ms);
    }
    if let Some(Quota { of, max, window_s }) = refusal.code.quota() {
        data["quota"] = match window_s {
            Some(seconds) => json!({"of": of, "max": max, "windowSeconds": seconds}),
            None => json!({"of": of, "max": max}),
        };
    }
    RpcError::new(code, refusal.message).data(data)
}

/// What cannot be done at this moment, as an error of the protocol: the client sends it again.
pub(crate) fn not_now(message: String, hint: &str) -> RpcError {
    let data = json!({"hint": hint, "retryAfterMs": TASK_POLL_MS});
    RpcError::new(INTERNAL_ERROR, message).data(data)
}

/// What a run called: a tool directly, or a plan.
pub(crate) fn called(
    engine: &Engine,
    caller: &Caller,
    report: &RunReport,
) -> Option<Arc<ToolSpec>> {
    let plan = report.run.plan.as_str();
    let direct = report.session.key.space == Space::call();
    let name = if direct { plan.strip_prefix("call/").unwrap_or(plan) } else { plan };
    engine.tools().callable(caller, name)
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskStatus {
    /// It continues by itself, or with an answer that this client cannot give.
    Working,
    /// The client can answer something.
    InputRequired,
    /// It has a result.
    Completed,
    /// It has none, and that is neither its tool's nor a person's doing.
    Failed,
    /// Someone ended it.
    Cancelled,
}

impl TaskStatus {
    /// Where the run's task stands for a client that can answer so many of its asks.
    pub(crate) fn of(report: &RunReport, answerable: usize) -> Self {
        match report.run.status {
            RunStatus::Completed => TaskStatus::Completed,
            RunStatus::Cancelled => TaskStatus::Cancelled,
            RunStatus::Failed if is_runtime_fault(report.run.last_error.as_ref()) => {
                TaskStatus::Failed
            }
            // A tool that failed, or a person who said no, is a result that says so.
            RunStatus::Failed => TaskStatus::Completed,
            RunStatus::Running | RunStatus::Waiting | RunStatus::Stuck | RunStatus::Paused => {
                if answerable > 0 {
                    TaskStatus::InputRequired
                } else {
                    TaskStatus::Working
                }
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired => "input_required",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }
}

fn is_runtime_fault(fault: Option<&Fault>) -> bool {
    fault.is_none_or(|fault| RUNTIME_FAULTS.contains(&fault.name.as_str()))
}

pub(crate) fn task(
    engine: &Engine,
    caller: &Caller,
    report: &RunReport,
    status: TaskStatus,
) -> Value {
    let run = &report.run;
    let updated_at = run.ended_at.unwrap_or(report.session.updated_at);
    let mut task = json!({
        "taskId": run.id,
        "status": status.name(),
        "createdAt": run.started_at.rfc3339(),
        "lastUpdatedAt": updated_at.rfc3339(),
        "ttlMs": engine.sessions().ttl_ms(caller),
        "pollIntervalMs": TASK_POLL_MS,
    });
    let message = match status {
        TaskStatus::Working | TaskStatus::InputRequired => Some(standing(report)),
        TaskStatus::Failed | TaskStatus::Cancelled => run.last_error.as_ref().map(in_words),
        TaskStatus::Completed => None,
    };
    if let Some(message) = message {
        task["statusMessage"] = Value::String(message);
    }
    task
}

#[cfg(test)]
mod tests;
