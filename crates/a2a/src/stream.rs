//! A task as a stream of events: the task first, then what happens to it. A stream of a message
//! ends when the task asks its client; that of a subscriber stays.

use super::error::{Result, unsupported};
use super::operations::{Client, SentMessage};
use super::task_stream::TaskStream;
use super::view::Viewer;
use axum::response::Response;
use axum::response::sse::Event;
use edge::problem::{Failure, Result as Answered};
use edge::request::server_state::ServerState;
use edge::request::server_state::StreamPlace;
use edge::stream::{Source, SourceItem, answer, permit};
use serde_json::Value;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::SendMessageRequest;
use wire::a2a::task::{StreamResponse, TaskState};
use wire::a2a::v03::Binding;
use wire::jsonrpc::{self, Id};

/// How a binding writes the events of a stream.
pub(super) trait EventWriter: Send + 'static {
    /// An event as it goes out.
    type Event: Send + 'static;

    /// An event; `is_last` where the stream ends after it, which 0.3 wants to be said.
    fn event(&self, response: &StreamResponse, is_last: bool) -> Self::Event;

    /// The last event of a stream that cannot continue.
    fn error(&self, error: A2aError) -> Self::Event;
}

/// As server-sent events.
#[derive(Clone)]
pub(super) enum SseWriter {
    /// As answers to this request.
    Rpc(Id),
    /// As they are.
    Http,
    /// The same in 0.3.
    OldRpc(Id),
    OldHttp,
}

impl EventWriter for SseWriter {
    type Event = Event;

    fn event(&self, response: &StreamResponse, is_last: bool) -> Event {
        // Plain data: writing it as JSON cannot fail.
        let text = match self {
            Self::Rpc(_) | Self::Http => serde_json::to_string(response).unwrap_or_default(),
            Self::OldRpc(_) => Binding::Rpc.event(response, is_last).to_string(),
            Self::OldHttp => Binding::Rest.event(response, is_last).to_string(),
        };
        Event::default().data(match self {
            Self::Rpc(id) | Self::OldRpc(id) => jsonrpc::result(id, &text),
            Self::Http | Self::OldHttp => text,
        })
    }

    fn error(&self, error: A2aError) -> Event {
        Event::default().data(match self {
            Self::Rpc(id) | Self::OldRpc(id) => jsonrpc::error(Some(id), &error.to_rpc()),
            Self::Http => Value::to_string(&error.to_rest()),
            Self::OldHttp => Value::to_string(&error.to_old_rest()),
        })
    }
}

/// A task that one client follows.
pub(super) struct FollowedTask<W> {
    first: Option<StreamResponse>,
    stream: TaskStream,
    viewer: Viewer,
    written: W,
    extent: Extent,
    _room: tokio::sync::OwnedSemaphorePermit,
}

/// How far a stream goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// It has one message, and nothing after it.
    Alone,
    /// That of a message: until the task ends, or asks its client.
    Sent,
    /// That of a subscriber: until the task ends.
    Subscribed,
}

impl<W: EventWriter> Source for FollowedTask<W> {
    type Event = W::Event;

    async fn first(&mut self, _server: &ServerState) -> Answered<Option<W::Event>> {
        let is_last = self.extent == Extent::Alone;
        Ok(self.first.take().map(|first| self.written.event(&first, is_last)))
    }

    async fn try_next(&mut self, _server: &ServerState) -> Answered<SourceItem<W::Event>> {
        if self.extent == Extent::Alone {
            return Ok(SourceItem::End);
        }
        loop {
            let over = self.stream.task().state.is_over();
            let Some(update) = self.stream.try_next().await? else {
                // A task that was over before the stream began has nothing more to tell.
                return Ok(if over { SourceItem::End } else { SourceItem::Nothing });
            };
            let Some(response) = self.viewer.update(&update).await else { continue };
            let state = match &response {
                StreamResponse::StatusUpdate(update) => update.status.state,
                _ => TaskState::Working,
            };
            let asks = self.extent == Extent::Sent && state == TaskState::InputRequired;
            let is_last = state.is_terminal() || asks;
            let event = self.written.event(&response, is_last);
            return Ok(if is_last { SourceItem::Last(event) } else { SourceItem::Event(event) });
        }
    }

    async fn wait(&mut self) {
        self.stream.wait().await;
    }

    fn broken(&self, _server: &ServerState, failure: Failure) -> W::Event {
        self.written.error(failure.a2a())
    }
}

impl Client {
    /// `SendStreamingMessage`. Its mistakes are reported before the stream begins.
    pub(super) async fn stream(
        &self,
        request: SendMessageRequest,
        written: SseWriter,
    ) -> Result<Response> {
        let followed = self.follow_sent(request, written).await?;
        Ok(answer(self.a2a.server.clone(), followed, self.permit()?))
    }

    /// `SubscribeToTask`.
    pub(super) async fn subscribed(&self, id: &str, written: SseWriter) -> Result<Response> {
        let followed = self.follow(id, written).await?;
        Ok(answer(self.a2a.server.clone(), followed, self.permit()?))
    }

    /// The stream of a message.
    pub(super) async fn follow_sent<W: EventWriter>(
        &self,
        request: SendMessageRequest,
        written: W,
    ) -> Result<FollowedTask<W>> {
        let room = self.room()?;
        let SentMessage { mut stream, viewer, configuration, wants_message } =
            self.taken(request, None).await?;
        let history = super::operations::history(configuration.history_length)?;
        let mut alone = None;
        if wants_message {
            self.settle(&mut stream, &viewer, self.wait()).await?;
            alone = viewer.as_message(stream.task()).await;
        }
        let (first, extent) = match alone {
            Some(message) => (StreamResponse::Message(Box::new(message)), Extent::Alone),
            None => {
                let task = viewer.task(stream.task(), history).await;
                (StreamResponse::Task(Box::new(task)), Extent::Sent)
            }
        };
        let first = Some(first);
        Ok(FollowedTask { first, stream, viewer, written, extent, _room: room })
    }

    /// The stream of a subscriber.
    pub(super) async fn follow<W: EventWriter>(
        &self,
        id: &str,
        written: W,
    ) -> Result<FollowedTask<W>> {
        let room = self.room()?;
        let (stream, viewer) = self.subscribe(id).await?;
        let first = StreamResponse::Task(Box::new(viewer.task(stream.task(), None).await));
        let first = Some(first);
        let extent = Extent::Subscribed;
        Ok(FollowedTask { first, stream, viewer, written, extent, _room: room })
    }

    pub(super) fn room(&self) -> Result<tokio::sync::OwnedSemaphorePermit> {
        if !self.a2a.serving.streaming {
            return Err(unsupported("this server does not stream; send the message, get the task"));
        }
        self.a2a.streams.clone().try_acquire_owned().map_err(|_| {
            let most = self.a2a.serving.limits.a2a_streams_max;
            let why = format!("{most} streams of A2A are open; `a2a_streams_max` in [limits]");
            A2aError::new(ErrorKind::ResourceExhausted, why)
        })
    }

    pub(super) fn permit(&self) -> Result<StreamPlace> {
        permit(&self.a2a.server, &self.caller).map_err(|failure| failure.a2a())
    }
}
