//! `waypost record save`: inserts, replaces or changes one record.

use super::{Operation, put_off};
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::terminal::input;
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// The type, such as Order or shop.Order
    #[arg(value_name = "TYPE")]
    record_type: String,
    /// A JSON file with the record; `-` is standard input
    #[arg(required_unless_present = "set", conflicts_with = "set")]
    file: Option<String>,
    /// A field: status=open, address.city=Rome (JSON where it reads as JSON, else text)
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Change only these fields, of a record that is there
    #[arg(long, conflicts_with = "insert")]
    merge: bool,
    /// Only if the record has this version
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
    /// Only if the record is not there yet
    #[arg(long, conflicts_with = "if_version")]
    insert: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Saved {
    id: String,
    entity: Value,
    version: u64,
    is_new: bool,
}

/// Runs `waypost record save`.
pub(super) async fn run(args: &SaveArgs, context: &Context) -> Result<Exit> {
    let mut entity = match &args.file {
        Some(file) => read(file)?,
        None => nested(input::pairs(&args.set)?)?,
    };
    if let Some(version) = args.if_version {
        entity.insert("version".to_owned(), json!(version));
    }
    let mut body = json!({"rootType": args.record_type, "entity": entity});
    if args.merge {
        body["merge"] = json!(true);
    }
    if args.insert {
        body["insert"] = json!(true);
    }
    let operation = Operation { name: "save", body: &body, query: None };
    let saved = operation.write_by(&context.client().await?).await?;
    if let Some(ended) = put_off(context, &saved) {
        return ended;
    }
    context.show(&saved, |Saved { id, entity, version, is_new }: Saved| {
        let result = if is_new { "created" } else { "updated" };
        let name = entity["refName"].as_str().filter(|name| *name != id);
        let name = name.map(|name| format!("{name}  ")).unwrap_or_default();
        context.output.text(&format!("{result:<9}  {name}{id}  version {version}"))
    })
}

/// The record in a file, or on standard input.
fn read(file: &str) -> Result<Map<String, Value>> {
    let (text, whence) = match file {
        "-" => (input::standard_input()?, "standard input".to_owned()),
        file => (input::file(Path::new(file))?, format!("`{file}`")),
    };
    let hint = "write one record as a JSON object, or give its fields with `--set field=value`";
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{whence} is not JSON: {error}")).hint(hint))?;
    match value {
        Value::Object(entity) => Ok(entity),
        _ => Err(Failure::usage(format!("{whence} is not a record")).hint(hint)),
    }
}

/// Fields as a record has them: `address.city` is `city` in `address`.
fn nested(fields: Map<String, Value>) -> Result<Map<String, Value>> {
    let mut record = Map::new();
    for (path, value) in fields {
        put(&mut record, &path, value).ok_or_else(|| {
            Failure::usage(format!("`{path}` is in a field that is given as a whole, too"))
                .hint("leave one of the two out")
        })?;
    }
    Ok(record)
}

/// Puts a value at a path; none where something else is in the way.
fn put(record: &mut Map<String, Value>, path: &str, value: Value) -> Option<()> {
    match path.split_once('.') {
        None => {
            let is_free = !record.contains_key(path);
            is_free.then(|| record.insert(path.to_owned(), value)).map(drop)
        }
        Some((name, rest)) => {
            let inner = record.entry(name).or_insert_with(|| json!({}));
            put(inner.as_object_mut()?, rest, value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let fields = input::pairs(&words).map_err(|failure| failure.message)?;
        nested(fields).map(Value::Object).map_err(|failure| failure.message)
    }

    #[test]
    fn a_path_leads_into_an_object() {
        let expected = json!({"a": {"b": 1, "c": {"d": "x y"}}, "e": [2]});
        assert_eq!(record(&["a.b=1", "a.c.d=x y", "e=[2]"]), Ok(expected));
    }

    #[test]
    fn a_field_is_given_once() {
        let refused = "`a.b` is in a field that is given as a whole, too";
        assert_eq!(record(&["a=1", "a.b=1"]), Err(refused.to_owned()));
        assert!(record(&["a.b=1", "a=1"]).is_err());
        assert!(record(&["a"]).is_err());
    }
}
