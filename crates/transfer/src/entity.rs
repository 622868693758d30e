//! A row as the record that a save would be given. Texts stay texts: a save reads them as what
//! their fields are.

use crate::columns::Column;
use crate::rows::RowContent;
use query::types::Kind;
use serde_json::{Map, Value};

/// What is wrong with a row, as callers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFault {
    /// The path of the field; empty for the row as a whole.
    pub field: String,
    pub message: String,
}

/// The record of a row. A cell without a text is a field that is left out.
pub fn entity(
    columns: &[Column],
    content: RowContent,
) -> Result<Map<String, Value>, Vec<CellFault>> {
    let cells = match content {
        RowContent::Object(members) => return Ok(members),
        RowContent::Cells(cells) => cells,
    };
    if cells.len() > columns.len() {
        let message =
            format!("the row has {} fields, and there are {} columns", cells.len(), columns.len());
        return Err(vec![CellFault { field: String::new(), message }]);
    }
    let mut members = Map::new();
    let mut faults = Vec::new();
    for (column, cell) in columns.iter().zip(cells) {
        if cell.trim().is_empty() {
            continue;
        }
        match value(&column.kind, cell) {
            Ok(value) => insert(&mut members, &column.path, value),
            Err(message) => faults.push(CellFault { field: column.path.clone(), message }),
        }
    }
    if faults.is_empty() { Ok(members) } else { Err(faults) }
}

fn value(kind: &Kind, cell: String) -> Result<Value, String> {
    let as_json = |cell: &str| {
        serde_json::from_str::<Value>(cell.trim()).map_err(|error| format!("is no JSON: {error}"))
    };
    match kind {
        Kind::Object(_) | Kind::Array(_) => as_json(&cell),
        // A text that is not JSON is itself.
        Kind::Json => Ok(as_json(&cell).unwrap_or(Value::String(cell))),
        Kind::Reference(_) if cell.trim_start().starts_with('{') => as_json(&cell),
        Kind::Reference(_) => Ok(Value::String(cell.trim().to_owned())),
        Kind::String
        | Kind::Integer
        | Kind::Number
        | Kind::Boolean
        | Kind::Date
        | Kind::DateTime => Ok(Value::String(cell)),
    }
}

fn insert(members: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            members.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = members.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}
