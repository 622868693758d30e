//! What is known of principals: policies read their properties and data domains, and a change
//! counts at the next decision.

use super::{NOW, mistakes, policies, said};
use crate::cases::{Cases, Setup};
use crate::{CedarPolicy, Parts};
use futures::future::BoxFuture;
use kernel::contracts::Clock;
use kernel::contracts::policy::{Context, Policy, Request, Resource, SessionFacts};
use kernel::identity::directory::Directory;
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::principal::{Principal, Roster};
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::{Act, Caller};
use kernel::values::ids::Millis;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Who sells may run plans.
const SALES: &str = "@id(\"sales\") permit(principal, action == Action::\"run\", resource)\n\
                     when { principal.hasTag(\"department\") &&\n\
                     principal.getTag(\"department\").contains(\"sales\") };";

/// Sessions are read within a tenant.
const TENANT: &str = "@id(\"tenant\") permit(principal, action == Action::\"read\",\n\
                      resource is Session) when { principal has dataDomain.tenantId &&\n\
                      resource has owner && resource.owner has dataDomain.tenantId &&\n\
                      resource.owner.dataDomain.tenantId == principal.dataDomain.tenantId };";

/// It is always now.
struct Now;

impl Clock for Now {
    fn now(&self) -> Millis {
        NOW
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A viewer of `acme` with these members, who is `corp:<id>` too.
fn principal(id: &str, members: Value) -> Arc<Principal> {
    let viewer = Grants::one(RealmPattern::parse("acme").unwrap(), Roles::of(&[Role::Viewer]));
    let mut written = serde_json::to_value(Principal::new(id, viewer)).unwrap();
    let Value::Object(members) = members else { panic!("not members") };
    written.as_object_mut().unwrap().extend(members);
    written["identities"] = json!([format!("corp:{id}")]);
    Arc::new(serde_json::from_value(written).unwrap())
}

fn directory(number: u64, principals: &[Arc<Principal>]) -> Arc<Directory> {
    let (principals, clashes) = Roster::combine(principals, std::iter::empty());
    assert!(clashes.is_empty(), "{clashes:?}");
    Arc::new(Directory { number, principals: principals.into(), ..Directory::default() })
}

struct Stage {
    policy: CedarPolicy,
    now: Arc<Mutex<Arc<Directory>>>,
}

impl Stage {
    fn new(text: &str, principals: &[Arc<Principal>]) -> Self {
        let now = Arc::new(Mutex::new(directory(1, principals)));
        let read = now.clone();
        let directory = Box::new(move || read.lock().unwrap().clone());
        let parts = Parts { directory, clock: Arc::new(Now), builtin: true };
        Self { policy: CedarPolicy::new(parts, policies(text)), now }
    }

    /// What is said of it, twice: the second time the cache knows it.
    fn said(&self, subject: &Caller, act: Act, resource: Resource<'_>) -> String {
        let request = Request { act, subject, resource, context: Context::default() };
        let decision = self.policy.decide(&request);
        assert_eq!(self.policy.decide(&request), decision);
        said(&decision)
    }

    fn runs(&self, subject: &str) -> String {
        self.said(&Caller::new("acme", subject), Act::Run, Resource::Plan("a"))
    }
}

#[test]
fn a_property_that_changes_counts_at_the_next_decision() {
    let stage = Stage::new(SALES, &[principal("ann", json!({}))]);
    assert_eq!(stage.runs("ann"), "deny", "no property at all");
    for (number, properties, expected) in [
        (2, json!({"department": "sales"}), "allow sales"),
        (3, json!({"department": "legal"}), "deny"),
        (4, json!({"department": ["legal", "sales"]}), "allow sales"),
        (5, json!({"department": []}), "deny"),
        (6, json!({"team": "sales"}), "deny"),
    ] {
        let ann = principal("ann", json!({"properties": properties}));
        *stage.now.lock().unwrap() = directory(number, &[ann, principal("bob", json!({}))]);
        assert_eq!([stage.runs("ann"), stage.runs("corp:ann")], [expected; 2], "{properties}");
        assert_eq!([stage.runs("bob"), stage.runs("corp:zoe")], ["deny"; 2], "not theirs");
    }
}

#[test]
fn number_and_boolean_properties_are_strings() {
    let text = "@id(\"level\") permit(principal, action == Action::\"run\", resource)\n\
                when { principal.hasTag(\"level\") &&\n\
                principal.getTag(\"level\").containsAny([\"3\", \"4\", \"true\"]) };";
    for (level, expected) in [
        (json!(3), "allow level"),
        (json!("4"), "allow level"),
        (json!(true), "allow level"),
        (json!(-3), "deny"),
        (json!(33), "deny"),
        (json!(false), "deny"),
    ] {
        let ann = principal("ann", json!({"properties": {"level": level}}));
        assert_eq!(Stage::new(text, &[ann]).runs("ann"), expected, "{level}");
    }
}

#[test]
fn an_owner_and_an_actor_have_data_domains_and_properties_too() {
    let of = |tenant: &str| json!({"dataDomain": {"tenantId": tenant, "dataSegment": 3}});
    let people = [
        principal("ann", of("acme.com")),
        principal("bob", of("acme.com")),
        principal("eve", of("other.com")),
        principal("zoe", json!({"properties": {"tenantId": "acme.com"}})),
    ];
    let text = format!(
        "{TENANT}\n@id(\"elsewhere\") forbid(principal, action, resource)\n\
         unless {{ principal has dataDomain.tenantId }};\n\
         @id(\"bots\") forbid(principal, action, resource)\n\
         when {{ principal has actor && principal.actor.hasTag(\"tenantId\") }};"
    );
    let stage = Stage::new(&text, &people);
    let reads = |subject: &Caller, owner: &str| {
        let space = "session";
        let plan = None;
        let agent = None;
        let pipeline = None;
        let id = None;
        let facts = SessionFacts { owner: Some(owner), space, plan, agent, pipeline, id };
        stage.said(subject, Act::Read, Resource::Session(facts))
    };
    let ann = Caller::new("acme", "ann");
    for (owner, expected) in [
        ("ann", "allow role:viewer tenant"),
        ("bob", "allow role:viewer tenant"),
        ("corp:bob", "allow role:viewer tenant"),
        ("eve", "allow role:viewer"),
        ("zoe", "allow role:viewer"),
        ("key:aaaaaaaaaa", "allow role:viewer"),
    ] {
        assert_eq!(reads(&ann, owner), expected, "{owner}");
    }
    assert_eq!(reads(&Caller::new("acme", "zoe"), "zoe"), "deny elsewhere");
    let acting = |actor: &str| Caller { actor: Some(actor.into()), ..ann.clone() };
    assert_eq!(reads(&acting("zoe"), "bob"), "deny bots");
    assert_eq!(reads(&acting("bob"), "bob"), "allow role:viewer tenant");
}

#[test]
fn an_inexpressible_segment_is_not_absent() {
    let text = "@id(\"third\") forbid(principal, action, resource) when {\n\
                principal has dataDomain.dataSegment && principal.dataDomain.dataSegment == 3 };";
    for (segment, expected) in
        [(json!(3), "deny third"), (json!(4), "allow role:viewer"), (json!(u64::MAX), "deny third")]
    {
        let ann = principal("ann", json!({"dataDomain": {"dataSegment": segment}}));
        let stage = Stage::new(text, &[ann]);
        let read = stage.said(&Caller::new("acme", "ann"), Act::Read, Resource::Server);
        assert_eq!(read, expected, "{segment}");
    }
}

#[test]
fn optional_attributes_must_be_tested_with_has() {
    for (condition, hint) in [
        ("principal.getTag(\"a\").contains(\"b\")", "hasTag"),
        ("principal.dataDomain.tenantId == \"a\"", "has"),
    ] {
        let text = format!("permit(principal, action, resource) when {{ {condition} }};");
        let found = mistakes(&text);
        let mut hints = found.iter().filter_map(|mistake| mistake.hint.as_deref());
        assert!(hints.any(|told| told.contains(hint)), "{found:?}");
    }
}

#[test]
fn a_policy_test_can_set_properties_of_its_subject() {
    let cases = Cases::read("tests.yaml", "cases: []").unwrap();
    let setup = Setup { tools: &[], realm: "acme".into(), now: NOW, builtin: true };
    let read = policies(&format!("{SALES}\n{TENANT}"));
    for (case, expected) in [
        (
            "{subject: ann, properties: {department: [sales]}, act: run, resource: {plan: a}}",
            "allow sales",
        ),
        ("{subject: ann, act: run, resource: {plan: a}}", "deny"),
        (
            "{subject: ann, dataDomain: {tenantId: a}, act: read, \
             resource: {session: {owner: ann}}}",
            "allow tenant",
        ),
    ] {
        let decision = cases.explain(case, &read, &setup);
        assert_eq!(decision.map(|found| said(&found)), Ok(expected.to_owned()), "{case}");
    }
}

#[test]
fn policies_can_read_who_stored_a_definition() {
    let text = "@id(\"own\") permit(principal, action == Action::\"define\",\n\
                resource is Definition) when {\n\
                if resource has definedBy then resource.definedBy == principal else true };";
    let stage = Stage::new(text, &[principal("ann", json!({})), principal("bob", json!({}))]);
    let ann = Caller::new("acme", "ann");
    for (defined_by, expected) in [
        (None, "allow own"),
        (Some("ann"), "allow own"),
        (Some("corp:ann"), "allow own"),
        (Some("bob"), "deny"),
        (Some("key:aaaaaaaaaa"), "deny"),
    ] {
        let resource = Resource::Definition { kind: "plan", name: "a", defined_by };
        assert_eq!(stage.said(&ann, Act::Define, resource), expected, "{defined_by:?}");
    }
}
