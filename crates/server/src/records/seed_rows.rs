//! Files with first records: CSV, whose first line names the fields, and JSON lines. Both are read
//! whole, and all that is wrong with a file is told at once.

use kernel::definition::plan::mistake::{Mistake, Position};
use query::types::{Kind, RecordType};
use serde_json::{Map, Value};

/// One record as it is to be saved.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeedRow {
    /// From 1.
    pub(crate) line: u32,
    pub(crate) entity: Value,
}

/// The rows of a file with this name.
pub(crate) fn read(
    file: &str,
    text: &str,
    record_type: &RecordType,
) -> Result<Vec<SeedRow>, Vec<Mistake>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read = if file.ends_with(".csv") { csv(text, record_type) } else { json_lines(text) };
    read.map_err(|mistakes| {
        let filed = |mistake: Mistake| Mistake { file: Some(file.to_owned()), ..mistake };
        mistakes.into_iter().map(filed).collect()
    })
}

fn wrong(line: u32, message: impl Into<String>) -> Mistake {
    Mistake::error(message).at(Position { line, column: 1 }, "")
}

fn json_lines(text: &str) -> Result<Vec<SeedRow>, Vec<Mistake>> {
    let mut rows = Vec::new();
    let mut mistakes = Vec::new();
    for (line, written) in (1..).zip(text.lines()) {
        if written.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(written) {
            Ok(entity @ Value::Object(_)) => rows.push(SeedRow { line, entity }),
            Ok(_) => {
                let hint = "write one record per line, such as `{\"refName\": \"depot\"}`";
                mistakes.push(wrong(line, "the line is no JSON object").hint(hint));
            }
            Err(why) => {
                let hint = "write each record in one line of JSON";
                mistakes.push(wrong(line, format!("the line is not JSON: {why}")).hint(hint));
            }
        }
    }
    if mistakes.is_empty() { Ok(rows) } else { Err(mistakes) }
}

fn csv(text: &str, record_type: &RecordType) -> Result<Vec<SeedRow>, Vec<Mistake>> {
    let lines = cells(text).map_err(|mistake| vec![mistake])?;
    let mut lines = lines.into_iter();
    let Some((_, names)) = lines.next() else {
        let hint = "the first line names the fields, such as `refName,displayName,address.city`";
        return Err(vec![wrong(1, "the file is empty").hint(hint)]);
    };
    let mut mistakes = Vec::new();
    let mut rows = Vec::new();
    for (line, cells) in lines {
        if cells.len() != names.len() {
            let (found, wanted) = (cells.len(), names.len());
            let what = format!("the row has {found} cells, and the first line names {wanted}");
            let hint = "write a cell with a comma in double quotes";
            mistakes.push(wrong(line, what).hint(hint));
            continue;
        }
        let mut members = Map::new();
        for (name, cell) in names.iter().zip(&cells) {
            let name = name.trim();
            if cell.trim().is_empty() {
                continue;
            }
            let kind = record_type.field(name).map(|field| &field.kind);
            if !put(&mut members, name, value(cell, kind)) {
                let what = format!("`{name}` cannot be put into the record beside other columns");
                mistakes.push(wrong(1, what).hint("name each field once, by its whole path"));
            }
        }
        rows.push(SeedRow { line, entity: Value::Object(members) });
    }
    if mistakes.is_empty() { Ok(rows) } else { Err(mistakes) }
}

/// What a cell holds for a field of this kind. What does not read as one stays a text, and the
/// check of the record says so.
fn value(cell: &str, kind: Option<&Kind>) -> Value {
    let text = || Value::from(cell);
    let trimmed = cell.trim();
    match kind {
        Some(Kind::Integer | Kind::Number | Kind::Boolean) => match serde_json::from_str(trimmed) {
            Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
            _ => text(),
        },
        Some(Kind::Array(_) | Kind::Object(_) | Kind::Json) => {
            serde_json::from_str(trimmed).unwrap_or_else(|_| text())
        }
        Some(Kind::Date | Kind::DateTime | Kind::Reference(_)) => Value::from(trimmed),
        Some(Kind::String) | None => text(),
    }
}

/// Puts a value where a path such as `address.city` leads; whether there was room.
fn put(members: &mut Map<String, Value>, path: &str, value: Value) -> bool {
    match path.split_once('.') {
        None => members.insert(path.to_owned(), value).is_none(),
        Some((name, rest)) => {
            let inner = members.entry(name).or_insert_with(|| Value::Object(Map::new()));
            match inner {
                Value::Object(inner) => put(inner, rest, value),
                _ => false,
            }
        }
    }
}

