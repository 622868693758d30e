//! `waypost session`: lists, shows, pauses, corrects, copies, cancels and removes sessions.

mod decisions;
mod export;
mod prune;

use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::outcome;
use crate::remote::client::{Client, Request, read};
use crate::remote::id_lookup::{self, SESSIONS as SESSION_IDS};
use crate::remote::suggestions::{self, SESSIONS};
use crate::remote::tail::{self, PrintOptions};
use crate::terminal::output::{Fields, counted, printable};
use crate::terminal::table::{Cell, table_beside};
use clap::{Args, Subcommand};
use decisions::DecidedAsks;
use export::ExportArgs;
use kernel::values::ids::Millis;
use prune::PruneArgs;
use serde_json::{Value, json};
use wire::rest::{Cost, HistoryEntry, Page, RunAnswer, Session};

const EXAMPLES: &str = "\
Examples:
  waypost session ls --status waiting
  waypost session show ses_019a8c41          # the beginning of an id is enough, if it is unique
  waypost session show ada                   # or the key that was given as --session
  waypost session tail ses_..                # follows its events until its run ends
  waypost --json session tail ses_.. | jq .type
  waypost session pause ses_..               # no new step begins until someone continues it
  waypost session continue ses_..
  waypost session retry ses_..               # the step that failed, once more
  waypost session fork ses_.. --at 12        # a copy that continues from its event 12
  waypost session export ses_.. > session.json
  waypost session cancel ses_..
  waypost session rm --last                  # the newest one, if it is over
  waypost session prune --older-than 30d --dry-run
  waypost session prune --older-than 30d     # those that are over and unused since";

/// What `waypost session` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SessionCommand {
    /// List sessions, newest first
    Ls {
        /// Only those whose latest run is: running, waiting, stuck, paused, completed, failed or
        /// cancelled; or those that cannot be read: parked
        #[arg(long)]
        status: Option<String>,
        /// Only those whose latest run is of this plan
        #[arg(long)]
        plan: Option<String>,
        /// How many at most
        #[arg(long, default_value_t = 50, value_parser = crate::commands::limit)]
        limit: usize,
    },
    /// Show one session: where it stands, its context and its history
    Show(Named),
    /// Follow a session's events until its run ends
    Tail {
        #[command(flatten)]
        named: Named,
        /// Begin after this event
        #[arg(long, value_name = "N")]
        after: Option<u64>,
    },
    /// Hold a session's active run: what is under way ends, no new step begins
    Pause(Named),
    /// Continue a paused run
    Continue(Named),
    /// Try the failed step of a session's run again
    Retry {
        #[command(flatten)]
        named: Named,
        /// How many seconds to wait for the run to end or pause again
        #[arg(long, value_name = "SECS", default_value_t = 30, value_parser = super::wait)]
        wait: u64,
    },
    /// Make a session that begins as a copy of another, and continues from there
    Fork {
        #[command(flatten)]
        named: Named,
        /// The last event to copy, as `session tail` numbers them; the newest if absent
        #[arg(long, value_name = "N")]
        at: Option<u64>,
    },
    /// Print a session with its whole journal and history, as JSON
    Export(ExportArgs),
    /// Cancel a session's active run
    Cancel(Named),
    /// Remove one session that is over, with all that is kept of it
    Rm {
        #[command(flatten)]
        named: Named,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove sessions that are over and old; with WAYPOST_ADMIN_KEY where the server has one
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// ses_.., the beginning of one, or the client's own key
    #[arg(required_unless_present = "last", conflicts_with = "last")]
    session: Option<String>,
    /// The newest session
    #[arg(long)]
    last: bool,
}

impl Named {
    /// The name that the server knows.
    async fn resolved(&self, client: &Client) -> Result<String> {
        match &self.session {
            Some(name) => id_lookup::resolve(client, SESSION_IDS, name).await,
            None => id_lookup::newest(client, SESSION_IDS).await,
        }
    }
}

/// Each event says its own place.
const LOOK: PrintOptions = PrintOptions { line, with_cursor: false, only: None };

