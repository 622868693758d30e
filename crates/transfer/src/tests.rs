//! Files are read in pieces of any size, and what is written is read again.

use crate::charset::{Charset, CharsetEncoder, Utf8Decoder};
use crate::columns::{ColumnNames, columns};
use crate::entity::entity;
use crate::form::Form;
use crate::rows::{Row, RowContent, RowFault, RowLimits, RowReader};
use crate::written::{Writer, columns_of};
use query::records::scope::CallerScope;
use query::types::{Field, Kind, RecordType, TypeSet};
use serde_json::{Value, json};

fn order() -> RecordType {
    let address =
        Kind::Object(vec![Field::new("zip", Kind::String), Field::new("city", Kind::String)]);
    let fields = vec![
        Field::new("note", Kind::String),
        Field::new("count", Kind::Integer),
        Field::new("address", address),
        Field::new("lines", Kind::array(Kind::Json)),
        Field::new("customer", Kind::Reference("Customer".to_owned())),
    ];
    RecordType::new("shop", "orders", "Order", fields)
}

fn scope() -> CallerScope {
    CallerScope::unlimited(&TypeSet::new(vec![order()]))
}

/// All rows of a file, read in pieces of this size.
fn rows_of(form: Form, text: &[u8], piece: usize, limits: &RowLimits) -> Vec<Row> {
    let mut reader = RowReader::new(form, limits.clone(), RowReader::start());
    let mut found = Vec::new();
    text.chunks(piece).for_each(|bytes| reader.read(bytes, &mut found));
    reader.read(&[], &mut found);
    found
}

