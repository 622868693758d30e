//! `waypost record count`: how many records there are, and sums and averages of groups.

use super::{Operation, cell, put_off};
use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::terminal::table::{Cell, Table};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct CountArgs {
    /// The type, such as Order or shop.Order
    #[arg(value_name = "TYPE")]
    record_type: String,
    /// Which of them, such as 'status:open'; all without one
    query: Option<String>,
    /// A group for each value of these fields: `status,customer`
    #[arg(long, value_name = "FIELDS")]
    group_by: Option<String>,
    /// What is computed of each group: `count,sum(total)`; also avg, min and max
    #[arg(long, value_name = "FUNCTIONS")]
    aggregate: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Counted {
    count: u64,
    #[serde(default)]
    groups: Vec<Value>,
}

/// Runs `waypost record count`.
pub(super) async fn run(args: &CountArgs, context: &Context) -> Result<Exit> {
    let query = args.query.as_deref();
    let operation = Operation { name: "count", body: &body(args), query };
    let counted = operation.read_by(&context.client().await?).await?;
    if let Some(ended) = put_off(context, &counted) {
        return ended;
    }
    context.show(&counted, |Counted { count, groups }: Counted| {
        if args.group_by.is_none() && args.aggregate.is_none() {
            return context.output.text(&count.to_string());
        }
        let heads: Vec<&str> = groups
            .first()
            .and_then(Value::as_object)
            .map(|group| group.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let cells = |group: &Value| -> Vec<Cell> {
            heads.iter().map(|name| cell(group.get(*name))).collect()
        };
        context.rows(&Table::new(&heads, groups.iter().map(cells)), groups.len())?;
        context.output.talk(&format!("{count} in all"));
        Ok(())
    })
}

fn body(args: &CountArgs) -> Value {
    let mut body = json!({
        "rootType": args.record_type,
        "query": args.query.as_deref().unwrap_or_default(),
    });
    if let Some(fields) = &args.group_by {
        body["groupBy"] = json!(fields);
    }
    if let Some(functions) = &args.aggregate {
        body["aggregate"] = json!(functions);
    }
    body
}
