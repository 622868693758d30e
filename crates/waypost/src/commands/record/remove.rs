//! `waypost record rm`: deletes records for good. A person is asked before; without a person the
//! command line must say that it is meant.

use super::{Operation, put_off};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, read};
use crate::terminal::editor::Words;
use crate::terminal::lines::Lines;
use crate::terminal::output::counted;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{IsTerminal, stderr, stdin, stdout};

/// The request that deletes what a query finds.
const DELETE_MANY: &str = "deleteMany";

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The type, such as Order or shop.Order
    #[arg(value_name = "TYPE")]
    record_type: String,
    /// The id of the one record to delete
    #[arg(required_unless_present_any = ["query", "all"], conflicts_with_all = ["query", "all"])]
    id: Option<String>,
    /// All that this query finds, or none of them
    #[arg(long, conflicts_with = "all")]
    query: Option<String>,
    /// All records of the type
    #[arg(long)]
    all: bool,
    /// Only if it is so many
    #[arg(long, value_name = "N", conflicts_with = "id")]
    expect: Option<u64>,
    /// Only say how many would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Delete without asking
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    deleted_count: u64,
}

/// Runs `waypost record rm`.
pub(super) async fn run(args: &RemoveArgs, context: &Context) -> Result<Exit> {
    let is_person = stdin().is_terminal() && stdout().is_terminal() && stderr().is_terminal();
    let can_ask = is_person && context.output.talks();
    if !args.dry_run && !args.yes && !can_ask {
        let what = "records are deleted for good, and there is no one to ask here";
        return Err(Failure::usage(what)
            .hint("`--yes` deletes without asking, `--dry-run` says how many it would be"));
    }
    let client = context.client().await?;
    if args.dry_run {
        return tell_tried(context, &tried(args, &client).await?);
    }
    let mut expected = args.expect;
    if !args.yes {
        if args.id.is_none() {
            let found = tried(args, &client).await?;
            if let Some(ended) = put_off(context, &found) {
                return ended;
            }
            let Deleted { deleted_count } = read(&found)?;
            if deleted_count == 0 {
                return context.output.done(&found, "no records match");
            }
            // What is deleted is what the person was told.
            expected = Some(deleted_count);
        }
        confirm(args, expected).await?;
    }
    let answer = match &args.id {
        Some(id) => one(args, &client, id).await?,
        None => many(args, &client, expected).await?,
    };
    if let Some(ended) = put_off(context, &answer) {
        return ended;
    }
    let Deleted { deleted_count } = read(&answer)?;
    context.output.done(&answer, &format!("deleted {}", counted(deleted_count, "record")))
}

fn tell_tried(context: &Context, answer: &Value) -> Result<Exit> {
    if let Some(ended) = put_off(context, answer) {
        return ended;
    }
    let Deleted { deleted_count } = read(answer)?;
    let records = counted(deleted_count, "record");
    context.output.data(answer, &format!("{records} would be deleted; nothing was deleted"))
}

/// Asks the person at the terminal; a failure unless the answer is yes.
async fn confirm(args: &RemoveArgs, count: Option<u64>) -> Result<()> {
    let record_type = &args.record_type;
    let what = match (&args.id, count) {
        (Some(id), _) => format!("record `{id}` of `{record_type}`"),
        (None, count) => format!("{} of `{record_type}`", counted(count.unwrap_or(0), "record")),
    };
    let mut lines = Lines::of_answers(Words::default());
    lines.drop_typed_ahead().await?;
    let typed = lines.ask(&format!("delete {what} for good? [y/N] ")).await?;
    let is_meant = typed.is_some_and(|typed| {
        !typed.is_pasted && ["y", "yes"].contains(&typed.text.trim().to_lowercase().as_str())
    });
    match is_meant {
        true => Ok(()),
        false => Err(Failure::new(Exit::Failed, "declined", "nothing was deleted")),
    }
}

async fn one(args: &RemoveArgs, client: &Client, id: &str) -> Result<Value> {
    let body = json!({"rootType": args.record_type, "id": id});
    let deleted = Operation { name: "delete", body: &body, query: None }.write_by(client).await;
    deleted.map_err(|failure| match &failure.problem {
        // That nothing was there is told by the answer of a deletion.
        Some(body) if body["success"] == false && body["message"].is_null() => {
            let what = format!("there is no record `{id}` of `{}`", args.record_type);
            let hint = "`waypost record find` lists the records of a type";
            Failure { message: what, code: "NotFound".to_owned(), ..failure }.hint(hint)
        }
        _ => failure,
    })
}

/// Only says how many would be deleted.
async fn tried(args: &RemoveArgs, client: &Client) -> Result<Value> {
    let mut body = selected(args, args.expect);
    body["dryRun"] = json!(true);
    let query = args.query.as_deref();
    Operation { name: DELETE_MANY, body: &body, query }.read_by(client).await
}

/// Deletes all that are meant, if it is so many.
async fn many(args: &RemoveArgs, client: &Client, expected: Option<u64>) -> Result<Value> {
    let body = selected(args, expected);
    let query = args.query.as_deref();
    Operation { name: DELETE_MANY, body: &body, query }.write_by(client).await
}

/// A request for all that are meant.
fn selected(args: &RemoveArgs, expected: Option<u64>) -> Value {
    let mut body = json!({"rootType": args.record_type});
    if let Some(expected) = expected {
        body["expect"] = json!(expected);
    }
    match (&args.id, &args.query) {
        (Some(id), _) => body["query"] = json!(of_id(id)),
        (None, Some(query)) => body["query"] = json!(query),
        (None, None) => body["all"] = json!(true),
    }
    body
}

/// The query that finds the record of this id.
fn of_id(id: &str) -> String {
    format!("id:\"{}\"", id.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_become_more_than_a_value_of_a_query() {
        assert_eq!(of_id("6650f1"), "id:\"6650f1\"");
        assert_eq!(of_id("a\" || id:~"), "id:\"a\"\" || id:~\"");
    }
}