fn cells(row: &Row) -> Vec<&str> {
    match &row.content {
        Ok(RowContent::Cells(cells)) => cells.iter().map(String::as_str).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_are_the_same_in_pieces_of_any_size() {
    let text = "a;b\r\n\r\n\"x;\"\"1\"\"\nz\";2\r\nlast;\"\"".as_bytes();
    let form = Form::csv(";", "\"").unwrap();
    let whole = rows_of(form, text, text.len(), &RowLimits::default());
    let read: Vec<Vec<&str>> = whole.iter().map(cells).collect();
    assert_eq!(read, [vec!["a", "b"], vec!["x;\"1\"\nz", "2"], vec!["last", ""]]);
    let lines: Vec<(u64, u64)> =
        whole.iter().map(|row| (row.place.number, row.place.line)).collect();
    assert_eq!(lines, [(1, 1), (2, 3), (3, 5)]);
    for piece in 1..text.len() {
        assert_eq!(rows_of(form, text, piece, &RowLimits::default()), whole, "{piece}");
    }
}

#[test]
fn a_row_is_read_again_from_its_place() {
    let text = "a,b\n\n\"1\n\",2\r\n3,4\n".as_bytes();
    let all = rows_of(Form::default(), text, 3, &RowLimits::default());
    for row in &all {
        let mut reader = RowReader::new(Form::default(), RowLimits::default(), row.place);
        let mut found = Vec::new();
        reader.read(&text[row.place.offset as usize..], &mut found);
        reader.read(&[], &mut found);
        assert_eq!(found[0].content, row.content);
        assert_eq!(found[0].place, row.place);
        assert_eq!(found[0].end, row.end);
    }
    assert_eq!(all.len(), 3);
}

#[test]
fn what_is_wrong_with_a_row_is_its_fault_alone() {
    let limits = RowLimits { cells_max: 3, cell_bytes_max: 4, row_bytes_max: 8 };
    let faults = |text: &[u8]| -> Vec<Option<RowFault>> {
        rows_of(Form::default(), text, 2, &limits)
            .into_iter()
            .map(|row| row.content.err())
            .collect()
    };
    let long = RowFault::CellTooLong { cell: 2, max: 4 };
    assert_eq!(faults(b"a,12345\nb,1\n"), [Some(long), None]);
    let found = faults(b"a,12345678901234567890\nb,1\n");
    assert_eq!(found, [Some(RowFault::TooLong(8)), None]);
    assert_eq!(faults(b"1,2,3,4\n1,2,3"), [Some(RowFault::TooManyCells(3)), None]);
    assert_eq!(faults(b"a\xff\nb\n"), [Some(RowFault::Undecodable), None]);
    assert_eq!(faults(b"a\n\"b\nc\n"), [None, Some(RowFault::OpenQuote)]);
}

#[test]
fn lines_of_json_are_objects() {
    let text = b"{\"a\":1}\n\n[1]\n{\"a\":\n{\"b\":\"\\n\"}";
    let rows = rows_of(Form::JsonLines, text, 5, &RowLimits::default());
    let numbers: Vec<(u64, u64)> =
        rows.iter().map(|row| (row.place.number, row.place.line)).collect();
    assert_eq!(numbers, [(1, 1), (2, 3), (3, 4), (4, 5)]);
    let object = |row: &Row| match &row.content {
        Ok(RowContent::Object(members)) => Some(Value::Object(members.clone())),
        _ => None,
    };
    let objects: Vec<Option<Value>> = rows.iter().map(object).collect();
    assert_eq!(objects, [Some(json!({"a": 1})), None, None, Some(json!({"b": "\n"}))]);
}

#[test]
fn any_charset_becomes_utf_8_and_back() {
    for name in ["utf-8", "ISO-8859-1", "windows-1252", "shift_jis", "gb18030"] {
        let charset = Charset::named(name).unwrap();
        let text = if name == "shift_jis" || name == "gb18030" { "値,1\n" } else { "Söhne,1\n" };
        let mut encoder = CharsetEncoder::new(charset);
        let mut bytes = Vec::new();
        encoder.encode(text, true, &mut bytes);
        let mut decoder = Utf8Decoder::new(charset);
        let mut decoded = Vec::new();
        bytes.chunks(1).for_each(|byte| decoder.decode(byte, false, &mut decoded));
        decoder.decode(&[], true, &mut decoded);
        assert_eq!(String::from_utf8(decoded).unwrap(), text, "{name}");
        assert_eq!(encoder.lost, 0, "{name}");
    }
    assert_eq!(Charset::named("klingon"), None);
    let mut decoder = Utf8Decoder::new(Charset::default());
    let mut decoded = Vec::new();
    decoder.decode(b"\xef\xbb\xbfa\xc3\nb", true, &mut decoded);
    assert_eq!(decoded, b"a\xff\nb", "the mark is left out, and only one byte is wrong");
    let mut encoder = CharsetEncoder::new(Charset::named("latin1").unwrap());
    let mut bytes = Vec::new();
    encoder.encode("a値b", true, &mut bytes);
    assert_eq!((bytes.as_slice(), encoder.lost), (&b"a?b"[..], 1));
}

#[test]
fn columns_are_fields_that_the_caller_knows() {
    let header = ["Number", "note", "address.zip"].map(str::to_owned);
    let mapped = ColumnNames::Header(vec![("Number".to_owned(), "refName".to_owned())]);
    let found = columns(&mapped, &header, &order(), &scope(), 10).unwrap();
    let paths: Vec<&str> = found.iter().map(|column| column.path.as_str()).collect();
    assert_eq!(paths, ["refName", "note", "address.zip"]);
    let told = |names: ColumnNames, scope: &CallerScope| {
        columns(&names, &header, &order(), scope, 10)
            .map_err(|error| error.to_string())
            .unwrap_err()
    };
    let given =
        |names: &[&str]| ColumnNames::Given(names.iter().map(|name| (*name).to_owned()).collect());
    let unknown = told(given(&["refName", "notes"]), &scope());
    assert!(unknown.starts_with("column 2, `notes`, is no field of `shop.Order`; "), "{unknown}");
    assert!(unknown.contains("note"), "{unknown}");
    let mut blind = scope();
    blind.hide(&TypeSet::new(vec![order()]), &order(), "note");
    let hidden = told(given(&["note"]), &blind);
    assert_eq!(hidden, "column 1, `note`, is no field of `shop.Order`");
    let repeated = told(given(&["address", "address.zip"]), &scope());
    assert_eq!(repeated, "column 2, `address.zip`, is the same field as another one");
    let unmapped = ColumnNames::Header(vec![("Nr".to_owned(), "refName".to_owned())]);
    assert_eq!(told(unmapped, &scope()), "the file has no column `Nr`");
    assert_eq!(told(given(&[]), &scope()), "there are no columns");
}

/// What is written is read again as the same.
#[test]
fn rows_that_are_written_are_read_again() {
    let records = [
        json!({"refName": "o-1", "displayName": "One", "note": "a;b\"c\"\r\nd", "count": -3,
            "address": {"zip": "01234", "city": " Ulm"}, "lines": [{"sku": "a,b"}, null],
            "customer": {"entityId": "0", "entityRefName": "ann"}, "activeStatus": "ACTIVE"}),
        json!({"refName": "o-2", "displayName": "=1+2", "tags": ["x", "y"]}),
    ];
    for (separator, quote) in [(",", "\""), (";", "'"), ("\\t", "\""), ("|", "\"")] {
        let form = Form::csv(separator, quote).unwrap();
        let paths = columns_of(&order());
        let writer = Writer { form, columns: paths.clone(), escape_formulas: false };
        let mut text = String::new();
        writer.header(&mut text);
        records.iter().for_each(|record| writer.row(record, &mut text));
        let rows = rows_of(form, text.as_bytes(), 7, &RowLimits::default());
        assert_eq!(cells(&rows[0]), paths);
        let names = ColumnNames::Given(paths);
        let columns = columns(&names, &[], &order(), &scope(), 100).unwrap();
        let read: Vec<Value> = rows[1..]
            .iter()
            .map(|row| Value::Object(entity(&columns, row.content.clone().unwrap()).unwrap()))
            .collect();
        // Texts are what a save reads them as.
        let mut expected = records.clone();
        expected[0]["count"] = json!("-3");
        expected[0]["customer"] = json!("ann");
        assert_eq!(read, expected, "{separator} {quote}");
    }
}

#[test]
fn a_formula_is_escaped_on_request() {
    let columns = vec!["note".to_owned(), "count".to_owned()];
    let mut writer = Writer { form: Form::default(), columns, escape_formulas: true };
    let record = json!({"note": "=HYPERLINK(\"x\")", "count": -1});
    let mut text = String::new();
    writer.row(&record, &mut text);
    assert_eq!(text, "\"'=HYPERLINK(\"\"x\"\")\",-1\r\n");
    writer.form = Form::JsonLines;
    text.clear();
    writer.row(&record, &mut text);
    assert_eq!(text, "{\"note\":\"=HYPERLINK(\\\"x\\\")\",\"count\":-1}\n");
}

#[test]
fn a_row_with_too_many_cells_or_broken_json_is_refused() {
    let names = ColumnNames::Given(vec!["note".to_owned(), "lines".to_owned()]);
    let columns = columns(&names, &[], &order(), &scope(), 10).unwrap();
    let told = |cells: &[&str]| {
        let cells = RowContent::Cells(cells.iter().map(|cell| (*cell).to_owned()).collect());
        entity(&columns, cells)
            .map_err(|faults| format!("{}: {}", faults[0].field, faults[0].message))
    };
    assert_eq!(told(&["a"]).map(Value::Object), Ok(json!({"note": "a"})));
    let many = ": the row has 3 fields, and there are 2 columns";
    assert_eq!(told(&["a", "[]", "c"]), Err(many.to_owned()));
    assert!(told(&["a", "[1"]).unwrap_err().starts_with("lines: is no JSON"));
}

#[test]
fn signs_of_a_form_are_single_characters() {
    assert_eq!(Form::csv("\t", "\""), Form::csv("\\t", "\""));
    for (separator, quote) in [(",,", "\""), ("a", "\""), ("\n", "\""), ("é", "\""), (",", "")] {
        assert!(Form::csv(separator, quote).is_err(), "{separator:?} {quote:?}");
    }
    assert!(Form::csv("\"", "\"").is_err());
}
