//! Follows a stream of events until it ends: opens it again where it is cut, after the last event
//! that was printed, so that each is printed once.

use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request};
use crate::remote::sse::{REOPEN_PAUSE, REOPENS_MAX, SseStream};
use crate::terminal::output::{Output, one_line, printable};
use kernel::tool::rules::Pattern;
use outbound::sse::Event;
use serde_json::{Map, Value, json};

/// How the events of a stream are printed.
#[derive(Debug, Clone)]
pub(crate) struct PrintOptions {
    /// For people: an event and its id in the stream.
    pub(crate) line: fn(Option<&str>, &Value) -> String,
    /// For programs: whether its id is printed with each event, because nothing else in it says so.
    pub(crate) with_cursor: bool,
    /// Which of them are printed; all where nothing is said.
    pub(crate) only: Option<EventFilter>,
}

/// Events by their names: one that fits is enough.
#[derive(Debug, Clone)]
pub(crate) struct EventFilter {
    /// What fits.
    pub(crate) pattern: Pattern,
    /// The names of an event.
    pub(crate) names: fn(&Value) -> Vec<String>,
}

/// What an event tells, in words on one line. Left out are ids other than those of asks, which a
/// person may answer, and members that say nothing.
pub(crate) fn fact(data: &Value) -> String {
    match data {
        Value::Object(members) => one_line(&words(members)),
        other => one_line(&other.to_string()),
    }
}

fn words(members: &Map<String, Value>) -> String {
    let told: Vec<String> =
        members.iter().filter_map(|(name, value)| member(name, value)).collect();
    told.join(", ")
}

fn member(name: &str, value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Bool(true) => Some(name.to_owned()),
        Value::String(text) if text.is_empty() || is_left_out(text) => None,
        Value::String(text) => Some(format!("{name} {text}")),
        Value::Array(items) if items.is_empty() => None,
        Value::Number(_) | Value::Array(_) => Some(format!("{name} {value}")),
        Value::Object(fields) => match (fields.get("name"), fields.get("message")) {
            (Some(Value::String(fault)), Some(Value::String(message))) => {
                Some(format!("{fault}: {message}"))
            }
            _ => {
                let told = words(fields);
                (!told.is_empty()).then(|| format!("{name}: {told}"))
            }
        },
    }
}

/// Whether a text is an id that no person types, such as `call_` with its digits.
fn is_left_out(text: &str) -> bool {
    text.split_once('_').is_some_and(|(kind, digits)| {
        kind != "ask" && digits.len() == 32 && digits.chars().all(|c| c.is_ascii_hexdigit())
    })
}

impl EventFilter {
    fn fits(&self, event: &Value) -> bool {
        (self.names)(event).iter().any(|name| self.pattern.fits(name))
    }
}

/// Where a tail stands.
struct Tail {
    output: Output,
    look: PrintOptions,
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
    look: PrintOptions,
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
        if tail.cuts > REOPENS_MAX {
            let what = format!("the stream was cut and cannot be opened again: {cut}");
            return Err(Failure::new(Exit::Unreachable, "stream_cut", what)
                .hint("see whether the server still runs; `--after` continues after an event"));
        }
        output.talk(&format!("the stream was cut ({cut}); opening it again"));
        tokio::time::sleep(REOPEN_PAUSE * tail.cuts).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_described_in_words() {
        let call = format!("call_{}", "0af1".repeat(8));
        let ask = format!("ask_{}", "0af1".repeat(8));
        let fault = json!({"name": "HttpStatus", "message": "it answered 503", "passing": true});
        let failed = json!({"call": call, "step": "pay", "how": "failed", "fault": fault});
        assert_eq!(fact(&failed), "step pay, how failed, HttpStatus: it answered 503");
        let opened = json!({"ask": {"id": ask, "kind": "fix", "held": {"rule": "step 1"}},
            "frame": null, "calls": [], "late": false, "tries": 1});
        let told = format!("ask: id {ask}, kind fix, held: rule step 1, tries 1");
        assert_eq!(fact(&opened), told);
        assert_eq!(fact(&json!(null)), "null");
    }
}
