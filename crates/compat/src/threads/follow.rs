//! `/run` and `/resume` as streams of server-sent events: the model's words as they come, its tool
//! calls and their results as they are recorded, and last what JSON would have said. A client that
//! goes away cancels nothing.

use axum::http::header::LOCATION;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::frame::{Asker, traced};
use edge::request::key::replayed;
use edge::request::run_body::location;
use edge::request::server_state::{ServerState, Shared, StreamPlace};
use edge::stream::{Source, SourceItem, answer, named_event, permit};
use edge::views::threads;
use engine::{RunReport, RunStream, RunUpdate, ThreadListener, TurnUpdate};
use kernel::contracts::SessionAsk;
use kernel::conversation::llm::Delta;
use kernel::conversation::talk::CallSettlement;
use kernel::event::{self, Fact, TurnKind};
use kernel::tool::call::Caller;
use kernel::values::fault::Fault;
use kernel::values::ids::CallId;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use wire::conversations::{ThreadDelta, ThreadRestart, ToolCallInfo, ToolResult};

/// Listens to a thread, from before something is said in it.
pub(super) struct ThreadStream {
    listening: ThreadListener,
    permit: StreamPlace,
    caller: Arc<Caller>,
}

impl ThreadStream {
    /// Begins to listen.
    pub(super) async fn open(
        server: &ServerState,
        caller: &Arc<Caller>,
        thread: &str,
    ) -> Result<Self> {
        let permit = permit(server, caller)?;
        let listening = server.engine.threads().listen(caller, thread).await;
        Ok(Self { listening, permit, caller: caller.clone() })
    }

    /// Tells what happens until the run ends or pauses.
    pub(super) fn tell(self, server: Shared, report: &RunReport) -> Response {
        let run = report.run.id;
        let run_stream = self.listening.follow(run);
        let caller = self.caller;
        let telling = ClientStream { run: run_stream, waiting: VecDeque::new(), caller };
        let response = answer(server, telling, self.permit);
        replayed(([(LOCATION, location(run))], response).into_response(), report.replayed)
    }
}

/// One client's stream.
struct ClientStream {
    run: RunStream,
    /// What an update has to report and has not sent yet.
    waiting: VecDeque<Event>,
    /// Who listens.
    caller: Arc<Caller>,
}

impl Source for ClientStream {
    type Event = Event;

    async fn first(&mut self, _server: &ServerState) -> Result<Option<Event>> {
        Ok(None)
    }

    async fn try_next(&mut self, server: &ServerState) -> Result<SourceItem> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(SourceItem::Event(event));
            }
            match self.run.try_next().await? {
                None => return Ok(SourceItem::Nothing),
                Some(RunUpdate::Snapshot(_)) => {}
                Some(RunUpdate::Event { body, .. }) => {
                    let events = event::read(&format!("[{body}]")).unwrap_or_default();
                    self.waiting.extend(events.into_iter().flat_map(|event| of_fact(event.fact)));
                }
                Some(RunUpdate::Delta(heard)) => self.waiting.extend(of_turn(heard)),
                // The very object that JSON would have had.
                Some(RunUpdate::Rest(report) | RunUpdate::End(report)) => {
                    let may_answer =
                        |asked: &SessionAsk| server.engine.asks().may_answer(&self.caller, asked);
                    let answer = threads::answer(&report, may_answer)?;
                    return Ok(SourceItem::Last(named_event("result", &answer)));
                }
            }
        }
    }

    async fn wait(&mut self) {
        self.run.wait().await;
    }

    fn broken(&self, server: &ServerState, failure: Failure) -> Event {
        let asker = Asker { trace: None, who: Some(&self.caller) };
        let trace_id = traced(server, &failure, asker);
        named_event("result", &failure.thread(trace_id))
    }
}

/// What a turn has to report while it is made. Calls are sent once they are recorded; a client that
/// is too slow gets the whole text with the result.
fn of_turn(heard: TurnUpdate) -> Option<Event> {
    match heard {
        TurnUpdate::Delta { at, delta: Delta::Text(text) } => {
            let delta = ThreadDelta { turn: at.turn, attempt: at.attempt, text };
            Some(named_event("delta", &delta))
        }
        TurnUpdate::Restarted(at) => {
            let restart = ThreadRestart { turn: at.turn, attempt: at.attempt };
            Some(named_event("restarted", &restart))
        }
        TurnUpdate::Delta { .. } | TurnUpdate::Lost(_) => None,
    }
}

/// What a recorded fact has to tell.
fn of_fact(fact: Fact) -> Vec<Event> {
    let output = |call: CallId, value: Value| result(call, Ok(value));
    let error = |call: CallId, fault: &Fault| result(call, Err(fault.to_string()));
    match fact {
        Fact::TurnFinished(end) if end.kind == TurnKind::Act => {
            let mut events = Vec::new();
            for made in &end.calls {
                let tool = made.tool.as_ref().map_or(&*made.said, |tool| tool.as_str());
                events.push(named_event(
                    "tool_call",
                    &ToolCallInfo {
                        call_id: made.call.to_string(),
                        tool_name: tool.to_owned(),
                        arguments: (*made.arguments).clone(),
                    },
                ));
                events.extend(made.refused.as_ref().map(|fault| error(made.call, fault)));
            }
            events
        }
        Fact::CallFinished { call, output: value, .. } => vec![output(call, value.to_value())],
        Fact::CallFailed { call, fault, .. } => vec![error(call, &fault)],
        Fact::ResultsGiven { results, .. } => {
            let settled = |(call, settled): (CallId, CallSettlement)| match settled {
                // It was sent when it finished.
                CallSettlement::Output(_) => None,
                CallSettlement::Skipped(value) => Some(output(call, (*value).clone())),
                CallSettlement::Answered(text) => Some(output(call, json!(text))),
                CallSettlement::Failed(fault) => Some(error(call, &fault)),
                CallSettlement::Rejected(why)
                | CallSettlement::Declined(why)
                | CallSettlement::NotRun(why) => Some(result(call, Err(why.to_string()))),
            };
            results.into_iter().filter_map(settled).collect()
        }
        _ => Vec::new(),
    }
}

fn result(call: CallId, result: Result<Value, String>) -> Event {
    let (output, error) = match result {
        Ok(value) => (Some(value), None),
        Err(why) => (None, Some(why)),
    };
    named_event("tool_result", &ToolResult { call_id: call.to_string(), output, error })
}
