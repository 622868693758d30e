//! `waypost record find`: records of a type as a table, page by page.

use super::{Operation, at_path, cell, listed, put_off};
use crate::context::Context;
use crate::exit::{Exit, Result};
use crate::terminal::screen::Screen;
use crate::terminal::table::{Cell, Table};
use clap::Args;
use kernel::values::members::take;
use query::types::built_in_fields;
use serde::Deserialize;
use serde_json::{Value, json};

/// How many columns a table has beside the names of its records, where none are chosen.
const COLUMNS_MAX: usize = 4;
/// What records are called by; they come first.
const NAMES: [&str; 2] = ["refName", "displayName"];

#[derive(Debug, Args)]
pub(crate) struct FindArgs {
    /// The type, such as Order or shop.Order
    #[arg(value_name = "TYPE")]
    record_type: String,
    /// Which of them, such as 'status:open && total:>#100'; all without one
    query: Option<String>,
    /// By which fields they are ordered, with `-` from the greatest: `-total,refName`
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    sort: Option<String>,
    /// How many at most in one page
    #[arg(long, default_value_t = 50, value_parser = crate::commands::limit)]
    limit: usize,
    /// The page that this cursor of another answer begins
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// All pages
    #[arg(long, conflicts_with = "cursor")]
    all: bool,
    /// The columns: `refName,address.city`
    #[arg(long, value_name = "FIELDS", value_parser = chosen)]
    fields: Option<Fields>,
}

/// Reads `--fields`.
fn chosen(text: &str) -> Result<Fields, String> {
    let fields = listed(text);
    if fields.is_empty() { Err("expected field,..".to_owned()) } else { Ok(Fields(fields)) }
}

/// The chosen columns. A type of its own, for clap takes a list as an argument that comes often.
#[derive(Debug, Clone)]
struct Fields(Vec<String>);

/// What a page says beside its rows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    rows: Vec<Value>,
    total_count: Option<u64>,
    next_cursor: Option<String>,
    limited: Option<Value>,
}

/// Runs `waypost record find`.
pub(super) async fn run(args: &FindArgs, context: &Context) -> Result<Exit> {
    let found = if args.all { all(args, context).await? } else { page(args, context).await? };
    if let Some(ended) = put_off(context, &found) {
        return ended;
    }
    context.show(&found, |page: Page| tell(args, context, &page))
}

fn body(args: &FindArgs) -> Value {
    let mut body = json!({
        "rootType": args.record_type,
        "query": args.query.as_deref().unwrap_or_default(),
        "limit": args.limit,
    });
    if let Some(sort) = &args.sort {
        body["sort"] = json!(sort);
    }
    if let Some(cursor) = &args.cursor {
        body["cursor"] = json!(cursor);
    }
    body
}

async fn page(args: &FindArgs, context: &Context) -> Result<Value> {
    let query = args.query.as_deref();
    Operation { name: "find", body: &body(args), query }.read_by(&context.client().await?).await
}

/// The first page, with the rows of all that follow it.
async fn all(args: &FindArgs, context: &Context) -> Result<Value> {
    let client = context.client().await?;
    let query = args.query.as_deref();
    let mut body = body(args);
    let mut whole = Operation { name: "find", body: &body, query }.read_by(&client).await?;
    // They are counted once.
    body["total"] = json!(false);
    let mut rows = rows_of(&mut whole);
    let mut next = next_of(&mut whole);
    while let Some(cursor) = next {
        body["cursor"] = cursor;
        let mut page = Operation { name: "find", body: &body, query }.read_by(&client).await?;
        rows.extend(rows_of(&mut page));
        next = next_of(&mut page);
    }
    if let Some(members) = whole.as_object_mut().filter(|members| members.contains_key("rows")) {
        // Where pages ended is nothing that is left out.
        take(members, "limited");
        members.insert("rowCount".to_owned(), json!(rows.len()));
        members.insert("rows".to_owned(), Value::Array(rows));
    }
    Ok(whole)
}

fn rows_of(page: &mut Value) -> Vec<Value> {
    match page.get_mut("rows").map(Value::take) {
        Some(Value::Array(rows)) => rows,
        _ => Vec::new(),
    }
}

fn next_of(page: &mut Value) -> Option<Value> {
    let next = take(page.as_object_mut()?, "nextCursor")?;
    next.is_string().then_some(next)
}

fn tell(args: &FindArgs, context: &Context, page: &Page) -> Result<()> {
    let columns = match &args.fields {
        Some(Fields(fields)) => fields.clone(),
        None => columns(&page.rows),
    };
    let heads: Vec<&str> = columns.iter().map(String::as_str).collect();
    let cells = |record: &Value| -> Vec<Cell> {
        columns.iter().map(|path| cell(at_path(record, path))).collect()
    };
    let shown = page.rows.len();
    context.rows(&Table::new(&heads, page.rows.iter().map(cells)), shown)?;
    if shown == 0 {
        context.output.talk("no records match");
        return Ok(());
    }
    let of_total = page.total_count.map(|total| format!(" of {total}")).unwrap_or_default();
    if let Some(next) = &page.next_cursor {
        let why = match page.limited.as_ref().and_then(|limited| limited["limit"].as_str()) {
            Some(limit) => format!(", as far as `{limit}` lets one page be"),
            None => String::new(),
        };
        context.output.talk(&format!(
            "{shown}{of_total}{why}; `--cursor {next}` shows the next page, `--all` shows all"
        ));
    } else if Screen::of_stdout().width.is_some() {
        context.output.talk(&format!("{shown}{of_total}"));
    }
    Ok(())
}

/// The names of the records, and their first fields beside those that every record has.
fn columns(rows: &[Value]) -> Vec<String> {
    let mut fields: Vec<&str> = Vec::new();
    for name in rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys()) {
        if !fields.contains(&name.as_str()) {
            fields.push(name);
        }
    }
    let is_common = |name: &str| built_in_fields().iter().any(|field| field.name == name);
    let names = NAMES.iter().copied().filter(|name| fields.contains(name)).map(str::to_owned);
    let own = fields.iter().copied().filter(|name| !is_common(name)).take(COLUMNS_MAX);
    let columns: Vec<String> = names.chain(own.map(str::to_owned)).collect();
    // A query may have left out all of them.
    if columns.is_empty() { fields.into_iter().map(str::to_owned).collect() } else { columns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_names_and_the_first_fields() {
        let record = json!({
            "id": "1", "refName": "a", "status": "open", "displayName": "A", "version": 1,
            "b": 1, "c": 1, "d": 1, "e": 1,
        });
        let other = json!({"refName": "b", "late": 1});
        let expected = ["refName", "displayName", "status", "b", "c", "d"];
        assert_eq!(columns(&[record, other]), expected);
        assert_eq!(columns(&[json!({"id": "1", "version": 2})]), ["id", "version"]);
        assert_eq!(columns(&[]), [""; 0]);
    }

    #[test]
    fn fields_are_separated_by_commas() {
        assert_eq!(chosen("a, b.c").unwrap().0, ["a", "b.c"]);
        assert!(chosen(" ,").is_err());
    }
}
