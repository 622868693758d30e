//! State of one `tools/call` request: what is called, for whom, and until when the client waits;
//! and what happens when the run takes longer or ends, or the client leaves.

use super::elicit;
use super::input_required::{Retry, abilities, missing_capability, what};
use super::result::{self, TaskStatus};
use crate::answer::{AnswerResult, Kind, Outcome};
use crate::client::Client;
use crate::exchange::Exchange;
use crate::messages::message::PlainCall;
use crate::messages::requests::Cancelled;
use crate::seal::SealScope;
use crate::state::McpState;
use edge::views::content::whole;
use engine::refusal::{RefusalCode, RefusalKind};
use engine::{Attendance, Attendant, CallRequest, Callable, Engine, IdempotencyKey, RunReport};
use futures::future::{Either, select};
use kernel::event::Occasion;
use kernel::limits::Limits;
use kernel::tool::call::{CallUpdate, Caller, InputResponses, Pace, Reach, ToolSpec};
use kernel::values::canonical;
use kernel::values::ids::{Millis, RunId, StepId};
use kernel::values::trace::TraceParent;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::jsonrpc::{RpcError, even_null};
use wire::mcp::{META_IDEMPOTENCY_KEY, TASKS};

/// How long a call is waited for before its run's steps are reported as progress.
const FIRST_LOOK_MS: u64 = 100;
/// The shortest time between two tellings of a run's progress.
const PROGRESS_MS: u64 = 500;
/// How often, and how long after each other, the server looks for an abandoned run before it can be
/// cancelled.
const CANCEL_TRIES: u32 = 10;
const CANCEL_PAUSE_MS: u64 = 100;

/// The endpoint under which keys of calls are remembered.
const ROUTE: &str = "mcp/tools/call";
/// As long as an `Idempotency-Key` may be.
const KEY_CHARS_MAX: usize = 255;

/// What `tools/call` takes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Params {
    /// The tool.
    pub(crate) name: String,
    arguments: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "even_null")]
    input_responses: Option<Value>,
    request_state: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
}

/// What we look at of what is said beside a call.
#[derive(Debug, Deserialize)]
struct Meta {
    #[serde(default, rename = "waypost/idempotencyKey")]
    key: Option<String>,
    #[serde(default, deserialize_with = "span")]
    traceparent: Option<TraceParent>,
}

/// A span, if it is one: what it is not is no reason to refuse a call.
fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TraceParent>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_str().and_then(|text| text.parse().ok()))
}

impl From<PlainCall> for Params {
    fn from(PlainCall { name, arguments, trace }: PlainCall) -> Self {
        let meta = Some(Meta { key: None, traceparent: trace });
        Self { name, arguments, input_responses: None, request_state: None, meta }
    }
}

impl Params {
    /// The key under which the call is done once, if it has one.
    fn key(&mut self) -> Result<Option<String>, RpcError> {
        let key = self.meta.take().and_then(|meta| meta.key);
        let fits = |key: &String| {
            (1..=KEY_CHARS_MAX).contains(&key.len())
                && key.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if key.as_ref().is_none_or(fits) {
            return Ok(key);
        }
        Err(RpcError::invalid_params(format!(
            "`{META_IDEMPOTENCY_KEY}` is one word of 1 to {KEY_CHARS_MAX} visible characters"
        )))
    }

    /// The span of the caller, as the call itself names it.
    pub(crate) fn trace(&self) -> Option<TraceParent> {
        self.meta.as_ref().and_then(|meta| meta.traceparent)
    }

    /// The arguments, and what a client adds when it calls again.
    pub(crate) fn split(self) -> (Value, Retry) {
        let arguments = Value::Object(self.arguments.unwrap_or_default());
        let input_responses = self.input_responses;
        let request_state = self.request_state;
        (arguments, Retry { input_responses, request_state })
    }
}

/// One call.
pub(crate) struct ActiveCall<'a> {
    /// The request.
    pub(crate) exchange: &'a Exchange,
    pub(crate) tool: Callable,
    /// The key under which it is done once.
    key: Option<String>,
    /// The span of the caller.
    pub(crate) trace: Option<TraceParent>,
    /// Until when its run is waited for.
    until: Millis,
    /// How many steps were reported as progress.
    progress_sent: AtomicU64,
}

