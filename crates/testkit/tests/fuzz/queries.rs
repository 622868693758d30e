//! What reads queries, orders and cursors: any text is read or refused with its place, what is
//! printed is read as the same tree, and what is checked can be evaluated.

use query::check::{HiddenFields, Scope, check, check_path};
use query::checked::{FieldPath, Root};
use query::evaluate::order::{SortField, read_sort, sort};
use query::evaluate::shape::shape;
use query::evaluate::{Row, takes};
use query::parser::{QUERY_BYTES_MAX, parse};
use query::plan::plan;
use query::records::cursor;
use query::types::{Field, Kind, RecordType, TypeSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use testkit::fuzz::queries::ASKED;

/// How long the longest text of a record is: what a pattern is tried on.
const TEXT_CHARS: usize = 4_000;
/// More fields than a cursor of the hunt has.
const SORT_FIELDS_MAX: usize = 4;

static TYPES: LazyLock<TypeSet> = LazyLock::new(|| {
    let next = || Kind::Reference("Order".to_owned());
    let line = Kind::Object(vec![
        Field::new("name", Kind::String),
        Field::new("load", Kind::Number),
        Field::new("next", next()),
    ]);
    let fields = vec![
        Field::new("text", Kind::String),
        Field::new("n", Kind::Number),
        Field::new("list", Kind::array(line)),
        Field::new("spot", Kind::Object(vec![Field::new("deep", Kind::Integer)])),
        Field::new("at", next()),
        Field::new("extra", Kind::Json),
        Field::new("when", Kind::DateTime),
        Field::new("day", Kind::Date),
        Field::new("open", Kind::Boolean),
    ];
    TypeSet::new(vec![RecordType::new("", "orders", "Order", fields)])
});

static RECORDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let deep = (0..40).fold(json!("leaf"), |inner, _| json!([{"a": inner}]));
    vec![
        json!({
            "id": "65b000000000000000000001", "text": "a".repeat(TEXT_CHARS), "n": 19.9,
            "list": [{"name": "a", "load": 1}, {"name": "\u{130}"}], "spot": {"deep": i64::MIN},
            "at": {"entityId": "65b000000000000000000002"}, "extra": deep, "open": true,
            "when": "2024-01-31T09:00:00.5Z", "day": "2024-01-31", "tags": ["a", "\u{1f980}"],
        }),
        json!({
            "id": "65b000000000000000000002", "text": "100% \"a\"\u{0}", "n": -5, "list": [],
            "extra": {"a": {"b": [null, 1, "x"]}}, "day": "9999-12-31", "open": null,
            "when": "9999-12-31T23:59:59.999999999Z",
        }),
    ]
});

static VARIABLES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let variables = [("owner", json!("a*\" || id:~")), ("ids", json!(["a", 1, null]))];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
});

/// Reads a query, and asks it.
pub fn asked(text: &str) {
    let tree = match parse(text) {
        Ok(tree) => tree,
        Err(fault) => {
            assert!(fault.position <= text.chars().count(), "{text:?}: {fault:?}");
            return;
        }
    };
    let printed = tree.to_string();
    if printed.len() <= QUERY_BYTES_MAX {
        assert_eq!(parse(&printed).as_ref(), Ok(&tree), "{text:?}: {printed:?}");
    }
    assert_eq!(plan(&tree).expand_paths.len(), tree.expands.len());
    let hidden = HiddenFields::default();
    let Ok(checked) = check(&tree, scope(&hidden)) else { return };
    for record in RECORDS.iter() {
        let row = Row { realm: "realm", record };
        if takes(&checked, row) {
            let found =
                |_: &str, id: &str| RECORDS.iter().find(|record| record["id"] == id).cloned();
            let _ = shape(&checked, row, &found);
        }
    }
}

/// Reads what records are sorted by, and sorts them: each is still there.
pub fn sorted(text: &str) {
    let Ok(written) = read_sort(text) else { return };
    let hidden = HiddenFields::default();
    let mut fields = Vec::new();
    for field in written {
        let Ok(path) = check_path(&field.path, scope(&hidden)) else { return };
        fields.push(SortField { path, descends: field.descends });
    }
    let mut records = RECORDS.clone();
    sort(&fields, "realm", &mut records);
    assert!(RECORDS.iter().all(|record| records.contains(record)), "{text:?}");
}

/// Reads a cursor: what it stands for is written as a cursor that stands for the same.
pub fn continued(text: &str) {
    let path = FieldPath { root: Root::Record, steps: Vec::new(), is_time: false };
    for count in 0..SORT_FIELDS_MAX {
        let fields = vec![SortField { path: path.clone(), descends: false }; count];
        let Ok(position) = cursor::read(ASKED, &fields, text) else { continue };
        let written = cursor::write(ASKED, &position);
        assert_eq!(cursor::read(ASKED, &fields, &written), Ok(position), "{text}");
    }
}

fn scope(hidden: &HiddenFields) -> Scope<'_> {
    Scope { types: &TYPES, root: &TYPES.all()[0], variables: &VARIABLES, hidden }
}
