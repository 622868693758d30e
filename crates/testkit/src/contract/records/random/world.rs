//! The types and callers of one seed, and values for records of these types: few enough that
//! records meet each other, and such that stores easily take one for another.

use crate::contract::records::scene::NOW;
use crate::sim::rng::Rng;
use kernel::identity::principal::DataDomain;
use kernel::values::ids::RealmId;
use query::check::{HiddenFields, Scope, check_row_filter};
use query::parser::parse;
use query::records::names::fresh_id;
use query::records::requests::Author;
use query::records::scope::CallerScope;
use query::types::{Field, Kind, RecordType, TypeSet};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const TYPES: &[&str] = &["Item", "Place", "Crate"];
const REF_NAMES: &[&str] = &["nam1", "NAM1", "nam2", "nam3", "Ölfus", "ölfus", "a b c", "100%"];
const TEXTS: &[&str] = &[
    "", "a", "A", "b c", "B  C", "Ölf", "ölf", "İx", "ß", "\u{fffd}", "\u{1f600}", "100%", "a_b",
    "a%b", "x*y?", "it's \"q\"", "true", "null", "42", "19.50", "2024-01-31", "nam1",
];
const WHOLES: &[i64] =
    &[0, 1, 2, -1, 10, 9_007_199_254_740_992, 9_007_199_254_740_993, i64::MAX, i64::MIN];
/// Exact as doubles, so that a sum does not depend on its order, and none of them equal to a whole
/// number that a field gets, so that a group has one spelling.
const DECIMALS: &[f64] = &[0.25, -5.5, 19.5, 20.0, 1_000_000.0];
pub(super) const DATES: &[&str] = &["2023-12-24", "2024-01-31", "2024-02-01", "2024-02-29"];
pub(super) const MOMENTS: &[&str] = &[
    "2024-01-30T23:59:59Z",
    "2024-01-31T09:00:00Z",
    "2024-01-31T10:00:00+01:00",
    "2024-01-31T09:00:00.5Z",
    "2024-02-01T00:00:00Z",
];
/// Ids that records are given; others get fresh ones.
const IDS: u64 = 6;

/// Who asks.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) realm: &'static str,
    pub(super) scope: CallerScope,
    pub(super) author: Author,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) types: Arc<TypeSet>,
    pub(super) callers: Vec<Caller>,
}

impl World {
    pub(super) fn new(rng: &mut Rng, seed: u64) -> Self {
        let types = Arc::new(types(rng, seed));
        let callers = callers(rng, &types);
        Self { types, callers }
    }

    pub(super) fn record_type(&self, place: usize) -> &RecordType {
        &self.types.all()[place]
    }
}

/// The names of a seed's types are its own, so that a store that is opened with them has had no
/// record of these types.
fn types(rng: &mut Rng, seed: u64) -> TypeSet {
    let namespace = format!("s{seed}");
    let names = &TYPES[..2 + rng.below(2) as usize];
    let others: Vec<String> = names.iter().map(|name| format!("{namespace}.{name}")).collect();
    let mut types = Vec::new();
    for name in names {
        let mut fields = fields(rng, &others);
        fields.retain(|field| field.name == "label" || rng.chance(75));
        let collection = format!("{}s", name.to_lowercase());
        let mut record_type = RecordType::new(&namespace, &collection, name, fields);
        let has = |name: &str| record_type.fields.iter().any(|field| field.name == name);
        let has_both = has("size") && has("rent");
        if has_both && rng.chance(40) {
            record_type.unique = vec![vec!["size".to_owned(), "rent".to_owned()]];
        }
        if has_both && rng.chance(40) {
            record_type.indexes = vec![vec!["label".to_owned(), "size".to_owned()]];
        }
        record_type.additional_fields = rng.chance(30);
        types.push(record_type);
    }
    TypeSet::new(types)
}