/// What causes the runs of calls.
pub(crate) fn occasion() -> Occasion {
    Occasion::at("mcp", "tools/call")
}

/// Whether the client takes a task for an answer.
pub(crate) fn takes_tasks(client: &Client) -> bool {
    client.can.tasks && client.version.is_modern()
}

/// The client must take tasks for this.
pub(crate) fn tasks_needed() -> RpcError {
    missing_capability(&json!({"extensions": {TASKS: {}}}))
}

impl<'a> ActiveCall<'a> {
    /// A call that begins now, under a key if it has one.
    pub(crate) fn new(
        exchange: &'a Exchange,
        tool: Callable,
        params: &mut Params,
    ) -> Result<Self, RpcError> {
        // What the call says of itself overrides what came with it.
        let trace = params.trace().or(exchange.trace);
        let key = params.key()?;
        let engine = &exchange.mcp.server.engine;
        let wait_ms = if takes_tasks(&exchange.client) {
            engine.limits().mcp_task_after_ms
        } else {
            engine.limits().mcp_call_wait_ms
        };
        let until = engine.clock().now().plus_ms(wait_ms);
        Ok(Self { exchange, tool, key, trace, until, progress_sent: AtomicU64::new(0) })
    }

    /// How what is called is listed.
    pub(crate) fn spec(&self) -> &Arc<ToolSpec> {
        self.tool.spec()
    }

