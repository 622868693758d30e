//! How far callers reach: by policy, tenant, run-as principal, realm and credential.

use super::*;
use kernel::contracts::policy::Obligation;
use kernel::identity::grants::Grants;
use kernel::identity::principal::{DataDomain, Principal, Roster};
use kernel::identity::realm::RealmSettings;
use kernel::values::caller::{Scope as CredentialScope, Scopes};
use query::evaluate::Row;
use query::types::{Field, Kind, RealmTypes};
use serde_json::json;

/// Who may not do what, and what holds for whom.
#[derive(Default)]
struct Rules {
    denied: Vec<(Act, &'static str)>,
    rows: Vec<(&'static str, &'static str)>,
    hidden: Vec<(&'static str, &'static str)>,
    acts_as: Option<Arc<str>>,
}

impl Policy for Rules {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let Resource::RecordType(name) = request.resource else {
            let is_admin = &*request.subject.subject == "root";
            return if is_admin { Decision::allow() } else { Verdict::Deny(String::new()).into() };
        };
        if self.denied.contains(&(request.act, name)) {
            return Verdict::Deny("by rule 7".to_owned()).into();
        }
        let rows = self.rows.iter().filter(|(of, _)| *of == name);
        let rows = rows.map(|(_, query)| Obligation::Rows((*query).into()));
        let hidden = self.hidden.iter().filter(|(of, _)| *of == name);
        let hidden = hidden.map(|(_, field)| Obligation::Hide([Arc::from(*field)].into()));
        Decision { obligations: rows.chain(hidden).collect(), ..Decision::allow() }
    }

    fn settings(&self, _realm: &RealmId) -> RealmSettings {
        RealmSettings { max_find_limit: Some(7), ..RealmSettings::default() }
    }

    fn acts_as(&self, _realm: &RealmId) -> Option<Arc<str>> {
        self.acts_as.clone()
    }
}

fn types() -> RealmTypes {
    let customer = Kind::Reference("Customer".to_owned());
    let order = vec![Field::new("customer", customer), Field::new("price", Kind::Integer)];
    let agent = RecordType::new("waypost", "agents", "Agent", Vec::new());
    RealmTypes::common(TypeSet::new(vec![
        RecordType::new("shop", "orders", "Order", order),
        RecordType::new("shop", "customers", "Customer", vec![Field::new("city", Kind::String)]),
        RecordType::new("old", "old_orders", "Order", Vec::new()),
        agent,
    ]))
}

fn directory() -> Directory {
    let of_tenant = |id: &str, tenant: &str| {
        let tenant_id = Some(tenant.to_owned());
        let data_domain = Some(DataDomain { tenant_id, ..DataDomain::default() });
        Arc::new(Principal { data_domain, ..Principal::new(id, Grants::default()) })
    };
    let principals = [of_tenant("ann", "north"), of_tenant("robot", "south")];
    let (roster, _) = Roster::combine(&principals, std::iter::empty());
    Directory { principals: Arc::new(roster), ..Directory::default() }
}

fn access(rules: Rules) -> PolicyAccess {
    let directory = Arc::new(directory());
    PolicyAccess::new(AccessParts {
        types: Arc::new(ServedTypes::knowing(types())),
        policy: Arc::new(rules),
        directory: Box::new(move || directory.clone()),
        engine: Arc::default(),
        limits: Arc::new(Limits::default()),
    })
}

fn caller(subject: &str) -> Caller {
    Caller::new("shop", subject)
}

fn reach(
    rules: Rules,
    subject: &str,
    record_type: &str,
    act: RecordAct,
) -> Result<Reach, ReachError> {
    let caller = caller(subject);
    access(rules).reach(ReachRequest { caller: &caller, record_type, act, realm: None })
}

/// Whether a record of this type is seen that has these members and this tenant.
fn sees(reach: &Reach, record_type: &str, members: Value, tenant: &str) -> bool {
    let mut record = members;
    record["dataDomain"] = json!({"tenantId": tenant});
    let record_type = reach.access.types.find(record_type).unwrap();
    reach.access.scope.admits(record_type, Row { realm: "shop", record: &record })
}

#[test]
fn a_caller_sees_its_tenant_and_one_that_administers_all() {
    let ann = reach(Rules::default(), "ann", "shop.Order", RecordAct::Read).unwrap();
    assert!(sees(&ann, "shop.Order", json!({}), "north"));
    assert!(!sees(&ann, "shop.Order", json!({}), "NORTH"), "a tenant's name has a case");
    assert!(!sees(&ann, "shop.Order", json!({}), "south"));
    assert!(sees(&ann, "Customer", json!({}), "north"), "it is referred to");
    assert!(!sees(&ann, "old.Order", json!({}), "north"), "nothing leads there");
    assert!(!ann.explains && !ann.author.administers);
    assert_eq!((ann.find_rows_max, ann.find_skip_max), (7, 100_000));
    let root = reach(Rules::default(), "root", "shop.Order", RecordAct::Read).unwrap();
    assert!(sees(&root, "shop.Order", json!({}), "south"));
    assert!(root.explains && root.author.administers);
}

