//! Principals: people and programs that a server knows by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A principal as it is defined; the path has its id.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrincipalBody {
    /// A person or a program.
    #[serde(default)]
    pub kind: PrincipalKind,
    /// A name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its roles in each realm. `*` at the end of a name fits any characters.
    #[serde(default)]
    pub realms: BTreeMap<String, Vec<String>>,
    /// The realm of its requests that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_realm: Option<String>,
    /// The same for the endpoints of one area, such as `integration`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub realm_overrides: BTreeMap<String, String>,
    /// What its records are stamped with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_domain: Option<DataDomain>,
    /// What policies can ask about: texts, whole numbers, true or false, and lists of texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Value>,
    /// Who it is elsewhere: `<issuer>:<sub>`, and `local` for what was begun in local mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<String>,
}

/// What records are stamped with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DataDomain {
    /// The organisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org_ref_name: Option<String>,
    /// The account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_num: Option<String>,
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// The segment of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_segment: Option<u64>,
    /// The owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
}

/// What a principal is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum PrincipalKind {
    /// A person.
    #[default]
    User,
    /// A program.
    Service,
}

impl PrincipalKind {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Service => "service",
        }
    }
}

/// Where a principal is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum PrincipalOrigin {
    /// In `principals.yaml`, which alone changes it.
    File,
    /// In the store.
    Stored,
}

impl PrincipalOrigin {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Stored => "stored",
        }
    }
}

/// A principal, and how it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Principal {
    /// Its id, which is the subject of its requests.
    pub id: String,
    /// Where it is defined.
    pub origin: PrincipalOrigin,
    /// What is said of it there.
    pub definition: PrincipalBody,
    /// When it was disabled; absent where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub disabled_at: Option<String>,
    /// The subject that last changed what is stored of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub changed_at: Option<String>,
}