    pub(crate) fn engine(&self) -> &'a Engine {
        &self.exchange.mcp.server.engine
    }

    pub(crate) fn caller(&self) -> &'a Caller {
        &self.exchange.caller
    }

    pub(crate) fn limits(&self) -> &'a Limits {
        self.engine().limits()
    }

    /// How long it is still waited for.
    pub(crate) fn left_ms(&self) -> u64 {
        let left = self.until.0.saturating_sub(self.engine().clock().now().0);
        u64::try_from(left).unwrap_or(0)
    }

    /// The same, but not for long where the client wants to hear how far it is, and the call
    /// cannot tell that itself.
    pub(crate) fn first_ms(&self) -> u64 {
        match &self.exchange.client.progress {
            Some(_) if self.spec().listed.is_none() => self.left_ms().min(FIRST_LOOK_MS),
            Some(_) | None => self.left_ms(),
        }
    }

    /// Whether it is a task from the beginning.
    pub(crate) fn is_task(&self) -> bool {
        let lasting = self.spec().pace != Pace::Quick && !self.spec().unrecorded;
        lasting && takes_tasks(&self.exchange.client)
    }

    /// The arguments once more: only a call that asks back needs them twice, and most do not.
    pub(crate) fn arguments(&self) -> Value {
        let params = self.exchange.params::<Params>();
        params.map_or_else(|_| json!({}), |params| params.split().0)
    }

    /// What its states are bound to.
    pub(crate) fn bound(&self) -> SealScope {
        let what = what("tools/call", self.spec().name.as_str(), &self.arguments());
        SealScope::new(self.caller(), what)
    }

    /// The call for the engine, of the tool as it was found last.
    pub(crate) fn request(
        &self,
        tool: Callable,
        run: RunId,
        arguments: Value,
        given: InputResponses,
    ) -> CallRequest {
        let once = self.key.clone().map(|key| {
            let route = format!("{ROUTE} {}", tool.name());
            IdempotencyKey::new(route, key, canonical::digest(&arguments))
        });
        CallRequest {
            given,
            can: abilities(self.exchange),
            teller: self.exchange.teller(),
            once,
            run: Some(run),
            as_task: takes_tasks(&self.exchange.client),
            trace: self.trace,
            occasion: occasion(),
            ..CallRequest::new(tool, arguments, self.first_ms())
        }
    }

    /// The client is there for the run of the call, as long as this is held, with what it brought
    /// along.
    pub(crate) fn attend(&self, run: RunId, given: InputResponses) -> Attendance {
        let can = abilities(self.exchange);
        let teller = self.exchange.teller();
        self.engine().runs().attend(run, Attendant { can, teller, given })
    }

    /// A run as it is now.
    pub(crate) async fn now(&self, run: RunId) -> Result<RunReport, RpcError> {
        self.engine().runs().report(self.caller(), run).await.map_err(result::trouble)
    }

    /// Its output as a result.
    pub(crate) async fn done(&self, output: Value) -> Outcome {
        let named = output.as_str().is_some_and(|text| text.starts_with("blob://"));
        let output = if named && self.is_recorded() {
            Box::pin(whole(self.engine(), self.caller(), output)).await
        } else {
            output
        };
        result::done(Some(self.spec()), output, self.exchange.client.version)
    }

    /// Whether its output comes out of a run: a quick read of a tool gives it as it is, and so does
    /// a tool without a journal.
    fn is_recorded(&self) -> bool {
        let spec = self.spec();
        let in_a_run = self.is_task() || spec.reach != Reach::Reads || self.tool.is_plan();
        in_a_run && !spec.unrecorded
    }

    /// Its run ended without an output.
    pub(crate) async fn failed(&self, report: &RunReport) -> AnswerResult {
        // A client that was to get a task learns from that whose failure it was.
        if self.is_task() {
            return Ok(self.task(report));
        }
        let raw_failure = self.engine().runs().own_words(report).await.map_err(result::trouble)?;
        result::failed(Some(self.spec()), report, raw_failure, self.exchange.client.version)
    }

    /// Whether its run is a task by now: it continues elsewhere, and the client takes tasks.
    pub(crate) fn became_task(&self, report: &RunReport) -> bool {
        report.elsewhere && takes_tasks(&self.exchange.client)
    }

    /// Its run continues without the client: as a task if it takes one, else in words.
    pub(crate) fn later(&self, report: &RunReport) -> Outcome {
        if takes_tasks(&self.exchange.client) { self.task(report) } else { self.unfinished(report) }
    }

    /// Its run is not over, in words.
    pub(crate) fn unfinished(&self, report: &RunReport) -> Outcome {
        result::unfinished(report, self.spec(), self.exchange.client.version)
    }

    fn task(&self, report: &RunReport) -> Outcome {
        let chars_max = self.limits().mcp_shown_chars_max;
        let answerable = report.asks.iter().filter(|asked| {
            let client = &self.exchange.client;
            self.engine().asks().may_answer(self.caller(), asked)
                && elicit::request_or_text(&asked.row.ask, client, chars_max).is_some()
        });
        let status = TaskStatus::of(report, answerable.count());
        let task = result::task(self.engine(), self.caller(), report, status);
        Outcome::of(Kind::Task, &task)
    }

    /// Waits until the run ends or pauses, as long as the call is waited for, and tells its steps.
    pub(crate) async fn wait(&self, report: &RunReport) -> Result<RunReport, RpcError> {
        let engine = self.engine();
        let caller = self.caller();
        let run = report.run.id;
        let settled = engine.runs().settled(caller, run, self.left_ms());
        // What a direct call tells is heard as it comes: its one step says nothing more.
        let tells_itself = report.session.key.space.is_call();
        if self.exchange.client.progress.is_none() || tells_itself {
            return settled.await.map_err(result::trouble);
        }
        let mut settled = pin!(settled);
        let mut stream = engine.runs().follow_on(caller, report);
        let mut step = None;
        self.tell(&mut step, report);
        loop {
            let moved = async {
                self.pause(PROGRESS_MS).await;
                stream.skip().await
            };
            match select(settled.as_mut(), pin!(moved)).await {
                Either::Left((report, _)) => return report.map_err(result::trouble),
                Either::Right((now, _)) => self.tell(&mut step, &now.map_err(result::trouble)?),
            }
        }
    }

    /// Tells where the run is, if it is somewhere else than before.
    fn tell(&self, last: &mut Option<StepId>, report: &RunReport) {
        let Some(step) = &report.run.step else { return };
        if last.as_ref() == Some(step) {
            return;
        }
        let sent = self.progress_sent.fetch_add(1, Ordering::Relaxed) + 1;
        self.exchange.teller().tell(CallUpdate::Progress {
            progress: sent as f64,
            total: None,
            message: Some(format!("at step `{step}`")),
        });
        *last = Some(step.clone());
    }

    async fn pause(&self, ms: u64) {
        let clock = self.engine().clock();
        clock.sleep_until(clock.now().plus_ms(ms)).await;
    }
}

