//! `waypost events`: follows events of all sessions, lists sinks, and shows their deliveries.

use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request, read};
use crate::remote::suggestions::{self, SINKS};
use crate::remote::tail::{self, EventFilter, PrintOptions};
use crate::terminal::output::{counted, one_line};
use crate::terminal::table::Cell;
use clap::Subcommand;
use kernel::tool::rules::Pattern;
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use wire::rest::{Delivery, DeliveryStatus, Sink};

const EXAMPLES: &str = "\
Examples:
  waypost events tail                      # all that is kept, then what happens, until Ctrl-C
  waypost events tail --after wTMJAS...    # continues after an event
  waypost events tail --type 'run.*'       # or a type that was published: TradeRepaired
  waypost --json events tail | jq -r '[.cursor, .session, .event.type] | @tsv'
  waypost events sinks                     # where events go, and how far each sink came
  waypost events deliveries hook --status failed
  waypost events resend hook ses_...12     # an event that failed, once more
  waypost events resume hook               # a sink whose receiver said that it is gone
  waypost events forget hook               # a sink that is not configured any more";

/// What `waypost events` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum EventsCommand {
    /// Follow the events of all sessions; it ends with Ctrl-C
    Tail {
        /// Begin after this event: a cursor that was printed before
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
        /// Only events of this type, in the journal or as sinks receive it; `*` stands for any
        /// characters
        #[arg(long = "type", value_name = "PATTERN", value_parser = pattern)]
        kind: Option<Pattern>,
    },
    /// List where events go, and how far each sink came
    #[command(alias = "ls")]
    Sinks,
    /// List how events got to a sink, newest first
    Deliveries {
        /// The sink's name
        sink: String,
        /// Only those that are: retrying, delivered or failed
        #[arg(long)]
        status: Option<String>,
        /// How many at most
        #[arg(long, default_value_t = 50, value_parser = super::limit)]
        limit: usize,
    },
    /// Send an event to a sink once more; with WAYPOST_ADMIN_KEY where the server has one
    Resend {
        /// The sink's name
        sink: String,
        /// The event's id, as `waypost events deliveries` lists it
        event: String,
    },
    /// Resume a sink that is gone; with WAYPOST_ADMIN_KEY where the server has one
    Resume {
        /// The sink's name
        sink: String,
    },
    /// Forget an unconfigured sink; with WAYPOST_ADMIN_KEY where the server has one
    #[command(alias = "rm")]
    Forget {
        /// The sink's name
        sink: String,
        /// Only say what would be forgotten
        #[arg(long)]
        dry_run: bool,
    },
}

/// How many seconds a receiver may take beyond the usual.
const RESEND_SECONDS: u64 = 60;

/// Runs `waypost events`.
pub(crate) async fn run(command: EventsCommand, context: &Context) -> Result<Exit> {
    let client = context.client().await?;
    match command {
        EventsCommand::Tail { after, kind } => {
            let request = Request::to(&["events"]).with("after", after);
            let only = kind.map(|pattern| EventFilter { pattern, names });
            let look = PrintOptions { line, with_cursor: true, only };
            tail::follow(context.output, &client, &request, look).await
        }
        EventsCommand::Sinks => sinks(context, &client).await,
        EventsCommand::Deliveries { sink, status, limit } => {
            let request = Request::to(&["sinks", &sink, "deliveries"]).with("status", status);
            let asked = client.list(request, limit);
            deliveries(context, &suggestions::or_suggest(&client, SINKS, &sink, asked).await?)
        }
        EventsCommand::Resend { sink, event } => resend(context, &client, &sink, &event).await,
        EventsCommand::Resume { sink } => resume(context, &client, &sink).await,
        EventsCommand::Forget { sink, dry_run: false } => forget(context, &client, &sink).await,
        EventsCommand::Forget { sink, dry_run: true } => {
            would_forget(context, &client, &sink).await
        }
    }
}

async fn sinks(context: &Context, client: &Client) -> Result<Exit> {
    let body = client.list(Request::to(&["sinks"]), super::LIST_ITEMS_MAX).await?;
    let heads = [
        "name", "type", "status", "lag", "delivered", "retrying", "failed", "target", "last error",
    ];
    let none = "no events go out: `[events.sinks.<name>]` in waypost.toml adds a sink";
    context.table(&body, Listing { noun: "sink", heads: &heads, none }, |sink: Sink| {
        vec![
            sink.name.into(),
            Cell::word(sink.kind),
            Cell::word(sink.status.name()),
            Cell::word(sink.lag.to_string()),
            Cell::word(sink.delivered.to_string()),
            Cell::word(sink.retrying.to_string()),
            Cell::word(sink.failed.to_string()),
            sink.target.unwrap_or_else(|| "-".to_owned()).into(),
            sink.last_error.unwrap_or_default().into(),
        ]
    })
}

fn deliveries(context: &Context, body: &Value) -> Result<Exit> {
    let heads = ["event", "type", "status", "tried", "last", "next", "code", "error"];
    let none = "no deliveries match: webhooks have a line for each delivery, other sinks for those \
                that fail";
    let listing = Listing { noun: "delivery", heads: &heads, none };
    context.table(body, listing, |delivery: Delivery| {
        let code = delivery.code.map(|code| code.to_string());
        vec![
            Cell::id(delivery.event),
            delivery.kind.into(),
            Cell::word(delivery.status.name()),
            Cell::word(delivery.attempts.to_string()),
            Cell::time(delivery.last_at),
            Cell::time(delivery.next_at.unwrap_or_else(|| "-".to_owned())),
            Cell::word(code.unwrap_or_else(|| "-".to_owned())),
            delivery.error.unwrap_or_default().into(),
        ]
    })
}