/// The newest entries of a history; all of them are one `GET .../history` away.
const HISTORY_ITEMS: usize = 20;

/// Runs `waypost session`.
pub(crate) async fn run(command: SessionCommand, context: &Context) -> Result<Exit> {
    let client = context.client().await?;
    match command {
        SessionCommand::Ls { status, plan, limit } => {
            let request = Request::to(&["sessions"]).with("status", status).with("plan", plan);
            list(context, &client.list(request, limit).await?)
        }
        SessionCommand::Prune(args) => prune::run(&args, context, &client).await,
        SessionCommand::Show(named) => {
            show(context, &client, &named.resolved(&client).await?).await
        }
        SessionCommand::Tail { named, after } => {
            let session = find(&client, &named.resolved(&client).await?).await?.id;
            let request = Request::to(&["sessions", &session, "events"]).with("after", after);
            tail::follow(context.output, &client, &request, LOOK).await
        }
        SessionCommand::Pause(named) => move_run(context, &client, &named, "pause").await,
        SessionCommand::Continue(named) => move_run(context, &client, &named, "continue").await,
        SessionCommand::Cancel(named) => move_run(context, &client, &named, "cancel").await,
        SessionCommand::Retry { named, wait } => {
            retry(context, &client, &named.resolved(&client).await?, wait).await
        }
        SessionCommand::Fork { named, at } => {
            fork(context, &client, &named.resolved(&client).await?, at).await
        }
        SessionCommand::Export(args) => export::run(context, &client, &args).await,
        SessionCommand::Rm { named, dry_run } => {
            remove(context, &client, &named.resolved(&client).await?, dry_run).await
        }
    }
}

/// The session of this name; where there is none, the failure names the one that was meant.
async fn find(client: &Client, name: &str) -> Result<Session> {
    read(&session_body(client, name).await?)
}

/// The same as the server sends it.
async fn session_body(client: &Client, name: &str) -> Result<Value> {
    suggestions::get_or_suggest(client, SESSIONS, name).await
}

fn list(context: &Context, body: &Value) -> Result<Exit> {
    let heads = ["session", "status", "plan", "step", "asks", "updated", "key"];
    let none = "no sessions match: a session begins with `waypost run` or `waypost plan run`, and \
                `waypost session prune` removes old ones";
    context.table(body, Listing { noun: "session", heads: &heads, none }, |session: Session| {
        let status = status_word(&session);
        let key = if session.key == session.id { String::new() } else { session.key };
        vec![
            Cell::id(session.id),
            Cell::word(status),
            session.plan.unwrap_or_default().into(),
            session.step.unwrap_or_default().into(),
            Cell::word(session.asks.len().to_string()),
            Cell::time(session.updated_at),
            key.into(),
        ]
    })
}

/// A parked session's run has the status that was recorded last, but nothing of it moves.
fn status_word(session: &Session) -> &'static str {
    if session.parked.is_some() { "parked" } else { session.status.name() }
}

async fn show(context: &Context, client: &Client, id: &str) -> Result<Exit> {
    let body = session_body(client, id).await?;
    let session: Session = read(&body)?;
    let values = client.get(Request::to(&["sessions", id, "context"])).await;
    let values = if_readable(&session, values)?;
    let history = client.list(Request::to(&["sessions", id, "history"]), HISTORY_ITEMS).await;
    let history = if_readable(&session, history)?;
    let decided = DecidedAsks::of(client, &session.id).await?;
    let run = match &session.run {
        Some(run) => if_readable(&session, client.get(Request::to(&["runs", run])).await)?,
        None => Value::Null,
    };
    let document = json!({
        "session": body,
        "cost": run["run"]["cost"],
        "context": values["context"],
        "history": history["items"],
        "acts": decided.acts,
        "decisions": decided.decisions,
    });
    let cost = cost_text(&run["run"]["cost"])?;
    let output = context.output;
    output.either(&document, || {
        let mut fields = fields(session, cost, &values, &history)?;
        fields.add("acts", decided.acts_table());
        fields.add("decisions", decided.decisions_table());
        output.text(&fields.text())
    })
}

