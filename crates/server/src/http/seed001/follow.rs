//! `/run` and `/resume` as streams of server-sent events: the model's words as they come, its tool
//! calls and their results as they are recorded, and last what JSON would have said. A client that
//! goes away cancels nothing.

use super::session;
use crate::doors::{Closing, Doors, Shared};
use crate::error::Failure;
use crate::frame::traced;
use crate::http::runs::location;
use crate::http::stream::{HEARTBEAT_MS, permit, told};
use crate::once::replayed;
use crate::threads;
use axum::http::HeaderValue;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use engine::{Deltas, Heard, RunReport, Watch};
use futures::future::select;
use futures::{FutureExt, stream};
use kernel::call::Caller;
use kernel::contracts::SessionRef;
use kernel::event::{self, Fact, TurnKind};
use kernel::fault::Fault;
use kernel::ids::{CallId, RunId, Space};
use kernel::llm::Delta;
use kernel::session::RunStatus;
use kernel::talk::Settled;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use wire::seed001::{ThreadAnswer, ThreadDelta, ThreadRestart, ToolCallInfo, ToolResult};

/// Listens to a thread, from before something is said in it.
pub(super) struct Ear {
    /// Who listens.
    caller: Arc<Caller>,
    session: SessionRef,
    /// The last event that was there before.
    after: u64,
    /// The run that began last up to there. A thread has one run at a time, so this is whose the
    /// events are.
    current: Option<RunId>,
    watch: Watch,
    deltas: Deltas,
    closing: Closing,
    _permit: OwnedSemaphorePermit,
}

impl Ear {
    /// Begins to listen.
    pub(super) async fn open(
        doors: &Doors,
        caller: &Arc<Caller>,
        thread: &str,
    ) -> Result<Self, Failure> {
        let permit = permit(doors)?;
        let session = session(thread);
        let (engine, caller) = (&doors.engine, caller.clone());
        let key = caller.key(Space::thread(), thread);
        let (watch, deltas) = (engine.feed().watch(&key), engine.feed().deltas(&key));
        // A thread that is not there yet has no events.
        let row = engine.sessions().get(&caller, &session).await.ok();
        let (after, current) = row.map_or((0, None), |row| (row.seq, row.run));
        let closing = doors.closing();
        Ok(Self { caller, session, after, current, watch, deltas, closing, _permit: permit })
    }

    /// Tells what happens until the run ends or pauses.
    pub(super) fn tell(self, doors: Shared, report: RunReport) -> Response {
        let (run, again) = (report.run.id, report.replayed);
        let waiting = VecDeque::new();
        let telling = Telling { doors, ear: self, run, waiting, look: true, over: false };
        let events = stream::unfold(telling, |mut telling| async move {
            let event = telling.next().await?;
            Some((Ok::<Event, Infallible>(event), telling))
        });
        let unbuffered = ("x-accel-buffering", HeaderValue::from_static("no"));
        let headers = [unbuffered, ("location", location(run))];
        let response = (headers, Sse::new(events)).into_response();
        replayed(response, again)
    }
}

/// One client's stream.
struct Telling {
    doors: Shared,
    ear: Ear,
    run: RunId,
    /// What was heard and is not sent yet.
    waiting: VecDeque<Event>,
    /// Whether something may be committed that was not read.
    look: bool,
    /// Whether the result is among what waits, or sent.
    over: bool,
}

impl Telling {
    /// The next event; none after the result, and none where the server is closing.
    async fn next(&mut self) -> Option<Event> {
        loop {
            self.hear_now();
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            if std::mem::take(&mut self.look) {
                self.read().await;
                continue;
            }
            match self.wait().await {
                Woken::Commit => self.look = true,
                Woken::Heard(heard) => self.hear(heard),
                Woken::Heartbeat => return Some(Event::default().comment("still here")),
                Woken::Closing => return None,
            }
        }
    }

    /// Reads what was committed, and says what came of the run once it ended or paused.
    async fn read(&mut self) {
        let answer = match self.news().await {
            Ok(None) => return,
            Ok(Some(report)) => threads::answer(&report),
            Err(failure) => Err(failure),
        };
        // What was said before the end is told before it.
        self.hear_now();
        let result = self.result(answer);
        self.waiting.push_back(result);
        self.over = true;
    }

