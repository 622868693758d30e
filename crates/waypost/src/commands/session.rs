//! `waypost session`: what runs, what it did, and how to stop it.

use crate::client::{Client, Request, read};
use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::outcome;
use crate::output::{Fields, Output, Table, one_line, printable};
use crate::sse::{SseEvent, SseReader};
use clap::{Args, Subcommand};
use kernel::ids::Millis;
use serde_json::{Value, json};
use std::time::Duration;
use wire::rest::{HistoryEntry, Page, RunAnswer, Session};

const EXAMPLES: &str = "\
Examples:
  waypost session ls --status waiting
  waypost session show ses_..                # or the key that was given as --session
  waypost session tail ses_..                # follows its events until its run ends
  waypost --json session tail ses_.. | jq .type
  waypost session cancel ses_..";

/// What `waypost session` takes.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    /// List sessions, newest first
    Ls {
        /// Only those whose latest run is: running, waiting, stuck, paused, completed, failed or
        /// cancelled
        #[arg(long)]
        status: Option<String>,
        /// Only those whose latest run is of this plan
        #[arg(long)]
        plan: Option<String>,
        /// How many at most
        #[arg(long, default_value_t = 50, value_parser = super::limit)]
        limit: usize,
    },
    /// Show one session: where it stands, its context and its history
    Show {
        /// ses_.. or the client's own key
        session: String,
    },
    /// Follow a session's events until its run ends
    Tail {
        /// ses_.. or the client's own key
        session: String,
        /// Begin after this event
        #[arg(long, value_name = "N")]
        after: Option<u64>,
    },
    /// Cancel a session's active run
    Cancel {
        /// ses_.. or the client's own key
        session: String,
    },
}

/// The newest entries of a history; all of them are one `GET .../history` away.
const HISTORY_ITEMS: usize = 20;

/// Runs `waypost session`.
pub(crate) async fn run(args: SessionArgs, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let output = context.output;
    match args.command {
        SessionCommand::Ls { status, plan, limit } => {
            let request = Request::to(&["sessions"]).with("status", status).with("plan", plan);
            list(output, &client.list(request, limit).await?)
        }
        SessionCommand::Show { session } => show(output, &client, &session).await,
        SessionCommand::Tail { session, after } => tail(output, &client, &session, after).await,
        SessionCommand::Cancel { session } => cancel(output, &client, &session).await,
    }
}

fn list(output: Output, body: &Value) -> Result<Exit, Failure> {
    if output.is_json() {
        output.document(body)?;
        return Ok(Exit::Ok);
    }
    let page: Page<Session> = read(body)?;
    let mut table = Table::new(&["session", "status", "plan", "step", "asks", "updated", "key"]);
    for session in page.items {
        let key = if session.key == session.id { String::new() } else { session.key };
        table.row(vec![
            session.id,
            session.status.name().to_owned(),
            session.plan.unwrap_or_default(),
            session.step.unwrap_or_default(),
            session.asks.len().to_string(),
            session.updated_at,
            key,
        ]);
    }
    output.text(&table.text())?;
    Ok(Exit::Ok)
}

async fn show(output: Output, client: &Client, id: &str) -> Result<Exit, Failure> {
    let body = client.get(Request::to(&["sessions", id])).await?;
    let context = client.get(Request::to(&["sessions", id, "context"])).await?;
    let history = client.list(Request::to(&["sessions", id, "history"]), HISTORY_ITEMS).await?;
    if output.is_json() {
        output.document(&json!({
            "session": body,
            "context": context["context"],
            "history": history["items"],
        }))?;
        return Ok(Exit::Ok);
    }
    let session: Session = read(&body)?;
    let mut fields = Fields::default();
    fields.add("session", session.id);
    fields.add("key", session.key);
    fields.add("space", session.space);
    fields.add("realm", session.realm);
    fields.add("status", session.status.name());
    fields.add("run", session.run.unwrap_or_default());
    fields.add("plan", session.plan.unwrap_or_default());
    fields.add("step", session.step.unwrap_or_default());
    if let Some(fault) = session.last_error {
        fields.add("error", format!("{}: {}", fault.name, fault.message));
    }
    fields.add("asks", session.asks.join("\n"));
    fields.add("created", session.created_at);
    fields.add("updated", session.updated_at);
    fields.add("context", outcome::pretty(&context["context"]));
    fields.add("history", history_table(read(&history)?));
    output.text(&fields.text())?;
    Ok(Exit::Ok)
}

fn history_table(history: Page<HistoryEntry>) -> String {
    if history.items.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["finished", "step", "tool", "result"]);
    for entry in history.items {
        let result = match (entry.error, entry.output) {
            (Some(fault), _) => format!("error: {}: {}", fault.name, fault.message),
            (None, output) => output.unwrap_or_default().to_string(),
        };
        table.row(vec![entry.finished_at, entry.step, entry.tool, result]);
    }
    table.text()
}

