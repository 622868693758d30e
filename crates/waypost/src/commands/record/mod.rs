//! `waypost record`: the records of a server, by type. Everything but `migrate` asks the server, by
//! the requests that the tools take; `migrate` works on a data folder that no server uses.

mod fault;
mod find;
mod count;
mod save;
mod remove;
mod named_steps;
mod remedies;
mod migrate;

use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::outcome;
use crate::remote::client::{Client, Request, read};
use crate::terminal::output::counted;
use crate::terminal::table::{Cell, Table};
use clap::Subcommand;
use count::CountArgs;
use find::FindArgs;
use migrate::MigrateArgs;
use remove::RemoveArgs;
use save::SaveArgs;
use serde::Deserialize;
use serde_json::Value;
use wire::rest::PendingCall;

const EXAMPLES: &str = "\
Examples:
  waypost record types
  waypost record schema Order
  waypost record find Order 'status:open && total:>#100' --sort -total
  waypost record find Order --fields refName,customer,total --all
  waypost record count Order --group-by status --aggregate 'count,sum(total)'
  waypost record save Order --set refName=A-17 --set status=open
  waypost record save Order order.json --if-version 3
  waypost record rm Order 6650f1c2a4b3c2d1e0f9a8b7
  waypost record rm Order --query 'status:cancelled' --dry-run
  waypost record migrate --rename Order.sum=total --dry-run    # with the server stopped";

/// What `waypost record` takes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum RecordCommand {
    /// List the types of records
    Types,
    /// Print the JSON Schema of the records of a type
    Schema {
        /// Its name, such as Order or shop.Order
        #[arg(value_name = "TYPE")]
        record_type: String,
    },
    /// Find records of a type
    Find(FindArgs),
    /// Count records of a type, also in groups
    Count(CountArgs),
    /// Insert, replace or change a record
    Save(SaveArgs),
    /// Delete one record, or all that a query finds
    Rm(RemoveArgs),
    /// Change stored records so that they fit their types; the server must be stopped
    Migrate(MigrateArgs),
}

/// Runs `waypost record`.
pub(crate) async fn run(command: RecordCommand, context: &Context) -> Result<Exit> {
    match command {
        RecordCommand::Types => types(context).await,
        RecordCommand::Schema { record_type } => schema(context, &record_type).await,
        RecordCommand::Find(args) => find::run(&args, context).await,
        RecordCommand::Count(args) => count::run(&args, context).await,
        RecordCommand::Save(args) => save::run(&args, context).await,
        RecordCommand::Rm(args) => remove::run(&args, context).await,
        RecordCommand::Migrate(args) => migrate::run(&args, context).await,
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RootTypes {
    root_types: Vec<RootType>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RootType {
    class_name: String,
    simple_name: String,
    collection_name: String,
}

async fn types(context: &Context) -> Result<Exit> {
    let asked = context.client().await?.get(Request::below_api(&["query", "rootTypes"])).await;
    let body = asked.map_err(|failure| fault::told(failure, None))?;
    context.show(&body, |RootTypes { root_types }: RootTypes| {
        let count = root_types.len();
        let row = |found: RootType| {
            vec![
                Cell::word(found.simple_name),
                found.class_name.into(),
                found.collection_name.into(),
            ]
        };
        let heads = ["type", "full name", "collection"];
        let table = Table::new(&heads, root_types.into_iter().map(row));
        context.rows(&table, count)?;
        if count == 0 {
            context.output.talk("there are no types: a file in `entities/` declares one");
        } else {
            context.output.talk(&counted(count, "type"));
        }
        Ok(())
    })
}

async fn schema(context: &Context, record_type: &str) -> Result<Exit> {
    let request = Request::below_api(&["agent", "schema", record_type]);
    let asked = context.client().await?.get(request).await;
    let body = asked.map_err(|failure| fault::told(failure, None))?;
    context.output.data(&body, &outcome::pretty(&body))
}

/// How a request reaches its records.
#[derive(Debug, Clone, Copy)]
struct Operation<'a> {
    /// The last part of its path.
    name: &'static str,
    body: &'a Value,
    /// What the user typed, for a fault to point at.
    query: Option<&'a str>,
}

impl Operation<'_> {
    /// Asks for something that changes nothing.
    async fn read_by(self, client: &Client) -> Result<Value> {
        let asked = client.ask(Request::below_api(&["query", self.name]), self.body).await;
        asked.map_err(|failure| fault::told(failure, self.query))
    }

    /// Changes something.
    async fn write_by(self, client: &Client) -> Result<Value> {
        let posted = client.post(Request::below_api(&["query", self.name]), self.body).await;
        posted.map_err(|failure| fault::told(failure, self.query))
    }
}

/// How the command ends where a person is asked first, or the call takes longer than the server
/// waits; none for an answer.
fn put_off(context: &Context, answer: &Value) -> Option<Result<Exit>> {
    answer.get("run")?;
    let told = |call: PendingCall| outcome::tell(context, answer, &call.run);
    Some(read(answer).and_then(told))
}

/// A value in a cell: a text as it is, a reference by its name, everything else as JSON.
fn cell(value: Option<&Value>) -> Cell {
    let text = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => match value["entityRefName"].as_str() {
            Some(name) => name.to_owned(),
            None => value.to_string(),
        },
    };
    Cell::from(text)
}

/// What a path such as `address.city` leads to in a record.
fn at_path<'v>(record: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(record, |value, name| value.get(name))
}

/// A list whose items are separated by commas.
fn listed(text: &str) -> Vec<String> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_shown_in_cells() {
        let record = json!({
            "name": "Ada",
            "address": {"city": "Rome"},
            "customer": {"entityId": "1", "entityRefName": "ada"},
            "tags": ["a"],
        });
        let shown = |path: &str| cell(at_path(&record, path));
        assert_eq!(shown("name"), Cell::from("Ada".to_owned()));
        assert_eq!(shown("address.city"), Cell::from("Rome".to_owned()));
        assert_eq!(shown("customer"), Cell::from("ada".to_owned()));
        assert_eq!(shown("tags"), Cell::from(r#"["a"]"#.to_owned()));
        assert_eq!(shown("address.zip"), Cell::from(String::new()));
    }

    #[test]
    fn a_list_is_separated_by_commas() {
        assert_eq!(listed(" a, b.c ,"), ["a", "b.c"]);
    }
}
