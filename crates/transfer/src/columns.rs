//! Which field each column of a file is.

use kernel::definition::plan::mistake::meant;
use query::records::scope::CallerScope;
use query::types::{Kind, RecordType};

/// How columns are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnNames {
    /// By their positions; what a header says does not matter.
    Given(Vec<String>),
    /// As the header names them, or as this maps the header's names to fields.
    Header(Vec<(String, String)>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The path of its field.
    pub path: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    #[error("there are no columns")]
    None,
    #[error("column {place}, `{name}`, is no field of `{record_type}`{}", hinted(.hint))]
    Unknown { place: usize, name: String, record_type: String, hint: Option<String> },
    #[error("column {place}, `{name}`, is the same field as another one")]
    Repeated { place: usize, name: String },
    #[error("the file has no column `{0}`")]
    Unmapped(String),
    #[error("there are {count} columns, more than {max}")]
    TooMany { count: usize, max: usize },
}

fn hinted(hint: &Option<String>) -> String {
    hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default()
}

/// The columns of a file with this header, as far as its caller knows the fields: one that is
/// hidden is unknown.
pub fn columns(
    names: &ColumnNames,
    header: &[String],
    record_type: &RecordType,
    scope: &CallerScope,
    max: usize,
) -> Result<Vec<Column>, ColumnError> {
    let named: Vec<&str> = match names {
        ColumnNames::Given(given) => given.iter().map(|name| name.trim()).collect(),
        ColumnNames::Header(mapped) => {
            let missing =
                mapped.iter().find(|(from, _)| !header.iter().any(|name| name.trim() == from));
            if let Some((from, _)) = missing {
                return Err(ColumnError::Unmapped(from.clone()));
            }
            header.iter().map(|name| field_of(mapped, name.trim())).collect()
        }
    };
    if named.is_empty() {
        return Err(ColumnError::None);
    }
    if named.len() > max {
        return Err(ColumnError::TooMany { count: named.len(), max });
    }
    let mut columns: Vec<Column> = Vec::with_capacity(named.len());
    for (index, name) in named.iter().enumerate() {
        let place = index + 1;
        let path = if *name == "_id" { "id" } else { name };
        let kind = kind_of(record_type, scope, path).ok_or_else(|| ColumnError::Unknown {
            place,
            name: (*name).to_owned(),
            record_type: record_type.full_name(),
            hint: meant(name, known(record_type, scope).iter().map(String::as_str)),
        })?;
        if columns.iter().any(|column| overlap(&column.path, path)) {
            return Err(ColumnError::Repeated { place, name: (*name).to_owned() });
        }
        columns.push(Column { path: path.to_owned(), kind });
    }
    Ok(columns)
}

fn field_of<'n>(mapped: &'n [(String, String)], name: &'n str) -> &'n str {
    mapped.iter().find(|(from, _)| from == name).map_or(name, |(_, to)| to.trim())
}

fn kind_of(record_type: &RecordType, scope: &CallerScope, path: &str) -> Option<Kind> {
    if scope.hides(record_type, path) {
        return None;
    }
    if let Some(field) = record_type.field(path) {
        return Some(field.kind.clone());
    }
    let takes_any = record_type.additional_fields && !path.is_empty() && !path.contains('.');
    takes_any.then_some(Kind::String)
}

fn known(record_type: &RecordType, scope: &CallerScope) -> Vec<String> {
    let names = record_type.all_fields().map(|field| field.name.clone());
    names.filter(|name| !scope.hides(record_type, name)).collect()
}

/// Whether one is the other, or in it.
fn overlap(left: &str, right: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    within(left, right) || within(right, left)
}