/// The cells of each row with the line that it begins in. Rows without anything are left out.
fn cells(text: &str) -> Result<Vec<(u32, Vec<String>)>, Mistake> {
    let mut rows = Vec::new();
    let mut reader = CellReader { chars: text.chars().peekable(), line: 1 };
    while reader.chars.peek().is_some() {
        let line = reader.line;
        let row = reader.row()?;
        if row.iter().any(|cell| !cell.is_empty()) {
            rows.push((line, row));
        }
    }
    Ok(rows)
}

struct CellReader<'t> {
    chars: std::iter::Peekable<std::str::Chars<'t>>,
    line: u32,
}

impl CellReader<'_> {
    fn row(&mut self) -> Result<Vec<String>, Mistake> {
        let mut row = Vec::new();
        loop {
            row.push(self.cell()?);
            match self.chars.next() {
                Some(',') => {}
                Some('\r') => {
                    self.chars.next_if_eq(&'\n');
                    self.line += 1;
                    return Ok(row);
                }
                Some('\n') => {
                    self.line += 1;
                    return Ok(row);
                }
                None => return Ok(row),
                Some(other) => {
                    let what = format!("`{other}` stands behind a quoted cell");
                    return Err(wrong(self.line, what).hint("write `\"\"` for a quote in a cell"));
                }
            }
        }
    }

    /// Up to what ends it, which is left.
    fn cell(&mut self) -> Result<String, Mistake> {
        let mut cell = String::new();
        if self.chars.next_if_eq(&'"').is_none() {
            while let Some(next) = self.chars.next_if(|next| !matches!(next, ',' | '\r' | '\n')) {
                cell.push(next);
            }
            return Ok(cell);
        }
        let begin = self.line;
        loop {
            match self.chars.next() {
                Some('"') if self.chars.next_if_eq(&'"').is_some() => cell.push('"'),
                Some('"') => return Ok(cell),
                Some(char) => {
                    self.line += u32::from(char == '\n');
                    cell.push(char);
                }
                None => {
                    let what = "a quoted cell does not end";
                    return Err(wrong(begin, what).hint("close it with a double quote"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use query::types::Field;
    use serde_json::json;

    fn town() -> RecordType {
        let city = Field::new("city", Kind::String);
        let fields = vec![
            Field::new("count", Kind::Integer),
            Field::new("code", Kind::String),
            Field::new("open", Kind::Boolean),
            Field::new("address", Kind::Object(vec![city])),
            Field::new("marks", Kind::array(Kind::String)),
        ];
        RecordType::new("", "towns", "Town", fields)
    }

    fn read_csv(text: &str) -> Result<Vec<SeedRow>, Vec<String>> {
        let told = |found: Vec<Mistake>| found.iter().map(Mistake::to_string).collect();
        read("data/towns.csv", text, &town()).map_err(told)
    }

    #[test]
    fn a_cell_is_what_its_field_is_and_a_blank_one_is_left_out() {
        let text = "\u{feff}refName,count,code,open,address.city,marks\r\n\
            depot,12,007,true,\"Old, \"\"new\"\"\nTown\",\"[\"\"a\"\"]\"\r\n\
            \r\nport,many,,,,\n";
        let depot = json!({"refName": "depot", "count": 12, "code": "007", "open": true,
            "address": {"city": "Old, \"new\"\nTown"}, "marks": ["a"]});
        let port = json!({"refName": "port", "count": "many"});
        let rows = read_csv(text).unwrap();
        assert_eq!(rows[0], SeedRow { line: 2, entity: depot });
        assert_eq!(rows[1], SeedRow { line: 5, entity: port });
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_line() {
        for (text, expected) in [
            ("", "data/towns.csv:1:1: error: the file is empty"),
            ("a,b\n1,2\n1\n1,2,3\n", "data/towns.csv:3:1: error: the row has 1 cells"),
            ("a\n\"b\n", "data/towns.csv:2:1: error: a quoted cell does not end"),
            ("a\n\"b\"c\n", "data/towns.csv:2:1: error: `c` stands behind a quoted cell"),
            ("a,a\n1,2\n", "data/towns.csv:1:1: error: `a` cannot be put"),
        ] {
            let told = read_csv(text).unwrap_err();
            assert!(told[0].starts_with(expected), "{told:?}");
        }
        assert_eq!(read_csv("a,b\n1\n2\n").unwrap_err().len(), 2, "all rows are told");
    }

    #[test]
    fn json_lines_are_records_and_blank_lines_are_none() {
        let read = |text: &str| read("data/towns.jsonl", text, &town());
        let rows = read("{\"count\": 1}\n\n{\"count\": 2}").unwrap();
        let lines: Vec<u32> = rows.iter().map(|row| row.line).collect();
        assert_eq!((lines, &rows[1].entity), (vec![1, 3], &json!({"count": 2})));
        let mistakes = read("{\"count\": 1}\n[1]\n{\n").unwrap_err();
        let lines: Vec<u32> = mistakes.iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
