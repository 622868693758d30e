//! The types of records that a server declares, the fields that every record has, and what differs
//! between two sets of types. Plain values: where they are read from, and how a record is
//! validated, is decided elsewhere.

mod changes;
mod realm_types;

use regex::{Error, Regex, RegexBuilder};
use serde_json::Value;
use std::fmt;
use std::sync::LazyLock;

pub use changes::{Change, TypeChanges, changes};
pub use realm_types::RealmTypes;

/// How many bytes a pattern may have, and how many it may take when it is compiled.
const PATTERN_BYTES_MAX: usize = 1024;
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// All types of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TypeSet {
    types: Vec<RecordType>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RecordType {
    pub namespace: String,
    /// What its records are stored under.
    pub collection: String,
    pub name: String,
    pub fields: Vec<Field>,
    /// Fields that no two records have alike, together.
    pub unique: Vec<Vec<String>>,
    pub indexes: Vec<Vec<String>>,
    /// Whether a record may have fields that are not declared.
    pub additional_fields: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub required: bool,
    pub default: Option<Value>,
    /// The only values that it may have; any, if there are none.
    pub choices: Vec<Value>,
    pub bounds: Bounds,
    pub pattern: Option<Pattern>,
    pub indexed: bool,
    pub unique: bool,
}

/// The least and the greatest number, or length of a text or an array.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounds {
    pub min: Option<f64>,
    pub max: Option<f64>,
}

/// A regular expression that a part of a text must match. Matching takes linear time.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Date,
    DateTime,
    Object(Vec<Field>),
    Array(Box<Kind>),
    /// Any JSON.
    Json,
    /// A record of the type of this name.
    Reference(String),
}

/// Why a name is not that of a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownType {
    #[error("rootType is required")]
    Blank,
    #[error("unknown rootType: `{0}`")]
    Unknown(String),
    #[error("rootType `{name}` is ambiguous: {}", .candidates.join(", "))]
    Ambiguous { name: String, candidates: Vec<String> },
}

impl TypeSet {
    pub fn new(types: Vec<RecordType>) -> Self {
        Self { types }
    }

    pub fn all(&self) -> &[RecordType] {
        &self.types
    }

    /// The type of this name, with its namespace or, if no other has it, without.
    pub fn find(&self, name: &str) -> Result<&RecordType, UnknownType> {
        let name = name.trim();
        if name.is_empty() {
            return Err(UnknownType::Blank);
        }
        if let Some(found) = self.types.iter().find(|known| known.full_name() == name) {
            return Ok(found);
        }
        let found: Vec<&RecordType> =
            self.types.iter().filter(|known| known.name == name).collect();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(UnknownType::Unknown(name.to_owned())),
            _ => Err(UnknownType::Ambiguous {
                name: name.to_owned(),
                candidates: found.iter().map(|known| known.full_name()).collect(),
            }),
        }
    }
}

impl RecordType {
    /// A type that takes no other fields than these.
    pub fn new(namespace: &str, collection: &str, name: &str, fields: Vec<Field>) -> Self {
        Self {
            namespace: namespace.to_owned(),
            collection: collection.to_owned(),
            name: name.to_owned(),
            fields,
            unique: Vec::new(),
            indexes: Vec::new(),
            additional_fields: false,
        }
    }

    /// The name that no other type has.
    pub fn full_name(&self) -> String {
        if self.namespace.is_empty() {
            return self.name.clone();
        }
        format!("{}.{}", self.namespace, self.name)
    }

