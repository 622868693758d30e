//! Follows a stream of events until it ends: opens it again where it is cut, after the last event
//! that was printed, so that each is printed once.

use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request};
use crate::remote::sse::SseStream;
use crate::terminal::output::{Output, printable};
use kernel::tool::rules::Pattern;
use outbound::sse::Event;
use serde_json::{Value, json};
use std::time::Duration;

/// How often a cut stream is opened again before we give up; one that brought events counts again.
const RECONNECTS_MAX: u32 = 5;
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// How the events of a stream are printed.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// For people: an event and its id in the stream.
    pub(crate) line: fn(Option<&str>, &Value) -> String,
    /// For programs: whether its id is printed with each event, because nothing else in it says so.
    pub(crate) with_cursor: bool,
    /// Which of them are printed; all where nothing is said.
    pub(crate) only: Option<Only>,
}

/// Events by their names: one that fits is enough.
#[derive(Debug, Clone)]
pub(crate) struct Only {
    /// What fits.
    pub(crate) pattern: Pattern,
    /// The names of an event.
    pub(crate) names: fn(&Value) -> Vec<String>,
}

impl Only {
    fn fits(&self, event: &Value) -> bool {
        (self.names)(event).iter().any(|name| self.pattern.fits(name))
    }
}

/// Where a tail stands.
struct Tail {
    output: Output,
    look: Look,
    /// The last event that was printed.
    last: Option<String>,
    /// Whether a stream was ever open: a server that was there is worth waiting for.
    opened: bool,
    /// Whether the stream's own end came.
    ended: bool,
    /// Cuts since the last event.
    cuts: u32,
}

/// Prints the events of this stream until its own end.
pub(crate) async fn follow(
    output: Output,
    client: &Client,
    request: &Request<'_>,
    look: Look,
) -> Result<Exit> {
    let mut tail = Tail { output, look, last: None, opened: false, ended: false, cuts: 0 };
    loop {
        let opened = client.stream(request.clone(), tail.last.as_deref()).await;
        let cut = match opened {
            Ok(response) => tail.follow(SseStream::new(response)).await?,
            Err(failure) if failure.exit == Exit::Unreachable && tail.opened => failure.message,
            Err(failure) => return Err(failure),
        };
        if tail.ended {
            return Ok(Exit::Ok);
        }
        tail.cuts += 1;
        if tail.cuts > RECONNECTS_MAX {
            let what = format!("the stream was cut and cannot be opened again: {cut}");
            return Err(Failure::new(Exit::Unreachable, "stream_cut", what)
                .hint("see whether the server still runs; `--after` continues after an event"));
        }
        output.talk(&format!("the stream was cut ({cut}); opening it again"));
        tokio::time::sleep(RECONNECT_PAUSE * tail.cuts).await;
    }
}

impl Tail {
    /// Prints events until the stream ends or is cut; then why.
    async fn follow(&mut self, mut events: SseStream) -> Result<String> {
        self.opened = true;
        while !self.ended {
            match events.next().await? {
                Ok(event) => self.take(event)?,
                Err(why) => return Ok(why),
            }
        }
        Ok(String::new())
    }

    fn take(&mut self, event: Event) -> Result<()> {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        match event.kind() {
            // It comes again whenever the stream is opened again.
            "snapshot" if self.last.is_some() => Ok(()),
            "error" => {
                let why = data["detail"].as_str().or(data["code"].as_str()).unwrap_or("no reason");
                let what = format!("the server ended the stream: {}", printable(why));
                Err(Failure::new(Exit::Upstream, "stream_ended", what))
            }
            "snapshot" | "end" => {
                self.ended = event.kind() == "end";
                self.frame(event.kind(), &data)
            }
            _ => {
                // Only now: a stream that is cut again and again before it brings anything is dead.
                self.cuts = 0;
                self.last = event.id.or(self.last.take());
                match &self.look.only {
                    Some(only) if !only.fits(&data) => Ok(()),
                    Some(_) | None => self.print(data),
                }
            }
        }
    }

    /// Where things stand at the begin and at the end: data for programs, talk for people.
    fn frame(&self, name: &str, data: &Value) -> Result<()> {
        if self.output.is_json() {
            return self.output.document(&json!({"type": name, "data": data}));
        }
        let status = data["status"].as_str().unwrap_or_default();
        let told = match (data["id"].as_str(), data["cursor"].as_str()) {
            (Some(id), _) => format!("{id} is {status}"),
            (None, Some(cursor)) => format!("what is new comes after {cursor}"),
            (None, None) => format!("the run is over: {status}"),
        };
        self.output.talk(&told);
        Ok(())
    }

    fn print(&self, mut event: Value) -> Result<()> {
        let id = self.last.as_deref();
        if !self.output.is_json() {
            return self.output.text(&(self.look.line)(id, &event));
        }
        if self.look.with_cursor
            && let Some(fields) = event.as_object_mut()
        {
            fields.insert("cursor".to_owned(), json!(id));
        }
        self.output.document(&event)
    }
}