fn fields(rng: &mut Rng, others: &[String]) -> Vec<Field> {
    let to = |rng: &mut Rng| Kind::Reference(rng.pick(others).cloned().unwrap_or_default());
    let spot = Kind::Object(vec![
        Field::new("name", Kind::String),
        Field::new("deep", Kind::Object(vec![Field::new("level", Kind::Integer)])),
    ]);
    let slot = Kind::Object(vec![
        Field::new("name", Kind::String),
        Field::new("load", Kind::Number),
        Field::new("next", to(rng)),
    ]);
    let at = to(rng);
    let many = Kind::array(to(rng));
    let mut fields = vec![
        Field::new("code", Kind::String),
        Field::new("label", Kind::String),
        Field::new("kind", Kind::String),
        Field::new("size", Kind::Integer),
        Field::new("rent", Kind::Number),
        Field::new("open", Kind::Boolean),
        Field::new("opened", Kind::Date),
        Field::new("checked", Kind::DateTime),
        Field::new("spot", spot),
        Field::new("marks", Kind::array(Kind::String)),
        Field::new("grid", Kind::array(Kind::array(Kind::Integer))),
        Field::new("slots", Kind::array(slot)),
        Field::new("at", at),
        Field::new("many", many),
        Field::new("extra", Kind::Json),
    ];
    for field in &mut fields {
        match field.name.as_str() {
            "code" => field.unique = rng.chance(40),
            "kind" => {
                field.choices = vec![json!("main"), json!("side")];
                field.default = Some(json!("side"));
            }
            "label" | "size" | "rent" | "open" | "opened" | "checked" => {
                field.indexed = rng.chance(50);
                field.required = field.name == "label" && rng.chance(20);
            }
            _ => {}
        }
    }
    fields
}

/// One who reaches everything, one in another realm, one with rows and fields of its own, and one
/// of another tenant whom a type is not shown.
fn callers(rng: &mut Rng, types: &TypeSet) -> Vec<Caller> {
    let whole = CallerScope::unlimited(types);
    let mut narrow = whole.clone();
    for record_type in types.all() {
        let filters =
            ["label:!a", "size:<#10 || size:null", "kind:side", "!!(marks:a || open:true)"];
        let fits = |filter: &&&str| row_filter(types, record_type, &mut whole.clone(), filter);
        let filters: Vec<&&str> = filters.iter().filter(fits).collect();
        if let Some(filter) = rng.pick(&filters) {
            row_filter(types, record_type, &mut narrow, filter);
        }
        for path in ["rent", "slots.load", "spot.deep", "at", "extra", "displayName"] {
            let first = path.split('.').next().unwrap_or_default();
            let is_there = record_type.all_fields().any(|field| field.name == first);
            if is_there && rng.chance(25) {
                narrow.hide(types, record_type, path);
            }
        }
    }
    let mut few = CallerScope::default();
    types.all().iter().skip(1).for_each(|record_type| few.admit(record_type));
    let administers = rng.chance(50);
    vec![
        Caller { realm: "one", scope: whole.clone(), author: author("ann", "north", false) },
        Caller { realm: "two", scope: whole, author: author("ann", "north", false) },
        Caller { realm: "one", scope: narrow, author: author("bob", "north", false) },
        Caller { realm: "one", scope: few, author: author("cem", "south", administers) },
    ]
}

/// Restricts a scope, if the filter can be asked of this type.
fn row_filter(types: &TypeSet, root: &RecordType, scope: &mut CallerScope, filter: &str) -> bool {
    let variables = BTreeMap::new();
    let hidden = HiddenFields::default();
    let checks = Scope { types, root, variables: &variables, hidden: &hidden };
    match parse(filter).and_then(|filter| check_row_filter(&filter, checks)) {
        Ok(filter) => {
            scope.restrict(root, &filter);
            true
        }
        Err(_) => false,
    }
}

fn author(subject: &str, tenant: &str, administers: bool) -> Author {
    let domain = DataDomain {
        org_ref_name: Some("acme".to_owned()),
        tenant_id: Some(tenant.to_owned()),
        ..DataDomain::default()
    };
    Author { subject: Arc::from(subject), domain, administers }
}

/// The realm of a caller in one run of a seed's operations.
pub(super) fn realm_of(caller: &Caller, run: &str) -> RealmId {
    RealmId::from(format!("{run}-{}", caller.realm).as_str())
}