    /// The declared fields, and those of every record.
    pub fn all_fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().chain(built_in_fields())
    }

    /// The field that a path such as `address.city` leads to, through objects only.
    pub fn field(&self, path: &str) -> Option<&Field> {
        let mut names = path.split('.');
        let first = names.next()?;
        let mut field = self.all_fields().find(|field| field.name == first)?;
        for name in names {
            let Kind::Object(inner) = &field.kind else { return None };
            field = inner.iter().find(|field| field.name == name)?;
        }
        Some(field)
    }

    /// The paths of fields that no two records have alike, together: those of single fields, then
    /// those that the type lists.
    pub fn all_unique(&self) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        marked(&self.fields, "", |field| field.unique, &mut all);
        all.extend(self.unique.iter().cloned());
        all
    }

    /// The same of indexes, without those that unique fields have in any case.
    pub fn all_indexes(&self) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        marked(&self.fields, "", |field| field.indexed, &mut all);
        all.extend(self.indexes.iter().cloned());
        let unique = self.all_unique();
        all.retain(|paths| !unique.contains(paths));
        all
    }

    /// The paths of the declared fields that refer to records, each with the name of their type.
    pub fn references(&self) -> Vec<(String, &str)> {
        let mut found = Vec::new();
        add_references(&self.fields, "", &mut found);
        found
    }
}

/// Adds the paths of the marked fields. What is in an array has no mark.
fn marked(fields: &[Field], within: &str, mark: fn(&Field) -> bool, all: &mut Vec<Vec<String>>) {
    for field in fields {
        let path = joined(within, &field.name);
        if let Kind::Object(inner) = &field.kind {
            marked(inner, &path, mark, all);
        }
        if mark(field) {
            all.push(vec![path]);
        }
    }
}

/// The path of a field in the field of another path, which is empty for a record.
fn joined(within: &str, name: &str) -> String {
    if within.is_empty() { name.to_owned() } else { format!("{within}.{name}") }
}

fn add_references<'f>(fields: &'f [Field], within: &str, found: &mut Vec<(String, &'f str)>) {
    for field in fields {
        let path = joined(within, &field.name);
        match field.kind.element() {
            Kind::Reference(to) => found.push((path, to.as_str())),
            Kind::Object(inner) => add_references(inner, &path, found),
            Kind::String
            | Kind::Integer
            | Kind::Number
            | Kind::Boolean
            | Kind::Date
            | Kind::DateTime
            | Kind::Array(_)
            | Kind::Json => {}
        }
    }
}

impl Field {
    /// A field that may be left out and have any value of its kind.
    pub fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            required: false,
            default: None,
            choices: Vec::new(),
            bounds: Bounds::default(),
            pattern: None,
            indexed: false,
            unique: false,
        }
    }
}

impl Pattern {
    /// The pattern that this text is; else why it is none, in one line.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(format!("it has more than {PATTERN_BYTES_MAX} bytes"));
        }
        match RegexBuilder::new(text).size_limit(COMPILED_BYTES_MAX).build() {
            Ok(regex) => Ok(Self(regex)),
            Err(Error::CompiledTooBig(_)) => Err("it is too large when it is compiled".to_owned()),
            Err(error) => {
                let why = error.to_string();
                let last = why.lines().last().unwrap_or_default().trim();
                Err(last.strip_prefix("error: ").unwrap_or(last).to_owned())
            }
        }
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Two that are written alike are alike.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Kind {
    pub fn array(of: Kind) -> Self {
        Kind::Array(Box::new(of))
    }

    /// What the elements are, if it is an array of them.
    pub fn element(&self) -> &Kind {
        let mut kind = self;
        while let Kind::Array(inner) = kind {
            kind = inner;
        }
        kind
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::String => f.write_str("string"),
            Kind::Integer => f.write_str("integer"),
            Kind::Number => f.write_str("number"),
            Kind::Boolean => f.write_str("boolean"),
            Kind::Date => f.write_str("date"),
            Kind::DateTime => f.write_str("datetime"),
            Kind::Object(_) => f.write_str("object"),
            Kind::Array(of) => write!(f, "array of {of}"),
            Kind::Json => f.write_str("json"),
            Kind::Reference(to) => write!(f, "reference to {to}"),
        }
    }
}