#[test]
fn a_realm_that_acts_as_a_principal_shows_what_both_may_see() {
    let acting = || Rules { acts_as: Some("robot".into()), ..Rules::default() };
    let ann = reach(acting(), "ann", "shop.Order", RecordAct::Read).unwrap();
    for tenant in ["north", "south"] {
        assert!(!sees(&ann, "shop.Order", json!({}), tenant), "{tenant}");
    }
    let root = reach(acting(), "root", "shop.Order", RecordAct::Read).unwrap();
    assert!(sees(&root, "shop.Order", json!({}), "south"));
    assert!(!sees(&root, "shop.Order", json!({}), "north"));
}

#[test]
fn rows_and_fields_are_as_policies_say() {
    let rules = || Rules {
        rows: vec![("shop.Order", "price:<#9"), ("shop.Customer", "ownerless:${nobody}")],
        hidden: vec![("shop.Order", "price"), ("shop.Customer", "refName")],
        ..Rules::default()
    };
    let ann = reach(rules(), "ann", "shop.Order", RecordAct::Save).unwrap();
    assert!(sees(&ann, "shop.Order", json!({"price": 8}), "north"));
    assert!(!sees(&ann, "shop.Order", json!({"price": 9}), "north"));
    let order = ann.access.types.find("shop.Order").unwrap();
    assert!(ann.access.scope.hides(order, "price"));
    assert!(!sees(&ann, "Customer", json!({}), "north"), "its filter cannot be used");
    let refused = reach(rules(), "ann", "Customer", RecordAct::Read);
    assert!(matches!(refused, Err(ReachError::RowFilter { .. })), "{refused:?}");
}

#[test]
fn a_type_is_reached_only_for_what_is_allowed() {
    let denied = vec![(Act::Save, "shop.Order"), (Act::Read, "shop.Customer")];
    let rules = || Rules { denied: denied.clone(), ..Rules::default() };
    assert!(reach(rules(), "ann", "shop.Order", RecordAct::Remove).is_ok());
    let refused = reach(rules(), "ann", "shop.Order", RecordAct::Save).unwrap_err();
    let message = "`ann` may not do this: `save` on records of type `shop.Order`";
    assert_eq!(refused, ReachError::Forbidden(message.to_owned()));
    let unread = reach(rules(), "ann", "Customer", RecordAct::Save);
    assert!(matches!(unread, Err(ReachError::Forbidden(_))), "{unread:?}");
    let order = reach(rules(), "ann", "shop.Order", RecordAct::Read).unwrap();
    assert!(!sees(&order, "Customer", json!({}), "north"));
    let mut reading = caller("ann");
    reading.scopes = Some(Scopes::from_iter([CredentialScope::Read]));
    let asked = ReachRequest {
        caller: &reading,
        record_type: "shop.Order",
        act: RecordAct::Remove,
        realm: None,
    };
    let refused = access(Rules::default()).reach(asked).unwrap_err().to_string();
    assert!(refused.contains("does not cover `remove`"), "{refused}");
}

#[test]
fn a_name_that_two_types_have_means_the_one_that_may_be_read() {
    let ambiguous = reach(Rules::default(), "ann", "Order", RecordAct::Read).unwrap_err();
    let candidates = "rootType `Order` is ambiguous: shop.Order, old.Order";
    assert_eq!(ambiguous.to_string(), candidates);
    let denied = Rules { denied: vec![(Act::Read, "old.Order")], ..Rules::default() };
    let found = reach(denied, "ann", "Order", RecordAct::Read).unwrap();
    assert_eq!(found.record_type, "shop.Order");
    let both = vec![(Act::Read, "old.Order"), (Act::Read, "shop.Order")];
    let none = reach(Rules { denied: both, ..Rules::default() }, "ann", "Order", RecordAct::Read);
    assert_eq!(none.unwrap_err().to_string(), "unknown rootType: `Order`");
}

#[test]
fn a_call_stays_in_its_realm_and_changes_no_built_in_type() {
    let ann = caller("ann");
    let named = |realm: Option<&'static str>| ReachRequest {
        caller: &ann,
        record_type: "shop.Order",
        act: RecordAct::Read,
        realm,
    };
    assert!(access(Rules::default()).reach(named(Some("shop"))).is_ok());
    let other = access(Rules::default()).reach(named(Some("other"))).unwrap_err();
    assert!(matches!(other, ReachError::OtherRealm { .. }), "{other}");
    for act in [RecordAct::Save, RecordAct::Remove] {
        let refused = reach(Rules::default(), "root", "Agent", act);
        assert!(matches!(refused, Err(ReachError::BuiltIn { .. })), "{refused:?}");
    }
}

#[test]
fn what_is_visible_is_what_may_be_read() {
    let denied = vec![(Act::Read, "old.Order"), (Act::Remove, "shop.Order")];
    let visible = access(Rules { denied, ..Rules::default() }).visible(&caller("ann")).unwrap();
    let names: Vec<&str> = visible.rights.keys().map(String::as_str).collect();
    assert_eq!(names, ["shop.Customer", "shop.Order", "waypost.Agent"]);
    let order = TypeRights { save: true, remove: false, is_built_in: false };
    assert_eq!(visible.rights.get("shop.Order"), Some(&order));
    let agent = TypeRights { is_built_in: true, ..TypeRights::default() };
    assert_eq!(visible.rights.get("waypost.Agent"), Some(&agent));
    assert_eq!(visible.variables.get("principalId"), Some(&json!("ann")));
}
