//! `waypost a2a tasks`: the tasks that an agent has for its caller, the newest first.

use super::line::{LIST, Line, binding_of};
use super::reference::{NOT_ALLOWED_HINT, Reference, failed, parts};
use super::send::word;
use crate::context::{Context, Listing};
use crate::exit::{Exit, Failure, Result};
use crate::terminal::table::Cell;
use clap::Args;
use serde_json::{Value, json};
use wire::a2a::card::AgentCard;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::request::ListTasksResponse;
use wire::a2a::task::Task;

const EXAMPLES: &str = "\
Examples:
  waypost a2a tasks http://127.0.0.1:8420
  waypost a2a tasks http://127.0.0.1:8420 --context ctx_0f..
  waypost --json a2a tasks http://127.0.0.1:8420 | jq '.items[].status.state'";

/// The largest page that is asked for.
const PAGE_MAX: usize = 100;

/// What `waypost a2a tasks` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TasksArgs {
    #[command(flatten)]
    agent: Reference,
    /// Only those of this conversation
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = crate::commands::limit)]
    limit: usize,
}

/// Lists them.
pub(super) async fn run(args: &TasksArgs, context: &Context) -> Result<Exit> {
    let line = line(args, context).await?;
    let mut items: Vec<Value> = Vec::new();
    let mut token = String::new();
    loop {
        let size = (args.limit - items.len()).min(PAGE_MAX);
        let mut params = json!({"pageSize": size});
        if !token.is_empty() {
            params["pageToken"] = json!(token);
        }
        if let Some(context) = &args.context {
            params["contextId"] = json!(context);
        }
        let answer = line.call(&LIST, &params).await?;
        let page = line.result(&answer).map_err(|error| refused(&error))?;
        let page: ListTasksResponse = serde_json::from_value(page).map_err(|error| {
            Failure::new(Exit::Upstream, "not_a2a", format!("it answered no list: {error}"))
        })?;
        let is_empty = page.tasks.is_empty();
        items.extend(page.tasks.iter().map(|task| json!(task)));
        token = page.next_page_token;
        if is_empty || token.is_empty() || items.len() >= args.limit {
            break;
        }
    }
    let next = Some(token).filter(|token| !token.is_empty());
    let body = json!({"items": items, "nextCursor": next});
    let heads = ["task", "state", "context", "changed", "said"];
    let none = "it has no tasks for you";
    context.table(&body, Listing { noun: "task", heads: &heads, none }, |task: Task| {
        let said = task.status.message.as_ref().map(|message| message.words());
        let changed = task.status.timestamp.map(|at| at.to_string());
        vec![
            Cell::id(task.id),
            Cell::word(word(task.status.state)),
            Cell::id(task.context_id),
            Cell::time(changed.unwrap_or_default()),
            said.unwrap_or_default().into(),
        ]
    })
}

/// A line to the first interface of its card that can list tasks and that we may go to.
async fn line(args: &TasksArgs, context: &Context) -> Result<Line> {
    let config = args.agent.config(context)?;
    let parts = parts();
    let reading = async { upstreams::read_card(&config, &parts).await.map_err(failed) };
    let document = context.progress().during("reading the card", reading).await?;
    let card: AgentCard = serde_json::from_value(document).map_err(|error| {
        Failure::new(Exit::Upstream, "not_a_card", format!("it is no agent card: {error}"))
    })?;
    let interfaces = card.supported_interfaces.iter();
    let spoken = interfaces.filter_map(|one| {
        let binding = binding_of(one)?;
        Some((one, binding, upstreams::permitted_address(&config, &one.address())))
    });
    let spoken: Vec<_> = spoken.collect();
    let first = spoken.iter().position(|(_, _, url)| url.is_ok()).unwrap_or(0);
    let Some((interface, binding, url)) = spoken.into_iter().nth(first) else {
        let what = "it has no interface of A2A 1.0 over JSON-RPC, HTTP with JSON or gRPC";
        return Err(Failure::new(Exit::Upstream, "not_spoken", what)
            .hint("tasks can be listed since 1.0 only"));
    };
    let url = url.map_err(|why| {
        let what = format!("agent `{}`: {why}", args.agent.agent);
        Failure::new(Exit::Upstream, "AddressNotAllowed", what).hint(NOT_ALLOWED_HINT)
    })?;
    Line::open(binding, url, &interface.tenant, args.agent.filled_headers(context)?)
}

fn refused(error: &A2aError) -> Failure {
    let exit = match error.kind {
        ErrorKind::Unauthenticated => Exit::Auth,
        ErrorKind::PermissionDenied => Exit::Denied,
        _ => Exit::Upstream,
    };
    let code = error.kind.reason().unwrap_or("refused");
    let failure = Failure::new(exit, code, format!("it refused: {}", error.message));
    match exit {
        Exit::Auth => failure.hint("show who you are: `--header 'Authorization: Bearer ${TOKEN}'`"),
        _ => failure,
    }
}
