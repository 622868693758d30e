//! The types, records and variables that the examples are about.

use query::check::{HiddenFields, Scope};
use query::types::{Field, Kind, RecordType, TypeSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const REALM: &str = "main";

pub struct Fixture {
    pub types: TypeSet,
    pub variables: BTreeMap<String, Value>,
    pub hidden: HiddenFields,
    pub records: Vec<Value>,
}

impl Fixture {
    pub fn new() -> Self {
        let types = TypeSet::new(vec![order(), customer(), product()]);
        let mut hidden = HiddenFields::default();
        hidden.hide(&order(), "margin");
        hidden.hide(&order(), "dataDomain.accountNum");
        let variables = json!({
            "ids": ["anna", "cem"], "list": "open, shipped", "min": 3, "nothing": null,
            "owner": "Dana", "day": "2024-02-01", "number": "19.90", "ok": true,
            "object": {"a": 1}, "deep": [["x"]], "empty": [], "blank": "  ",
        });
        Self {
            types,
            variables: serde_json::from_value(variables).unwrap(),
            hidden,
            records: serde_json::from_str(include_str!("records.json")).unwrap(),
        }
    }

    /// What queries for orders are checked against.
    pub fn scope(&self) -> Scope<'_> {
        self.scope_of("Order")
    }

    pub fn scope_of(&self, name: &str) -> Scope<'_> {
        Scope {
            types: &self.types,
            root: self.types.find(name).unwrap(),
            variables: &self.variables,
            hidden: &self.hidden,
        }
    }
}

pub fn order() -> RecordType {
    let line = Kind::Object(vec![
        Field::new("sku", Kind::String),
        Field::new("count", Kind::Integer),
        Field::new("product", Kind::Reference("Product".to_owned())),
    ]);
    RecordType::new(
        "shop",
        "orders",
        "Order",
        vec![
            Field::new("code", Kind::String),
            Field::new("status", Kind::String),
            Field::new("total", Kind::Number),
            Field::new("quantity", Kind::Integer),
            Field::new("paid", Kind::Boolean),
            Field::new("placed", Kind::DateTime),
            Field::new("due", Kind::Date),
            Field::new("note", Kind::String),
            Field::new("lines", Kind::array(line)),
            Field::new("matrix", Kind::array(Kind::array(Kind::Integer))),
            Field::new("customer", Kind::Reference("shop.Customer".to_owned())),
            Field::new("carrier", Kind::Reference("Carrier".to_owned())),
            Field::new("extra", Kind::Json),
            Field::new("margin", Kind::Number),
        ],
    )
}

fn customer() -> RecordType {
    RecordType::new(
        "shop",
        "customers",
        "Customer",
        vec![
            Field::new("name", Kind::String),
            Field::new("city", Kind::String),
            Field::new("vip", Kind::Boolean),
            Field::new("partner", Kind::Reference("Customer".to_owned())),
        ],
    )
}

fn product() -> RecordType {
    let fields = vec![Field::new("title", Kind::String), Field::new("price", Kind::Number)];
    RecordType::new("shop", "products", "Product", fields)
}

/// The customers and products that orders refer to.
pub fn lookup(record_type: &str, id: &str) -> Option<Value> {
    let found = match (record_type, id) {
        ("shop.Customer", "65b000000000000000000001") => json!({
            "id": id, "name": "North", "city": "Oslo",
            "partner": {"entityId": "65b000000000000000000002"},
        }),
        ("shop.Customer", "65b000000000000000000002") => {
            json!({"id": id, "name": "South", "city": "Rome", "vip": true})
        }
        ("shop.Product", "65c000000000000000000001") => json!({"id": id, "title": "Anvil"}),
        _ => return None,
    };
    Some(found)
}