    /// What was committed goes to what waits; the run, once there is nothing more to come.
    async fn news(&mut self) -> Result<Option<RunReport>, Failure> {
        let (doors, caller) = (self.doors.clone(), self.ear.caller.clone());
        let engine = &doors.engine;
        let limit = doors.limits().page_items_max;
        let events =
            engine.sessions().events(&caller, &self.ear.session, self.ear.after, limit).await?;
        for (seq, text) in &events {
            self.ear.after = *seq;
            self.take_in(text);
        }
        if !events.is_empty() {
            self.look = true;
            return Ok(None);
        }
        let report = engine.runs().report(&caller, self.run).await?;
        let settled = report.run.status != RunStatus::Running;
        let followed = settled && self.ear.current.is_some_and(|current| current != self.run);
        // Something was committed between the two reads. If another run began, it is of that one.
        if report.session.seq > self.ear.after && !followed {
            self.look = true;
            return Ok(None);
        }
        Ok(settled.then_some(report))
    }

    /// What a recorded event has to tell goes to what waits, if it is of this run: the one before
    /// may end while this one begins, and another may begin while this one is still told.
    fn take_in(&mut self, text: &str) {
        for event in event::read(&format!("[{text}]")).unwrap_or_default() {
            if let Fact::RunStarted { run, .. } = &event.fact {
                self.ear.current = Some(*run);
            }
            if self.ear.current == Some(self.run) {
                self.waiting.extend(of_fact(event.fact));
            }
        }
    }

    /// The very object that JSON would have had.
    fn result(&self, answer: Result<ThreadAnswer, Failure>) -> Event {
        match answer {
            Ok(answer) => told("result", &answer),
            Err(failure) => {
                let trace_id = traced(&self.doors, &failure, None);
                told("result", &failure.thread(trace_id))
            }
        }
    }

    /// Takes in what is there without waiting.
    fn hear_now(&mut self) {
        while let Some(Some(heard)) = self.ear.deltas.next().now_or_never() {
            self.hear(heard);
        }
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Delta { at, delta: Delta::Text(text) } if at.run == self.run => {
                let delta = ThreadDelta { turn: at.turn, attempt: at.attempt, text };
                self.waiting.push_back(told("delta", &delta));
            }
            Heard::Restarted(at) if at.run == self.run => {
                let restart = ThreadRestart { turn: at.turn, attempt: at.attempt };
                self.waiting.push_back(told("restarted", &restart));
            }
            // Calls are told once they are recorded; a client that is too slow gets the whole text
            // with the result.
            Heard::Delta { .. } | Heard::Restarted(_) | Heard::Lost(_) => {}
        }
    }

    async fn wait(&mut self) -> Woken {
        let clock = self.doors.engine.clock().clone();
        let Ear { watch, deltas, closing, .. } = &mut self.ear;
        let commit = async {
            watch.changed().await;
            Woken::Commit
        };
        let heard = async {
            match deltas.next().await {
                Some(heard) => Woken::Heard(heard),
                // Nobody speaks any more; what is recorded is told all the same.
                None => std::future::pending().await,
            }
        };
        let closed = async {
            closing.begun().await;
            Woken::Closing
        };
        let happened = async {
            let (commit, heard) = (Box::pin(commit), Box::pin(heard));
            let news = select(commit, heard).map(|woken| woken.factor_first().0);
            select(news, Box::pin(closed)).await.factor_first().0
        };
        let woken = engine::timeout(clock.as_ref(), HEARTBEAT_MS, happened).await;
        woken.unwrap_or(Woken::Heartbeat)
    }
}

/// Why a wait ended.
enum Woken {
    Commit,
    Heard(Heard),
    Heartbeat,
    Closing,
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
                events.push(told(
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
            let settled = |(call, settled): (CallId, Settled)| match settled {
                // It was told when it finished.
                Settled::Output(_) => None,
                Settled::Skipped(value) => Some(output(call, (*value).clone())),
                Settled::Answered(text) => Some(output(call, json!(text))),
                Settled::Failed(fault) => Some(error(call, &fault)),
                Settled::Rejected(why) | Settled::Declined(why) | Settled::NotRun(why) => {
                    Some(result(call, Err(why.to_string())))
                }
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
    told("tool_result", &ToolResult { call_id: call.to_string(), output, error })
}