/// Cancels a run whose client cancels the call before it is answered. A stateless client does that
/// by closing the connection. In the versions with a handshake it says so, and one that is only
/// gone did not: its run continues.
pub(crate) struct Guard {
    mcp: Arc<McpState>,
    caller: Arc<Caller>,
    run: Option<RunId>,
    /// None where to be gone is to cancel.
    cancelled: Option<Cancelled>,
}

impl Guard {
    /// Watches over a call's run.
    pub(crate) fn new(calling: &ActiveCall<'_>, run: RunId) -> Self {
        let exchange = calling.exchange;
        // A task outlives the request that made it.
        let run = (!calling.is_task()).then_some(run);
        let is_stateless = exchange.client.version.is_modern();
        let cancelled = (!is_stateless).then(|| exchange.cancelled.clone());
        Self { mcp: exchange.mcp.clone(), caller: exchange.caller.clone(), run, cancelled }
    }

    /// The client has its answer: the run continues as that says.
    pub(crate) fn answered(mut self) {
        self.run = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else { return };
        if self.cancelled.as_ref().is_some_and(|cancelled| !cancelled.is_set()) {
            return;
        }
        let engine = self.mcp.server.engine.clone();
        let caller = self.caller.clone();
        self.mcp.spawn.task("cancel", Box::pin(cancel(engine, caller, run)));
    }
}

async fn cancel(engine: Engine, caller: Arc<Caller>, run: RunId) {
    for _ in 0..CANCEL_TRIES {
        match engine.runs().cancel(&caller, run).await {
            // It may not be stored yet, and a read that is not recorded never is.
            Err(refusal) if refusal.kind() == RefusalKind::NotFound => {}
            Err(refusal) if refusal.code != RefusalCode::RunOver => {
                tracing::warn!(%run, "a run that its client left continues: {}", refusal.message);
                return;
            }
            Ok(_) | Err(_) => return,
        }
        let clock = engine.clock();
        clock.sleep_until(clock.now().plus_ms(CANCEL_PAUSE_MS)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::message::RequestMembers;
    use serde_json::value::RawValue;

    #[test]
    fn plain_parameters_are_what_they_are_when_they_are_read_whole() {
        let span = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (more, is_plain) in [
            (json!({}), true),
            (json!({"arguments": {"a": [1, {"b": null}], "c": "\n"}}), true),
            (json!({"arguments": null, "_meta": null}), true),
            (json!({"_meta": {"traceparent": span, "else": 1}}), true),
            (json!({"_meta": {"traceparent": "no span"}}), true),
            (json!({"_meta": {"traceparent": 7}}), true),
            (json!({"_meta": {META_IDEMPOTENCY_KEY: null}}), true),
            (json!({"_meta": {META_IDEMPOTENCY_KEY: "k"}}), false),
            (json!({"_meta": {META_IDEMPOTENCY_KEY: 7}}), false),
            (json!({"inputResponses": {}, "requestState": "s"}), false),
            (json!({"inputResponses": null}), false),
            (json!({"requestState": null}), true),
            (json!({"arguments": [1]}), false),
            (json!({"arguments": 7}), false),
        ] {
            let mut params = json!({"name": "a\"b"});
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let text = params.to_string();
            let raw: &RawValue = serde_json::from_str(&text).unwrap();
            let plain = RequestMembers::read(Some(raw)).unwrap().plain();
            assert_eq!(plain.is_some(), is_plain, "{text}");
            let Some(plain) = plain else { continue };
            let whole: Params = serde_json::from_str(&text).unwrap();
            let told = |params: Params| {
                let trace = params.trace();
                let name = params.name.clone();
                let (arguments, retry) = params.split();
                let brought = (retry.input_responses, retry.request_state);
                (name, arguments.to_string(), brought, trace)
            };
            assert_eq!(told(plain.into()), told(whole), "{text}");
        }
        let read =
            |text: &'static str| RequestMembers::read(Some(serde_json::from_str(text).unwrap()));
        assert!(read(r#"{"name": 7}"#).unwrap().plain().is_none());
        // What cannot be a span is no reason to refuse a call, and one member is there once.
        let odd = read(r#"{"name": "a", "_meta": {"traceparent": "\ud800"}}"#);
        assert!(odd.unwrap().plain().is_some_and(|plain| plain.trace.is_none()));
        let twice = read(r#"{"name": "a", "requestState": "b", "requestState": "c"}"#);
        assert_eq!(twice.err().map(|error| error.code), Some(-32602));
    }
}