async fn resend(context: &Context, client: &Client, sink: &str, event: &str) -> Result<Exit> {
    let request = Request::to(&["sinks", sink, "deliveries", event, "resend"]);
    let request = request.keyed(context.admin_key()?).taking(RESEND_SECONDS);
    let nothing = json!({});
    let body = suggestions::or_suggest(client, SINKS, sink, client.post(request, &nothing)).await?;
    let delivery: Delivery = read(&body)?;
    let is_over_there = delivery.status == DeliveryStatus::Delivered;
    let event = &delivery.event;
    let status = delivery.status.name();
    let why = delivery.error.filter(|_| !is_over_there);
    let why = why.map(|why| format!(": {}", one_line(&why))).unwrap_or_default();
    context.output.data(&body, &format!("{status}  {event}{why}"))?;
    Ok(if is_over_there { Exit::Ok } else { Exit::Failed })
}

async fn resume(context: &Context, client: &Client, sink: &str) -> Result<Exit> {
    let request = Request::to(&["sinks", sink, "resume"]).keyed(context.admin_key()?);
    let nothing = json!({});
    let body = suggestions::or_suggest(client, SINKS, sink, client.post(request, &nothing)).await?;
    context.show(&body, |sink: Sink| {
        context.output.text(&format!("{}  {}", sink.status.name(), sink.name))
    })
}

async fn forget(context: &Context, client: &Client, sink: &str) -> Result<Exit> {
    let request = Request::to(&["sinks", sink]).keyed(context.admin_key()?);
    suggestions::or_suggest(client, SINKS, sink, client.delete(request)).await?;
    let document = json!({"name": sink, "forgotten": true});
    context.output.done(&document, &format!("the sink `{sink}` is forgotten"))
}

async fn would_forget(context: &Context, client: &Client, name: &str) -> Result<Exit> {
    let sinks: Vec<Sink> = client.items(Request::to(&["sinks"]), super::LIST_ITEMS_MAX).await?;
    let Some(sink) = sinks.into_iter().find(|sink| sink.name == name) else {
        let what = format!("there is no sink `{name}`");
        return Err(Failure::new(Exit::Failed, "not_found", what)
            .hint("`waypost events sinks` lists the sinks"));
    };
    let told = format!(
        "the sink `{name}` ({}) would be forgotten, with {} that it has not received and its \
         log of deliveries; the events stay in their sessions; nothing was changed",
        sink.status.name(),
        counted(sink.lag, "event")
    );
    context.output.data(&json!({"dryRun": true, "name": name}), &told)
}

/// Reads `--type`.
fn pattern(text: &str) -> Result<Pattern, String> {
    let expected = "expected a type, with `*` for any characters, such as run.* or TradeRepaired";
    Pattern::new(text).map_err(|_| expected.to_owned())
}

/// What an event is called: in the journal, as a sink receives it, and what was published with it.
fn names(told: &Value) -> Vec<String> {
    let event = &told["event"];
    let kind = event["type"].as_str().unwrap_or_default();
    let data = &event["data"];
    // The journal says how a run ended beside the type, a sink gets it in the type.
    let told_as = match data["outcome"]["how"].as_str() {
        Some(how) if kind == "run.ended" => format!("waypost.run.{how}.v1"),
        _ => format!("waypost.{kind}.v1"),
    };
    let mut names = vec![kind.to_owned(), told_as];
    let published = &data["published"];
    let published = published.as_array().map_or(std::slice::from_ref(published), Vec::as_slice);
    let types = published.iter().filter_map(|published| published["event"]["type"].as_str());
    names.extend(types.map(str::to_owned));
    names
}

/// `wTM..  2026-11-15T02:17:25.123Z  ses_..  call.finished  {..}`; `--json` has all of it.
fn line(cursor: Option<&str>, told: &Value) -> String {
    let event = &told["event"];
    let at = event["at"].as_i64().map(|at| Millis(at).rfc3339()).unwrap_or_default();
    let session = told["session"].as_str().unwrap_or_default();
    let kind = event["type"].as_str().unwrap_or_default();
    let data = tail::fact(&event["data"]);
    format!("{}  {at}  {session}  {kind:16}  {data}", cursor.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_names_that_a_sink_knows_too() {
        let told = |event: Value| names(&json!({"session": "ses_1", "event": event}));
        assert_eq!(
            told(json!({"type": "run.paused", "data": {}})),
            ["run.paused", "waypost.run.paused.v1"]
        );
        assert_eq!(
            told(json!({"type": "run.ended", "data": {"outcome": {"how": "failed"}}})),
            ["run.ended", "waypost.run.failed.v1"]
        );
        let one = json!({"published": {"event": {"type": "TradeRepaired"}}});
        let names = told(json!({"type": "event.published", "data": one}));
        assert_eq!(names[2..], ["TradeRepaired"]);
        let two = json!({"published": [{"event": {"type": "A"}}, {"event": {"type": "B"}}]});
        let names = told(json!({"type": "call.finished", "data": two}));
        assert_eq!(names[2..], ["A", "B"]);
    }

    #[test]
    fn a_type_is_a_pattern() {
        assert!(pattern("run.*").unwrap().fits("run.ended"));
        assert!(pattern("").is_err() && pattern("a b").is_err());
    }
}