async fn cancel(output: Output, client: &Client, id: &str) -> Result<Exit, Failure> {
    let session: Session = read(&client.get(Request::to(&["sessions", id])).await?)?;
    let run = session.run.filter(|_| !session.status.is_over());
    let Some(run) = run else {
        let status = session.status.name();
        let what = format!("{} has no active run: it is {status}", session.id);
        return Err(Failure::new(Exit::Failed, "no_active_run", what));
    };
    let body = client.post(Request::to(&["runs", &run, "cancel"]), &json!({})).await?;
    if output.is_json() {
        output.document(&body)?;
        return Ok(Exit::Ok);
    }
    let answer: RunAnswer = read(&body)?;
    output.text(&format!("{run} {}", answer.run.status.name()))?;
    Ok(Exit::Ok)
}

/// How often a cut stream is opened again before we give up; one that brought events counts anew.
const RECONNECTS_MAX: u32 = 5;
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// The server says something every 15 seconds; silence beyond this is a dead connection.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);

/// Where a tail stands.
struct Tail {
    output: Output,
    /// The last event that was printed.
    last: Option<String>,
    /// Whether a stream was ever open: a server that was there is worth waiting for.
    opened: bool,
    /// Whether the stream's own end came.
    ended: bool,
    /// Cuts since the last event.
    cuts: u32,
}

async fn tail(
    output: Output,
    client: &Client,
    id: &str,
    after: Option<u64>,
) -> Result<Exit, Failure> {
    let mut tail = Tail { output, last: None, opened: false, ended: false, cuts: 0 };
    loop {
        let request = Request::to(&["sessions", id, "events"]).with("after", after);
        let opened = client.stream(request, tail.last.as_deref()).await;
        let cut = match opened {
            Ok(response) => tail.follow(response).await?,
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
                .hint("see whether the server still runs; `--after N` goes on after event N"));
        }
        output.talk(&format!("the stream was cut ({cut}); opening it again"));
        tokio::time::sleep(RECONNECT_PAUSE * tail.cuts).await;
    }
}

impl Tail {
    /// Prints events until the stream ends or is cut; then why.
    async fn follow(&mut self, mut response: reqwest::Response) -> Result<String, Failure> {
        self.opened = true;
        let mut reader = SseReader::default();
        loop {
            let chunk = match tokio::time::timeout(SILENCE_LIMIT, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok("the server closed it".to_owned()),
                Ok(Err(error)) => return Ok(error.to_string()),
                Err(_) => return Ok(format!("{} s of silence", SILENCE_LIMIT.as_secs())),
            };
            let Some(events) = reader.read(&chunk) else {
                return Err(Failure::new(Exit::Upstream, "event", "an event is too large"));
            };
            for event in events {
                self.take(event)?;
                if self.ended {
                    return Ok(String::new());
                }
            }
        }
    }

    fn take(&mut self, event: SseEvent) -> Result<(), Failure> {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        match event.name.as_str() {
            // It comes again whenever the stream is opened again.
            "snapshot" if self.last.is_some() => Ok(()),
            "error" => {
                let why = data["detail"].as_str().or(data["code"].as_str()).unwrap_or("no reason");
                let what = format!("the server ended the stream: {}", printable(why));
                Err(Failure::new(Exit::Upstream, "stream_ended", what))
            }
            "snapshot" | "end" => {
                self.ended = event.name == "end";
                self.frame(&event.name, &data)
            }
            _ => {
                // Only now: a stream that is cut again and again before it brings anything is dead.
                self.cuts = 0;
                self.last = event.id.or(self.last.take());
                self.print(&data)
            }
        }
    }

    /// Where the session stands at the begin and at the end: data for programs, talk for people.
    fn frame(&self, name: &str, data: &Value) -> Result<(), Failure> {
        if self.output.is_json() {
            return self.output.document(&json!({"type": name, "data": data}));
        }
        let status = data["status"].as_str().unwrap_or_default();
        match data["id"].as_str() {
            Some(id) => self.output.talk(&format!("{id} is {status}")),
            None => self.output.talk(&format!("the run is over: {status}")),
        }
        Ok(())
    }

    fn print(&self, event: &Value) -> Result<(), Failure> {
        if self.output.is_json() {
            return self.output.document(event);
        }
        self.output.text(&line(event))
    }
}

/// `12  2026-11-15T02:17:25.123Z  call.finished  {..}`: enough to follow; `--json` has all of it.
fn line(event: &Value) -> String {
    let at = event["at"].as_i64().map(|at| Millis(at).rfc3339()).unwrap_or_default();
    let kind = event["type"].as_str().unwrap_or_default();
    let data = one_line(&event["data"].to_string());
    let seq = event["seq"].to_string();
    format!("{seq:>5}  {at}  {kind:16}  {data}")
}
