//! Records as rows of a file: lines of CSV that end in CRLF, quoted where needed, or lines of JSON.

use crate::form::Form;
use query::types::{Kind, RecordType};
use serde_json::{Map, Value};

/// With which characters a spreadsheet begins a formula.
const FORMULA_SIGNS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// How records are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    pub form: Form,
    /// Paths of fields. Lines of JSON without any are whole records.
    pub columns: Vec<String>,
    /// Texts that a spreadsheet would compute get a `'` before them. They are not the same when
    /// they are read again.
    pub escape_formulas: bool,
}

impl Writer {
    pub fn header(&self, text: &mut String) {
        if let Form::Csv { separator, quote } = self.form {
            let cells = self.columns.iter().map(String::as_str);
            line(cells, char::from(separator), char::from(quote), text);
        }
    }

    pub fn row(&self, record: &Value, text: &mut String) {
        match self.form {
            Form::Csv { separator, quote } => {
                let cells: Vec<String> =
                    self.columns.iter().map(|path| self.cell(at(record, path))).collect();
                let cells = cells.iter().map(String::as_str);
                line(cells, char::from(separator), char::from(quote), text);
            }
            Form::JsonLines if self.columns.is_empty() => {
                text.push_str(&record.to_string());
                text.push('\n');
            }
            Form::JsonLines => {
                let mut chosen = Map::new();
                for path in &self.columns {
                    if let Some(value) = at(record, path) {
                        chosen.insert(path.clone(), value.clone());
                    }
                }
                text.push_str(&Value::Object(chosen).to_string());
                text.push('\n');
            }
        }
    }

    fn cell(&self, value: Option<&Value>) -> String {
        match value {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text))
                if self.escape_formulas && text.starts_with(FORMULA_SIGNS) =>
            {
                format!("'{text}")
            }
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(members)) => match members.get("entityRefName") {
                // As another realm can read it, too.
                Some(Value::String(ref_name)) => ref_name.clone(),
                _ => Value::Object(members.clone()).to_string(),
            },
            Some(other) => other.to_string(),
        }
    }
}

/// The columns of a type that make its records again: names, declared fields, tags and status.
pub fn columns_of(record_type: &RecordType) -> Vec<String> {
    let mut columns = vec!["refName".to_owned(), "displayName".to_owned()];
    for field in &record_type.fields {
        add(&field.kind, &field.name, &mut columns);
    }
    columns.extend(["activeStatus", "tags"].map(str::to_owned));
    columns
}

fn add(kind: &Kind, path: &str, columns: &mut Vec<String>) {
    match kind {
        Kind::Object(fields) if !fields.is_empty() => {
            for field in fields {
                add(&field.kind, &format!("{path}.{}", field.name), columns);
            }
        }
        _ => columns.push(path.to_owned()),
    }
}

fn at<'r>(record: &'r Value, path: &str) -> Option<&'r Value> {
    path.split('.').try_fold(record, |value, name| value.get(name))
}

fn line<'c>(cells: impl Iterator<Item = &'c str>, separator: char, quote: char, text: &mut String) {
    let begin = text.len();
    let mut count = 0;
    for cell in cells {
        if count > 0 {
            text.push(separator);
        }
        count += 1;
        let is_plain = !cell.contains([separator, quote, '\r', '\n']);
        // A blank at an end would be lost by some readers.
        if is_plain && cell.trim() == cell {
            text.push_str(cell);
            continue;
        }
        text.push(quote);
        for character in cell.chars() {
            if character == quote {
                text.push(quote);
            }
            text.push(character);
        }
        text.push(quote);
    }
    // A line without anything in it would be no row.
    if count == 1 && text.len() == begin {
        text.extend([quote, quote]);
    }
    text.push_str("\r\n");
}
