//! The types of records that a server declares, and the fields that every record has. Plain
//! values: where they are read from, and how a record is validated, is decided elsewhere.

use serde_json::Value;
use std::sync::LazyLock;

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
    pub indexed: bool,
    pub unique: bool,
}

/// The least and the greatest number, or length of a text or an array.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounds {
    pub min: Option<f64>,
    pub max: Option<f64>,
}

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
            indexed: false,
            unique: false,
        }
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
}