/// What somebody might save: often right, sometimes not.
pub(super) fn entity(rng: &mut Rng, record_type: &RecordType) -> Value {
    let mut members = Map::new();
    if rng.chance(45) {
        members.insert("id".to_owned(), Value::from(id(rng)));
    }
    if rng.chance(50) {
        members.insert("refName".to_owned(), Value::from(name(rng)));
    }
    if rng.chance(40) {
        members.insert("displayName".to_owned(), Value::from(text(rng)));
    }
    if rng.chance(30) {
        let tags: Vec<&str> = (0..rng.below(3)).map(|_| text(rng)).collect();
        members.insert("tags".to_owned(), json!(tags));
    }
    if rng.chance(5) {
        members.insert("undeclared".to_owned(), any(rng, 2));
    }
    for field in &record_type.fields {
        let share = if refers(&field.kind) { 30 } else { 65 };
        if rng.chance(share) || field.required && rng.chance(90) {
            members.insert(field.name.clone(), value(rng, &field.kind));
        }
    }
    if members.contains_key("kind") && rng.chance(95) {
        let kind = if rng.chance(50) { "main" } else { "side" };
        members.insert("kind".to_owned(), Value::from(kind));
    }
    Value::Object(members)
}

/// One of the ids that records are given.
pub(super) fn id(rng: &mut Rng) -> String {
    fresh_id(NOW, 0xffff_0000 + rng.below(IDS))
}

/// One of the refNames that records are given.
pub(super) fn name(rng: &mut Rng) -> &'static str {
    rng.pick(REF_NAMES).copied().unwrap_or_default()
}

pub(super) fn text(rng: &mut Rng) -> &'static str {
    rng.pick(TEXTS).copied().unwrap_or_default()
}

pub(super) fn whole(rng: &mut Rng) -> i64 {
    rng.pick(WHOLES).copied().unwrap_or_default()
}

pub(super) fn decimal(rng: &mut Rng) -> f64 {
    rng.pick(DECIMALS).copied().unwrap_or_default()
}

fn value(rng: &mut Rng, kind: &Kind) -> Value {
    if rng.chance(6) {
        return Value::Null;
    }
    match kind {
        Kind::String => Value::from(text(rng)),
        Kind::Integer => Value::from(whole(rng)),
        Kind::Number if rng.chance(30) => Value::from(rng.below(3)),
        Kind::Number => Value::from(decimal(rng)),
        Kind::Boolean => Value::from(rng.chance(50)),
        Kind::Date => Value::from(rng.pick(DATES).copied()),
        Kind::DateTime => Value::from(rng.pick(MOMENTS).copied()),
        Kind::Object(fields) => {
            let share = |field: &Field| if refers(&field.kind) { 30 } else { 80 };
            let fields: Vec<&Field> =
                fields.iter().filter(|field| rng.chance(share(field))).collect();
            let members = fields.iter().map(|field| (field.name.clone(), value(rng, &field.kind)));
            Value::Object(members.collect())
        }
        Kind::Array(element) => (0..rng.below(4)).map(|_| value(rng, element)).collect(),
        Kind::Json => any(rng, 3),
        Kind::Reference(_) => match rng.below(4) {
            0 => Value::from(id(rng)),
            1 => json!({"entityId": id(rng)}),
            2 => json!({"entityRefName": name(rng)}),
            _ => Value::from(name(rng)),
        },
    }
}

/// Whether such a value may refer to a record that is not there: most do not.
fn refers(kind: &Kind) -> bool {
    match kind.element() {
        Kind::Reference(_) => true,
        Kind::Object(fields) => fields.iter().any(|field| refers(&field.kind)),
        _ => false,
    }
}

fn any(rng: &mut Rng, depth: u64) -> Value {
    match rng.below(if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => Value::from(rng.chance(50)),
        2 => Value::from(rng.below(3)),
        3 => Value::from(decimal(rng)),
        4 => Value::from(text(rng)),
        5 => (0..rng.below(3)).map(|_| any(rng, depth - 1)).collect(),
        _ => json!({"a": any(rng, depth - 1), "b": any(rng, depth - 1)}),
    }
}
