//! Policies about records: who reads, saves and removes which, and what is left of them.

use super::{Ann, NOW, lines, mistakes, policies, said};
use crate::cases::{Cases, Setup};
use crate::decide::Policies;
use crate::names_field;
use crate::records::check_records;
use kernel::contracts::policy::{Decision, Resource};
use kernel::definition::plan::mistake::Mistake;
use kernel::values::caller::Act;
use query::types::{Field, Kind, RealmTypes, RecordType, TypeSet};
use std::sync::Arc;

const ORDERS: Resource<'static> = Resource::RecordType("shop.Order");
const CUSTOMERS: Resource<'static> = Resource::RecordType("shop.Customer");

const NARROWING: &str = "
@id(\"region\") @rows(\"region:${region}\")
forbid(principal, action, resource == RecordType::\"shop.Order\")
unless { principal in Role::\"lead\" };
@id(\"cost\") @hide(\"cost, lines.margin\")
forbid(principal, action == Action::\"read\", resource is RecordType);
@id(\"small\") @rows(\"total:<#1000\") @hide(\"cost\")
forbid(principal in Role::\"trainee\", action in [Action::\"read\", Action::\"save\"],
    resource == RecordType::\"shop.Order\");
";

/// A decision with what it leaves of records.
fn left(decision: &Decision) -> String {
    let rows = decision.rows().join(" ");
    let hidden = decision.hidden().join(" ");
    format!("{} | {rows} | {hidden}", said(decision))
}

/// What a project declares.
fn shop() -> TypeSet {
    let address = Kind::Object(vec![Field::new("city", Kind::String)]);
    let line = vec![Field::new("sku", Kind::String), Field::new("margin", Kind::Number)];
    let order = vec![
        Field::new("region", Kind::String),
        Field::new("total", Kind::Number),
        Field::new("cost", Kind::Number),
        Field::new("due", Kind::Date),
        Field::new("address", address),
        Field::new("lines", Kind::array(Kind::Object(line))),
        Field::new("customer", Kind::Reference("Customer".to_owned())),
    ];
    let customer = vec![Field::new("name", Kind::String)];
    TypeSet::new(vec![
        RecordType::new("shop", "orders", "Order", order),
        RecordType::new("shop", "customers", "Customer", customer),
    ])
}

/// A policy about orders with these annotations.
fn about_orders(annotations: &str) -> String {
    format!("{annotations}\nforbid(principal, action, resource == RecordType::\"shop.Order\");")
}

fn checked(text: &str) -> Vec<Mistake> {
    check_records(&policies(text), &RealmTypes::common(shop()))
}

#[test]
fn built_in_roles_reach_records() {
    let none = policies("");
    let can = |role: &str| {
        let allowed = |act: &Act| Ann(&[role]).does(&none, *act, ORDERS).allows();
        Act::ALL.iter().filter(|act| allowed(act)).map(|act| act.name()).collect::<Vec<_>>()
    };
    assert_eq!(can("viewer"), ["read", "export"]);
    assert_eq!(can("member"), ["read", "save", "remove"]);
    assert_eq!(can("approver"), Vec::<&str>::new());
    for role in ["operator", "admin"] {
        let all = can(role);
        assert!(["read", "save", "remove"].iter().all(|act| all.contains(act)), "{role}: {all:?}");
    }
}

#[test]
fn a_policy_names_a_type_of_records_and_an_act_on_it() {
    let read = policies(
        "@id(\"clerks\") permit(principal in Role::\"clerk\",\n\
         action in [Action::\"read\", Action::\"save\"],\n\
         resource == RecordType::\"shop.Order\");\n\
         @id(\"kept\") forbid(principal, action == Action::\"remove\", resource is RecordType);",
    );
    let does = |role: &str, act, resource| said(&Ann(&[role]).does(&read, act, resource));
    assert_eq!(does("clerk", Act::Read, ORDERS), "allow clerks");
    assert_eq!(does("clerk", Act::Save, ORDERS), "allow clerks");
    assert_eq!(does("clerk", Act::Read, CUSTOMERS), "deny");
    assert_eq!(does("member", Act::Save, CUSTOMERS), "allow role:member");
    assert_eq!(does("admin", Act::Remove, CUSTOMERS), "deny kept");
    let unused = "permit(principal, action == Action::\"save\", resource is Session);";
    let (_, warnings) = Policies::read([("a.cedar", unused)]).unwrap();
    assert!(!warnings.is_empty(), "sessions are not saved");
}

#[test]
fn what_policies_leave_of_records_adds_up() {
    let read = policies(NARROWING);
    let does = |roles: &[&str], act, resource| left(&Ann(roles).does(&read, act, resource));
    assert_eq!(
        does(&["member"], Act::Read, ORDERS),
        "allow role:member region cost | region:${region} | cost lines.margin"
    );
    assert_eq!(
        does(&["member", "trainee"], Act::Read, ORDERS),
        "allow role:member region cost small | region:${region} total:<#1000 | cost lines.margin"
    );
    assert_eq!(
        does(&["member", "trainee"], Act::Save, ORDERS),
        "allow role:member region small | region:${region} total:<#1000 | cost"
    );
    assert_eq!(does(&["member", "lead"], Act::Remove, ORDERS), "allow role:member |  | ");
    assert_eq!(
        does(&["member"], Act::Read, CUSTOMERS),
        "allow role:member cost |  | cost lines.margin"
    );
    assert_eq!(does(&["member"], Act::Read, Resource::Plan("a")), "allow role:member |  | ");
}

#[test]
fn narrowing_permits_nothing_and_yields_to_a_plain_forbid() {
    let read = policies(NARROWING);
    assert_eq!(left(&Ann(&[]).does(&read, Act::Read, ORDERS)), "deny |  | ");
    let closed = format!("{NARROWING}@id(\"closed\") forbid(principal, action, resource);");
    let read = policies(&closed);
    assert_eq!(left(&Ann(&["admin"]).does(&read, Act::Read, ORDERS)), "deny closed |  | ");
}

#[test]
fn narrowing_whose_condition_cannot_be_evaluated_holds() {
    let read = policies(
        "@id(\"broken\") @rows(\"region:north\") @hide(\"cost\")\n\
         forbid(principal, action, resource is RecordType)\n\
         when { 9223372036854775807 + 1 == 1 };",
    );
    assert_eq!(
        left(&Ann(&["admin"]).does(&read, Act::Save, ORDERS)),
        "allow role:admin broken | region:north | cost"
    );
}

#[test]
fn narrowing_is_listed_with_its_query_and_fields() {
    let listed: Vec<String> = policies(NARROWING)
        .listed()
        .into_iter()
        .map(|one| {
            format!("{} {} {:?} {}", one.id, one.effect, one.rows.as_deref(), one.hide.join("+"))
        })
        .collect();
    assert_eq!(
        listed,
        [
            "region narrow Some(\"region:${region}\") ",
            "cost narrow None cost+lines.margin",
            "small narrow Some(\"total:<#1000\") cost",
        ]
    );
}

#[test]
fn narrowing_stands_only_on_a_forbid_of_acts_on_records() {
    let rows = "@id(\"a\") @rows(\"region:x\")";
    let hide = "@id(\"a\") @hide(\"cost\")";
    let of_orders = "resource == RecordType::\"shop.Order\"";
    for (text, expected) in [
        (format!("{rows} permit(principal, action, {of_orders});"), "`@rows` is on a `permit`"),
        (format!("{hide} permit(principal, action, {of_orders});"), "`@hide` is on a `permit`"),
        (format!("{rows} forbid(principal, action, resource);"), "`@rows` needs a type of records"),
        (
            format!("{hide} forbid(principal, action == Action::\"read\", resource is Session);"),
            "`@hide` needs a type of records",
        ),
        (
            format!(
                "{rows} forbid(principal, action in [Action::\"read\", Action::\"run\"],\n\
                 {of_orders});"
            ),
            "`@rows` needs acts on records",
        ),
        (
            format!("{hide} @ask(\"why\") forbid(principal, action, {of_orders});"),
            "`@hide` stands beside `@ask`",
        ),
        (
            format!(
                "@id(\"a\") @ask(\"why\")\n\
                 forbid(principal, action == Action::\"read\", {of_orders});"
            ),
            "`@ask` is on a policy about records",
        ),
    ] {
        let found = mistakes(&text);
        assert_eq!(found.len(), 1, "{text}: {:?}", lines(&found));
        assert_eq!(found[0].message, expected, "{text}");
        assert!(found[0].hint.is_some() && found[0].column > 1, "{:?}", lines(&found));
    }
    let tool = mistakes("@ask(\"why\") forbid(principal, action, resource is RecordType);");
    assert!(tool[0].hint.as_deref().unwrap().contains("call:query_deleteMany"), "{tool:?}");
}

#[test]
fn a_row_filter_that_cannot_be_read_is_a_mistake_at_its_place() {
    for (query, expected) in [
        ("", "`@rows` has no condition, so that it would leave every row"),
        ("expand(customer)", "`@rows` has `expand(..)`, which chooses no rows"),
        ("region:x && fields:[total]", "`@rows` has `fields:[..]`, which chooses no rows"),
    ] {
        let found = mistakes(&about_orders(&format!("@rows(\"{query}\")")));
        assert_eq!(found.len(), 1, "{query}: {:?}", lines(&found));
        assert_eq!((found[0].message.as_str(), found[0].line), (expected, 1));
        assert!(found[0].hint.is_some(), "{query}");
    }
    let found = mistakes(&about_orders("@id(\"a\")\n@rows(\"(region:x\")"));
    assert_eq!(found.len(), 1, "{:?}", lines(&found));
    let told = &found[0];
    assert!(told.message.starts_with("`@rows` cannot be used: "), "{}", told.message);
    assert!(told.line == 2 && told.column >= 8 && told.hint.is_some(), "{:?}", lines(&found));
}

#[test]
fn hidden_fields_are_whole_fields_that_records_can_do_without() {
    for (fields, column, part) in [
        ("", 8, "names no field here"),
        ("cost,", 13, "names no field here"),
        ("cost, lines[0]", 14, "all elements or none"),
        ("cost, id", 14, "records are named by it"),
        ("_id", 8, "records are named by it"),
        ("cost total", 8, "cannot hide `cost total`"),
    ] {
        let found = mistakes(&about_orders(&format!("@hide(\"{fields}\")")));
        assert_eq!(found.len(), 1, "{fields}: {:?}", lines(&found));
        let told = &found[0];
        assert!(told.message.contains(part) && told.hint.is_some(), "{:?}", lines(&found));
        assert_eq!((told.line, told.column), (1, column), "{fields}");
    }
    let both = mistakes(&about_orders("@rows(\"\") @hide(\"id\")"));
    assert_eq!(both.len(), 2, "{:?}", lines(&both));
}

#[test]
fn a_policy_that_names_an_unknown_type_is_a_mistake() {
    let named = |name: &str| {
        checked(&format!("forbid(principal, action, resource == RecordType::\"{name}\");"))
    };
    assert_eq!(lines(&named("shop.Order")), Vec::<String>::new());
    assert_eq!(lines(&named("waypost.Agent")), Vec::<String>::new());
    let place = "a.cedar:1:39: error: there is no type of records";
    assert_eq!(
        lines(&named("Order")),
        [format!(
            "{place} `Order`; hint: policies name a type in full: write \
             `RecordType::\"shop.Order\"`"
        )]
    );
    assert_eq!(
        lines(&named("shop.Ordre")),
        [format!("{place} `shop.Ordre`; hint: did you mean `shop.Order`?")]
    );
    assert_eq!(
        lines(&named("x")),
        [format!("{place} `x`; hint: the types are `shop.Customer`, `shop.Order`")]
    );
    let condition = checked(
        "permit(principal, action == Action::\"read\", resource is RecordType)\n\
         when { resource == RecordType::\"shop.Bill\" };",
    );
    assert_eq!((condition.len(), condition[0].line), (1, 2), "{:?}", lines(&condition));
    let nothing = check_records(&policies(&about_orders("")), &RealmTypes::default());
    assert!(nothing[0].hint.as_deref().unwrap().contains("entities/"), "{nothing:?}");
}

#[test]
fn what_does_not_fit_its_type_is_a_mistake_at_its_place() {
    let fits = about_orders(
        "@rows(\"region:${region} && customer.entityId:${customerId} && due:<${today}\")\n\
         @hide(\"cost, address.city, lines.margin, dataDomain\")",
    );
    assert_eq!(lines(&checked(&fits)), Vec::<String>::new());
    // Behind a variable, whose value is not known, fields are compared all the same.
    let found = checked(&about_orders("@rows(\"region:${region} && totl:>#5\")"));
    assert_eq!(found.len(), 1, "{:?}", lines(&found));
    let told = &found[0];
    assert!(told.is_error() && told.message.contains("totl"), "{}", told.message);
    assert!(told.hint.as_deref().unwrap().contains("total"), "{:?}", told.hint);
    assert_eq!((told.line, told.column), (1, 28));
    let found = checked(&about_orders("@id(\"a\")\n@hide(\"cost, address.town, customer.name\")"));
    let at: Vec<(u32, u32)> = found.iter().map(|told| (told.line, told.column)).collect();
    assert_eq!(at, [(2, 14), (2, 28)], "{:?}", lines(&found));
    assert!(found.iter().all(|told| told.is_error() && told.hint.is_some()));
    let any =
        "@rows(\"totl:1\") @hide(\"nope\") forbid(principal, action, resource is RecordType);";
    assert_eq!(lines(&checked(any)), Vec::<String>::new(), "types can differ");
}

#[test]
fn what_fits_in_some_realms_only_is_a_warning_that_names_the_others() {
    let own = TypeSet::new(vec![RecordType::new("shop", "orders", "Order", Vec::new())]);
    let mut types = RealmTypes::common(shop());
    types.own.insert("acme".into(), Arc::new(own));
    let read = policies(&about_orders("@rows(\"region:north\")"));
    let found = check_records(&read, &types);
    assert_eq!(found.len(), 1, "{:?}", lines(&found));
    assert!(!found[0].is_error() && found[0].message.contains("realm `acme`"), "{found:?}");
    let read = policies(&about_orders("@rows(\"regoin:north\")"));
    let found = check_records(&read, &types);
    assert!(!found.is_empty() && found.iter().all(Mistake::is_error), "{:?}", lines(&found));
}

#[test]
fn a_misspelt_variable_is_a_warning() {
    let warned = checked(&about_orders("@rows(\"region:${region} && address.city:${pTenantid}\")"));
    assert_eq!(warned.len(), 1, "{:?}", lines(&warned));
    assert!(!warned[0].is_error(), "{:?}", lines(&warned));
    assert_eq!(warned[0].hint.as_deref(), Some("did you mean `pTenantId`?"));
    assert_eq!(warned[0].column, 41);
}

#[test]
fn a_row_filter_names_fields_and_what_is_around_them() {
    let names = |rows: &str, field: &str| names_field(rows, &[field.into()]);
    assert!(names("region:x && !!(cost:<#5)", "cost"));
    assert!(names("address.city:x", "address") && names("address:~", "address.city"));
    assert!(names("lines:{margin:>#1}", "lines.margin"));
    assert!(!names("lines:{sku:x}", "lines.margin") && !names("costs:x", "cost"));
    assert!(names("((", "anything"));
    assert!(!names_field("cost:1", &[]));
}

fn failures(cases: &str) -> Vec<String> {
    let read: Policies = policies(NARROWING);
    let cases = match Cases::read("tests.yaml", cases) {
        Ok(cases) => cases,
        Err(mistakes) => return lines(&mistakes),
    };
    let setup = Setup { tools: &[], realm: "acme".into(), now: NOW, builtin: true };
    lines(&cases.run(&read, &setup))
}

#[test]
fn policy_tests_cover_records() {
    let text = "
cases:
  - {subject: ann, roles: [member], act: read, resource: {recordType: shop.Order}, expect: allow,
     by: ['role:member', region, cost], rows: 'region:${region}', hide: [lines.margin, cost]}
  - {subject: ann, roles: [member], act: read, resource: {record_type: shop.Customer},
     expect: allow, rows: []}
  - {subject: ann, roles: [member, lead], act: save, resource: {recordType: shop.Order},
     expect: allow, rows: [], hide: []}
  - {subject: ann, act: remove, resource: {recordType: shop.Order}, expect: deny}
";
    assert_eq!(failures(text), Vec::<String>::new());
    let text = "cases:
  - {subject: ann, roles: [member], act: read, resource: {recordType: shop.Order}, expect: allow,
     rows: ['region:${region}', 'total:<#1000']}
  - {subject: ann, roles: [member], act: read, resource: {recordType: shop.Order}, expect: allow,
     rows: 'region:${region}', hide: []}
";
    assert_eq!(
        failures(text),
        [
            "tests.yaml:2:5: error: expected the row filters `region:${region}`, `total:<#1000`, \
             decided `region:${region}`",
            "tests.yaml:4:5: error: expected the hidden fields none, decided `cost`, \
             `lines.margin`",
        ]
    );
}
