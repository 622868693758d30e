//! A task as a stream of events: the task first, then what happens to it. A stream of a message
//! ends when the task asks its client; that of a subscriber stays.

use super::error::{Result, failed};
use super::operations::{Client, Sent};
use super::view::Viewer;
use crate::http::streams::stream::{Look, Source, answer, permit};
use crate::problem::{Failure, Result as Answered};
use crate::request::doors::{Doors, StreamPlace};
use axum::response::Response;
use axum::response::sse::Event;
use engine::TaskStream;
use serde_json::Value;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::SendMessageRequest;
use wire::a2a::task::{StreamResponse, TaskState};
use wire::jsonrpc::{self, Id};

/// How a binding writes the events of a stream.
#[derive(Clone)]
pub(super) enum Written {
    /// As answers to this request.
    Rpc(Id),
    /// As they are.
    Http,
}

impl Written {
    fn event(&self, response: &StreamResponse) -> Event {
        // Plain data: writing it as JSON cannot fail.
        let text = serde_json::to_string(response).unwrap_or_default();
        Event::default().data(match self {
            Self::Rpc(id) => jsonrpc::result(id, &text),
            Self::Http => text,
        })
    }

    fn error(&self, error: &A2aError) -> Event {
        Event::default().data(match self {
            Self::Rpc(id) => jsonrpc::error(Some(id), &error.to_rpc()),
            Self::Http => Value::to_string(&error.to_rest()),
        })
    }
}

struct Task {
    first: Option<StreamResponse>,
    stream: TaskStream,
    viewer: Viewer,
    written: Written,
    /// Whether the stream is that of a message.
    is_sent: bool,
    _room: tokio::sync::OwnedSemaphorePermit,
}

impl Source for Task {
    async fn first(&mut self, _doors: &Doors) -> Answered<Option<Event>> {
        Ok(self.first.take().map(|first| self.written.event(&first)))
    }

    async fn look(&mut self, _doors: &Doors) -> Answered<Look> {
        loop {
            let over = self.stream.task().state.is_over();
            let Some(update) = self.stream.look().await? else {
                // A task that was over before the stream began has nothing more to tell.
                return Ok(match over {
                    true => Look::Last(Event::default().comment("over")),
                    false => Look::Nothing,
                });
            };
            let Some(response) = self.viewer.update(&update).await else { continue };
            let event = self.written.event(&response);
            let state = match &response {
                StreamResponse::StatusUpdate(update) => update.status.state,
                _ => TaskState::Working,
            };
            let is_last = state.is_terminal() || self.is_sent && state == TaskState::InputRequired;
            return Ok(if is_last { Look::Last(event) } else { Look::Event(event) });
        }
    }

    async fn woken(&mut self) {
        self.stream.woken().await;
    }

    fn broken(&self, _doors: &Doors, failure: Failure) -> Event {
        self.written.error(&failed(&failure))
    }
}

/// A lone message, and nothing after it.
struct Lone {
    message: Option<Event>,
}

impl Source for Lone {
    async fn first(&mut self, _doors: &Doors) -> Answered<Option<Event>> {
        Ok(None)
    }

    async fn look(&mut self, _doors: &Doors) -> Answered<Look> {
        Ok(match self.message.take() {
            Some(message) => Look::Last(message),
            None => Look::Nothing,
        })
    }

    async fn woken(&mut self) {}
}

impl Client {
    /// `SendStreamingMessage`. What is wrong with it is told before the stream begins.
    pub(super) async fn stream(
        &self,
        request: SendMessageRequest,
        written: Written,
    ) -> Result<Response> {
        let room = self.room()?;
        let Sent { mut stream, viewer, configuration, wants_message } = self.taken(request).await?;
        let history = super::operations::history(configuration.history_length)?;
        if wants_message {
            self.settle(&mut stream, &viewer).await?;
            if let Some(message) = viewer.as_message(stream.task()).await {
                let message = StreamResponse::Message(Box::new(message));
                let lone = Lone { message: Some(written.event(&message)) };
                return Ok(answer(self.doors.clone(), lone, self.permit()?));
            }
        }
        let first = StreamResponse::Task(Box::new(viewer.task(stream.task(), history).await));
        let first = Some(first);
        let task = Task { first, stream, viewer, written, is_sent: true, _room: room };
        Ok(answer(self.doors.clone(), task, self.permit()?))
    }

    /// `SubscribeToTask`.
    pub(super) async fn subscribed(&self, id: &str, written: Written) -> Result<Response> {
        let room = self.room()?;
        let (stream, viewer) = self.subscribe(id).await?;
        let first = StreamResponse::Task(Box::new(viewer.task(stream.task(), None).await));
        let first = Some(first);
        let task = Task { first, stream, viewer, written, is_sent: false, _room: room };
        Ok(answer(self.doors.clone(), task, self.permit()?))
    }

    fn room(&self) -> Result<tokio::sync::OwnedSemaphorePermit> {
        self.doors.a2a_streams.clone().try_acquire_owned().map_err(|_| {
            let most = self.doors.limits().a2a_streams_max;
            let why = format!("{most} streams of A2A are open; `a2a_streams_max` in [limits]");
            A2aError::new(ErrorKind::ResourceExhausted, why)
        })
    }

    fn permit(&self) -> Result<StreamPlace> {
        permit(&self.doors, &self.caller).map_err(|failure| failed(&failure))
    }
}
