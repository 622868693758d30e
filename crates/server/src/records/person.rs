//! Who a caller is for records: whose data domain new records get, and what the variables of
//! queries stand for.

use kernel::identity::directory::Directory;
use kernel::identity::principal::DataDomain;
use kernel::values::ids::RealmId;
use query::records::domain_of;
use query::records::reach::RecordAct;
use query::records::requests::Author;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where records are, in the words of permissions.
const AREA: &str = "integration";
const FUNCTIONAL_DOMAIN: &str = "query";

/// What the directory knows of a subject.
pub(super) struct Person {
    subject: Arc<str>,
    domain: DataDomain,
    default_realm: Option<RealmId>,
    properties: BTreeMap<String, Value>,
}

impl Person {
    /// A subject that is no principal has nothing but its name.
    pub(super) fn of(directory: &Directory, subject: &Arc<str>) -> Self {
        match directory.principals.of_subject(subject) {
            Some(known) => {
                let principal = &known.principal;
                Self {
                    subject: principal.id.clone(),
                    domain: principal.data_domain.clone().unwrap_or_default(),
                    default_realm: principal.default_realm.clone(),
                    properties: principal.properties.clone(),
                }
            }
            None => Self {
                subject: subject.clone(),
                domain: DataDomain::default(),
                default_realm: None,
                properties: BTreeMap::new(),
            },
        }
    }

    pub(super) fn author(&self, administers: bool) -> Author {
        Author { subject: self.subject.clone(), domain: self.domain.clone(), administers }
    }

    /// The tenant whose records it sees.
    pub(super) fn tenant(&self, realm: &RealmId) -> String {
        self.domain.tenant_id.clone().unwrap_or_else(|| realm.as_str().to_owned())
    }

    /// The built-in ones come before properties of the same name.
    pub(super) fn variables(&self, realm: &RealmId, act: RecordAct) -> BTreeMap<String, Value> {
        let domain = domain_of(&self.author(false), realm);
        let member = |name: &str| domain.get(name).cloned().unwrap_or(Value::Null);
        let usual = self.default_realm.as_ref().unwrap_or(realm);
        let built_in = [
            ("principalId", Value::from(&*self.subject)),
            ("pAccountId", member("accountNum")),
            ("pTenantId", member("tenantId")),
            ("systemTenantId", member("tenantId")),
            ("ownerId", member("ownerId")),
            ("orgRefName", member("orgRefName")),
            ("dcTenantId", member("tenantId")),
            ("dcOrgRefName", member("orgRefName")),
            ("dcAccountId", member("accountNum")),
            ("dcDataSegment", member("dataSegment")),
            ("defaultRealm", Value::from(usual.as_str())),
            ("area", Value::from(AREA)),
            ("functionalDomain", Value::from(FUNCTIONAL_DOMAIN)),
            ("action", Value::from(act.name())),
        ];
        let mut variables = self.properties.clone();
        for (name, value) in built_in {
            // What a caller does not have must not be what a property says.
            variables.remove(name);
            if !value.is_null() {
                variables.insert(name.to_owned(), value);
            }
        }
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::grants::Grants;
    use kernel::identity::principal::{Principal, Roster};
    use serde_json::json;

    fn directory(principal: Principal) -> Directory {
        let (roster, clashes) = Roster::combine(&[Arc::new(principal)], std::iter::empty());
        assert!(clashes.is_empty());
        Directory { principals: Arc::new(roster), ..Directory::default() }
    }

    #[test]
    fn a_principal_has_its_domain_and_its_properties_as_variables() {
        let domain = DataDomain {
            org_ref_name: Some("acme".to_owned()),
            tenant_id: Some("north".to_owned()),
            ..DataDomain::default()
        };
        let properties = BTreeMap::from([
            ("region".to_owned(), json!(["n", "s"])),
            ("pTenantId".to_owned(), json!("south")),
            ("pAccountId".to_owned(), json!("made up")),
        ]);
        let principal = Principal {
            data_domain: Some(domain),
            properties,
            ..Principal::new("ann", Grants::default())
        };
        let person = Person::of(&directory(principal), &"ann".into());
        let variables = person.variables(&"shop".into(), RecordAct::Save);
        assert_eq!(person.tenant(&"shop".into()), "north");
        for (name, value) in [
            ("principalId", json!("ann")),
            ("pTenantId", json!("north")),
            ("ownerId", json!("ann")),
            ("orgRefName", json!("acme")),
            ("defaultRealm", json!("shop")),
            ("action", json!("save")),
            ("region", json!(["n", "s"])),
        ] {
            assert_eq!(variables.get(name), Some(&value), "{name}");
        }
        assert_eq!(variables.get("pAccountId"), None);
    }

    #[test]
    fn whoever_is_no_principal_belongs_to_its_realm() {
        let person = Person::of(&Directory::default(), &"local".into());
        assert_eq!(person.tenant(&"shop".into()), "shop");
        let author = person.author(true);
        assert_eq!((&*author.subject, author.administers), ("local", true));
        let variables = person.variables(&"shop".into(), RecordAct::Read);
        assert_eq!(variables.get("ownerId"), Some(&json!("local")));
        assert_eq!(variables.get("dcTenantId"), Some(&json!("shop")));
    }
}