fn fields(session: Session, cost: String, values: &Value, history: &Value) -> Result<Fields> {
    let status = status_word(&session);
    let mut fields = Fields::default();
    fields.add("session", session.id);
    fields.add("key", session.key);
    fields.add("space", session.space);
    fields.add("realm", session.realm);
    fields.add("status", status);
    if let Some(parked) = session.parked {
        fields.add("parked", parked.reason);
        fields.add("tried again", parked.until);
    }
    fields.add("run", session.run.unwrap_or_default());
    fields.add("plan", session.plan.unwrap_or_default());
    fields.add("step", session.step.unwrap_or_default());
    if let Some(fault) = session.last_error {
        fields.add("error", format!("{}: {}", fault.name, fault.message));
        fields.add("hint", fault.hint.unwrap_or_default());
    }
    fields.add("asks", session.asks.join("\n"));
    fields.add("cost", cost);
    fields.add("created", session.created_at);
    fields.add("updated", session.updated_at);
    if !values.is_null() {
        fields.add("context", outcome::pretty(&values["context"]));
    }
    if !history.is_null() {
        fields.add("history", history_table(read(history)?));
    }
    Ok(fields)
}

/// What the models of a run took, what that cost and what caches saved; empty where no model was
/// asked.
fn cost_text(cost: &Value) -> Result<String> {
    if cost.is_null() {
        return Ok(String::new());
    }
    let cost: Cost = read(cost)?;
    let Some(turns) = cost.turns else { return Ok(String::new()) };
    let count = |tokens: Option<u64>| tokens.unwrap_or_default();
    let turns = counted(turns, "turn");
    let mut text = format!("{turns}, {} tokens read", count(cost.input_tokens));
    let cache = [(cost.cached_tokens, "from a cache"), (cost.cache_written_tokens, "into one")];
    let cache = cache.iter().filter_map(|(tokens, what)| Some(format!("{} {what}", (*tokens)?)));
    let cache: Vec<String> = cache.collect();
    if !cache.is_empty() {
        text.push_str(&format!(" ({})", cache.join(", ")));
    }
    text.push_str(&format!(", {} written", count(cost.output_tokens)));
    let dollars = |dollars: f64| format!("{dollars:.6}");
    match cost.dollars {
        Some(spent) => text.push_str(&format!(": ${}", dollars(spent))),
        None => text.push_str(": the price is not known"),
    }
    if let Some(saved) = cost.saved_dollars {
        let word = if saved < 0.0 { "more" } else { "less" };
        text.push_str(&format!(", ${} {word} than without a cache", dollars(saved.abs())));
    }
    if let Some(unpriced) = cost.unpriced_turns.filter(|_| cost.dollars.is_some()) {
        text.push_str(&format!(", {unpriced} of the turns without a known price"));
    }
    Ok(text)
}

/// What a session's journal says, or null where it is parked and its journal cannot be read.
fn if_readable(session: &Session, found: Result<Value>) -> Result<Value> {
    match found {
        Err(_) if session.parked.is_some() => Ok(Value::Null),
        found => found,
    }
}

fn history_table(history: Page<HistoryEntry>) -> String {
    if history.items.is_empty() {
        return String::new();
    }
    let rows = history.items.into_iter().map(|entry| {
        let result = match (entry.error, entry.output) {
            (Some(fault), _) => format!("error: {}: {}", fault.name, fault.message),
            (None, output) => output.unwrap_or_default().to_string(),
        };
        vec![entry.finished_at, entry.step, entry.tool, result]
    });
    // The field that it stands in is indented.
    table_beside(2, &["finished", "step", "tool", "result"], rows)
}

/// The run that is not over yet.
async fn active_run(client: &Client, name: &str) -> Result<String> {
    let session = find(client, name).await?;
    let id = session.id;
    let status = session.status;
    session.run.filter(|_| !status.is_over()).ok_or_else(|| {
        let what = format!("{id} has no active run: it is {}", status.name());
        Failure::new(Exit::Failed, "no_active_run", what)
            .hint(format!("`waypost session show {id}` shows what happened"))
    })
}

