//! The tables of a type, as they follow from its definition: a column for each field that a query
//! can compare or sort by, and indexes. In texts, columns are folded; times are microseconds.

use query::checked::{FieldPath, Root, folded};
use query::evaluate::order::Key;
use query::numbers::Number;
use query::tree::Index;
use query::types::{Field, Kind, RecordType};
use rusqlite::types::Value as Cell;
use serde_json::Value;

/// A table of SQLite has at most 2,000 columns. Fields beyond these are found by the evaluator.
const COLUMNS_MAX: usize = 400;

/// Which order the values of a column have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Text,
    Number,
    Boolean,
    Time,
    /// The id of the record that is referred to, which is not what records are sorted by.
    Reference,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    /// Of the field.
    pub(super) path: String,
    pub(super) kind: ColumnKind,
    /// In the table.
    pub(super) name: String,
}

/// What the tables of a type are like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) columns: Vec<Column>,
    /// Beside these.
    id: Column,
    /// Each the names of its columns, without the realm that begins it.
    pub(super) indexes: Vec<Vec<String>>,
    /// The paths of fields that are unique, which the table of keys depends on.
    unique: Vec<Vec<String>>,
    /// The paths of references.
    pub(super) references: Vec<String>,
}

impl Layout {
    pub(super) fn of(record_type: &RecordType) -> Self {
        let mut columns = Vec::new();
        add_columns(record_type.all_fields(), "", &mut columns);
        columns.retain(|column: &Column| column.path != "id");
        // Fields with an index have a column in any case.
        let indexed = indexed_paths(record_type);
        let is_indexed = |column: &Column| indexed.iter().flatten().any(|it| *it == column.path);
        columns.sort_by_key(|column| !is_indexed(column));
        columns.truncate(COLUMNS_MAX);
        for (place, column) in columns.iter_mut().enumerate() {
            column.name = format!("c{}", place + 1);
        }
        let named = |path: &String| {
            columns.iter().find(|column| column.path == *path).map(|column| column.name.clone())
        };
        let mut indexes: Vec<Vec<String>> = Vec::new();
        for paths in &indexed {
            let names: Option<Vec<String>> = paths.iter().map(named).collect();
            if let Some(names) = names.filter(|names| !indexes.contains(names)) {
                indexes.push(names);
            }
        }
        let references = record_type.references().into_iter().map(|(path, _)| path).collect();
        let id = Column { path: "id".to_owned(), kind: ColumnKind::Text, name: "id".to_owned() };
        Self { columns, id, indexes, unique: record_type.all_unique(), references }
    }

    /// The column of a path that leads to one value.
    pub(super) fn column(&self, path: &FieldPath) -> Option<&Column> {
        let is_plain = path.steps.iter().all(|step| !matches!(step.index, Index::At(_)));
        if path.root != Root::Record || !is_plain {
            return None;
        }
        let path = path.names().collect::<Vec<_>>().join(".");
        self.columns.iter().chain([&self.id]).find(|column| column.path == path)
    }

    /// Whether an index begins with the field.
    pub(super) fn has_index(&self, path: &FieldPath) -> bool {
        let column = self.column(path);
        let begins =
            |column: &Column| self.indexes.iter().any(|names| names.first() == Some(&column.name));
        column.is_some_and(|column| *column == self.id || begins(column))
    }

    /// What a record has in the columns, in their order.
    pub(super) fn cells(&self, record: &Value) -> Vec<Cell> {
        self.columns.iter().map(|column| column.cell(record)).collect()
    }
}

/// The refName is indexed in every type.
fn indexed_paths(record_type: &RecordType) -> Vec<Vec<String>> {
    let mut all = vec![vec!["refName".to_owned()]];
    all.extend(record_type.all_indexes());
    all.extend(record_type.all_unique());
    all
}

fn add_columns<'f>(
    fields: impl Iterator<Item = &'f Field>,
    within: &str,
    columns: &mut Vec<Column>,
) {
    for field in fields {
        let path = match within {
            "" => field.name.clone(),
            _ => format!("{within}.{}", field.name),
        };
        let kind = match &field.kind {
            Kind::String => ColumnKind::Text,
            Kind::Integer | Kind::Number => ColumnKind::Number,
            Kind::Boolean => ColumnKind::Boolean,
            Kind::Date | Kind::DateTime => ColumnKind::Time,
            Kind::Reference(_) => ColumnKind::Reference,
            Kind::Object(inner) => {
                add_columns(inner.iter(), &path, columns);
                continue;
            }
            Kind::Array(_) | Kind::Json => continue,
        };
        columns.push(Column { path, kind, name: String::new() });
    }
}

impl Column {
    fn cell(&self, record: &Value) -> Cell {
        let found = self.path.split('.').try_fold(record, |value, name| value.get(name));
        let Some(value) = found.filter(|value| !value.is_null()) else { return Cell::Null };
        if self.kind == ColumnKind::Reference {
            let id = value.get("entityId").and_then(Value::as_str);
            return id.map_or(Cell::Null, |id| Cell::Text(id.to_owned()));
        }
        cell_of(&Key::of(value, self.kind == ColumnKind::Time))
    }
}

/// What stands for a value in a column. Of two values the greater one never stands before the
/// other; those that are near each other can be the same.
pub(super) fn cell_of(key: &Key) -> Cell {
    match key {
        Key::Absent => Cell::Null,
        Key::Bool(value) => Cell::Integer(i64::from(*value)),
        Key::Number(Number::Whole(whole)) => match i64::try_from(*whole) {
            Ok(whole) => Cell::Integer(whole),
            Err(_) => Cell::Real(*whole as f64),
        },
        Key::Number(Number::Decimal(decimal)) => Cell::Real(*decimal),
        Key::Time(time) => Cell::Integer(microseconds(*time)),
        Key::Text(text, _) => Cell::Text(text.clone()),
        Key::Other(text) => Cell::Text(folded(text)),
    }
}

/// The last whole microsecond that is not after the time.
pub(super) fn microseconds(time: jiff::Timestamp) -> i64 {
    // The range of times is much smaller than that of the number.
    time.as_nanosecond().div_euclid(1_000) as i64
}
