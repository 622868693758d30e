//! `tasks/sendSubscribe`: all that happened to a task from its start, then what happens to it.

use super::super::error::{Result, refused_task};
use super::super::operations::Client;
use super::super::task_stream::TaskStream;
use super::super::view::Viewer;
use super::encoder::TaskEncoder;
use super::progress::Frame;
use axum::response::Response;
use axum::response::sse::Event;
use edge::problem::{Failure, Result as Answered};
use edge::request::server_state::ServerState;
use edge::stream::{Source, SourceItem, answer};
use serde_json::json;
use std::collections::VecDeque;
use tokio::sync::OwnedSemaphorePermit;

struct FollowedTask {
    stream: TaskStream,
    viewer: Viewer,
    teller: TaskEncoder,
    /// Events that are not sent yet.
    frames: VecDeque<Frame>,
    _room: OwnedSemaphorePermit,
}

fn written(frame: &Frame) -> Event {
    Event::default().event(frame.name).data(frame.data.to_string())
}

impl Source for FollowedTask {
    type Event = Event;

    async fn first(&mut self, _server: &ServerState) -> Answered<Option<Event>> {
        Ok(self.teller.first().as_ref().map(written))
    }

    async fn try_next(&mut self, _server: &ServerState) -> Answered<SourceItem> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                let event = written(&frame);
                return Ok(if frame.is_last {
                    SourceItem::Last(event)
                } else {
                    SourceItem::Event(event)
                });
            }
            let Some(update) = self.stream.try_next().await? else {
                // Events of a run that is over may be gone: then no end comes any more.
                return Ok(match self.stream.run().row.status.is_over() {
                    true => SourceItem::Last(Event::default().comment("over")),
                    false => SourceItem::Nothing,
                });
            };
            let at = self.stream.task().changed_at;
            let frames = self.teller.told(&self.viewer, &update, at).await;
            self.frames.extend(frames);
        }
    }

    async fn wait(&mut self) {
        self.stream.wait().await;
    }

    fn broken(&self, _server: &ServerState, failure: Failure) -> Event {
        let data = json!({"error": failure.code(), "message": failure.message()});
        Event::default().event("error").data(data.to_string())
    }
}

impl Client {
    /// `tasks/sendSubscribe`. A task that is over is reported from its start to its end.
    pub(super) async fn vault_subscribe(&self, id: &str) -> Result<Response> {
        let room = self.room()?;
        let own = self.own(id).await?;
        let engine = &self.a2a.server.engine;
        let found = TaskStream::replay(engine, &self.caller, own.row.id).await;
        let stream = found.map_err(|refusal| refused_task(refusal, id))?;
        let viewer = self.viewer(stream.run(), &[]);
        let started_at = stream.run().row.started_at;
        let teller = TaskEncoder::new(&viewer, started_at);
        let frames = VecDeque::new();
        let followed = FollowedTask { stream, viewer, teller, frames, _room: room };
        Ok(answer(self.a2a.server.clone(), followed, self.permit()?))
    }
}