/// The fields that every record has.
pub fn built_in_fields() -> &'static [Field] {
    static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
        let data_domain = fields(&[
            ("orgRefName", Kind::String),
            ("accountNum", Kind::String),
            ("tenantId", Kind::String),
            ("dataSegment", Kind::Integer),
            ("ownerId", Kind::String),
            ("businessTransactionId", Kind::String),
            ("locationId", Kind::String),
        ]);
        let audit_info = fields(&[
            ("creationTs", Kind::DateTime),
            ("creationIdentity", Kind::String),
            ("lastUpdateTs", Kind::DateTime),
            ("lastUpdateIdentity", Kind::String),
        ]);
        fields(&[
            ("id", Kind::String),
            ("refName", Kind::String),
            ("displayName", Kind::String),
            ("dataDomain", Kind::Object(data_domain)),
            ("activeStatus", Kind::String),
            ("tags", Kind::array(Kind::String)),
            ("advancedTags", Kind::array(Kind::Json)),
            ("auditInfo", Kind::Object(audit_info)),
            ("version", Kind::Integer),
        ])
    });
    &FIELDS
}

/// The fields of a reference, while no record is embedded in its place.
pub fn reference_fields() -> &'static [Field] {
    static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
        fields(&[
            ("entityId", Kind::String),
            ("entityType", Kind::String),
            ("entityRefName", Kind::String),
            ("entityDisplayName", Kind::String),
        ])
    });
    &FIELDS
}

fn fields(named: &[(&str, Kind)]) -> Vec<Field> {
    named.iter().map(|(name, kind)| Field::new(name, kind.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_found_by_its_name_alone_while_no_other_has_it() {
        let named = |namespace: &str| RecordType::new(namespace, "orders", "Order", Vec::new());
        let types = TypeSet::new(vec![named("shop"), RecordType::new("", "c", "City", Vec::new())]);
        assert_eq!(types.find("Order").map(RecordType::full_name), Ok("shop.Order".to_owned()));
        assert_eq!(types.find(" City ").map(RecordType::full_name), Ok("City".to_owned()));
        assert_eq!(types.find(""), Err(UnknownType::Blank));
        assert_eq!(types.find("Shop"), Err(UnknownType::Unknown("Shop".to_owned())));
        let types = TypeSet::new(vec![named("shop"), named("farm")]);
        let message = types.find("Order").map_err(|error| error.to_string());
        let ambiguous = "rootType `Order` is ambiguous: shop.Order, farm.Order";
        assert_eq!(message, Err(ambiguous.to_owned()));
        assert!(types.find("farm.Order").is_ok());
    }

    #[test]
    fn a_path_leads_through_objects_and_not_into_arrays() {
        let city = Field { unique: true, ..Field::new("city", Kind::String) };
        let address = Kind::Object(vec![city]);
        let indexed = Field { indexed: true, unique: true, ..Field::new("number", Kind::Integer) };
        let lines = Field::new("lines", Kind::array(address.clone()));
        let fields = vec![Field::new("address", address), indexed, lines];
        let mut order = RecordType::new("", "orders", "Order", fields);
        order.indexes.push(vec!["refName".to_owned()]);
        let named = |path: &str| order.field(path).map(|field| field.name.as_str());
        assert_eq!(named("address.city"), Some("city"));
        assert_eq!(named("dataDomain.ownerId"), Some("ownerId"));
        assert_eq!(named("lines.city"), None);
        assert_eq!(named("address.city.x"), None);
        assert_eq!(named("gone"), None);
        assert_eq!(order.all_unique(), [["address.city"], ["number"]]);
        assert_eq!(order.all_indexes(), [["refName"]]);
    }

    #[test]
    fn a_pattern_matches_a_part_of_a_text_in_linear_time() {
        let pattern = Pattern::new("[A-Z]-\\d+").unwrap();
        assert!(pattern.is_match("box A-12 of B") && !pattern.is_match("a-12"));
        assert_eq!(Pattern::new("[A-Z]-\\d+"), Ok(pattern));
        let refused = |text: &str| Pattern::new(text).unwrap_err();
        assert!(refused("(?=a)b").starts_with("look-around"), "{}", refused("(?=a)b"));
        assert!(refused("(a)\\1").starts_with("backreferences"), "{}", refused("(a)\\1"));
        assert_eq!(refused(&"a".repeat(1025)), "it has more than 1024 bytes");
        assert_eq!(refused("(\\w{99}){99}"), "it is too large when it is compiled");
    }
}