async fn retry(context: &Context, client: &Client, name: &str, wait: u64) -> Result<Exit> {
    let run = active_run(client, name).await?;
    let request = Request::to(&["runs", &run, "retry"]).waiting(wait);
    let nothing = json!({});
    context.leaves_running(name);
    let posted = context.progress().during("waiting for the run", client.post(request, &nothing));
    let body = posted.await?;
    let answer: RunAnswer = read(&body)?;
    outcome::tell(context, &body, &answer.run)
}

async fn fork(context: &Context, client: &Client, name: &str, at: Option<u64>) -> Result<Exit> {
    let session = find(client, name).await?.id;
    let body = at.map_or_else(|| json!({}), |at| json!({"at": at}));
    let made = client.post(Request::to(&["sessions", &session, "fork"]), &body).await?;
    context.show(&made, |made: Session| {
        let told = format!("a copy of {session}; `waypost session show {}` shows it", made.id);
        context.output.text(&made.id)?;
        context.output.talk(&told);
        Ok(())
    })
}

/// Does something to a session's active run: `pause`, `continue`, `cancel`.
async fn move_run(context: &Context, client: &Client, named: &Named, what: &str) -> Result<Exit> {
    let run = active_run(client, &named.resolved(client).await?).await?;
    let body = client.post(Request::to(&["runs", &run, what]), &json!({})).await?;
    context.show(&body, |answer: RunAnswer| {
        context.output.text(&format!("{run} {}", answer.run.status.name()))?;
        // What a run that ends leaves behind: writes that no one knows the outcome of.
        if let Some(hint) = answer.run.last_error.and_then(|fault| fault.hint) {
            context.output.talk(&format!("hint: {}", printable(&hint)));
        }
        Ok(())
    })
}

async fn remove(context: &Context, client: &Client, name: &str, dry_run: bool) -> Result<Exit> {
    let session = find(client, name).await?;
    let id = &session.id;
    let status = status_word(&session);
    if !dry_run {
        client.delete(Request::to(&["sessions", id])).await?;
        let document = json!({"session": id, "removed": true});
        return context.output.done(&document, &format!("removed {id}"));
    }
    let is_over = session.run.is_none() || session.status.is_over();
    let document = json!({"dryRun": true, "session": id, "removed": is_over});
    let told = if is_over {
        format!("{id} ({status}) would be removed, with its journal and history; nothing was")
    } else {
        format!("{id} would stay: it is {status}; `waypost session cancel {id}` ends its run")
    };
    context.output.data(&document, &told)
}

/// `12  2026-11-15T02:17:25.123Z  call.finished  {..}`: enough to follow; `--json` has all of it.
fn line(_id: Option<&str>, event: &Value) -> String {
    let at = event["at"].as_i64().map(|at| Millis(at).rfc3339()).unwrap_or_default();
    let kind = event["type"].as_str().unwrap_or_default();
    let data = tail::fact(&event["data"]);
    let seq = event["seq"].to_string();
    format!("{seq:>5}  {at}  {kind:16}  {data}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_run_is_one_line() {
        let told = |cost: Value| cost_text(&cost).unwrap();
        assert_eq!(told(Value::Null), "");
        assert_eq!(told(json!({})), "", "no model was asked");
        let plain = json!({"turns": 1, "inputTokens": 10, "outputTokens": 2, "dollars": 0.0031});
        assert_eq!(told(plain), "1 turn, 10 tokens read, 2 written: $0.003100");
        let cached = json!({"turns": 2, "inputTokens": 3000, "cachedTokens": 1024,
            "cacheWrittenTokens": 1500, "outputTokens": 86, "dollars": 0.5,
            "savedDollars": -0.25, "unpricedTurns": 1});
        assert_eq!(
            told(cached),
            "2 turns, 3000 tokens read (1024 from a cache, 1500 into one), 86 written: $0.500000, \
             $0.250000 more than without a cache, 1 of the turns without a known price"
        );
        let unpriced = json!({"turns": 1, "inputTokens": 1, "outputTokens": 1, "unpricedTurns": 1});
        assert_eq!(told(unpriced), "1 turn, 1 tokens read, 1 written: the price is not known");
    }
}
