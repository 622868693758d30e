//! Policies that read the arguments of a call: what they say, while arguments are not known, where
//! Cedar cannot express them, and when the tool changes.

use super::{Ann, pay, policies, said, tool};
use crate::decide::Policies;
use kernel::contracts::policy::Resource;
use kernel::tool::call::{ToolSpec, Verdict};
use kernel::values::caller::Act;
use serde_json::{Value, json};

/// Clerks pay, not much; interns never more than 10.
fn paying() -> Policies {
    policies(
        "@id(\"small\")\n\
         permit(principal in Role::\"clerk\", action == Action::\"call:pay\", resource)\n\
         when { context.arguments.amount <= 1000 };\n\
         @id(\"intern\") forbid(principal, action == Action::\"call:pay\", resource)\n\
         when { principal in Role::\"intern\" }\n\
         when { context.arguments.amount > 10 };\n\
         @id(\"large\") @ask(\"it is a large sum\")\n\
         forbid(principal, action == Action::\"call:pay\", resource)\n\
         when { context.arguments.amount > 500 };",
    )
}

fn called(roles: &[&str], arguments: Value) -> String {
    said(&Ann(roles).calls(&paying(), &pay(), arguments))
}

#[test]
fn arguments_can_decide_a_verdict() {
    assert_eq!(called(&["clerk"], json!({"amount": 5})), "allow small");
    assert_eq!(called(&["clerk"], json!({"amount": 501})), "ask large");
    assert_eq!(called(&["clerk"], json!({"amount": 1001})), "deny");
    assert_eq!(called(&["clerk", "intern"], json!({"amount": 11})), "deny intern");
    assert_eq!(called(&["clerk", "intern"], json!({"amount": 10})), "allow small");
    assert_eq!(called(&["member"], json!({"amount": 5_000})), "ask large");
    assert_eq!(called(&[], json!({"amount": 5})), "deny");
}

#[test]
fn a_list_shows_tools_permitted_for_some_arguments() {
    let read = paying();
    let sees = |roles: &[&str]| Ann(roles).sees(&read, &pay());
    assert!(sees(&["clerk"]), "a permit that reads arguments shows");
    assert!(sees(&["clerk", "intern"]), "a forbid that reads arguments hides nothing");
    assert!(sees(&["member"]));
    assert!(!sees(&[]), "the rest of the permit must hold");
    assert!(!sees(&["intern"]));
}

#[test]
fn inexpressible_arguments_apply_forbids_and_not_permits() {
    for bad in [
        json!({"amount": u64::MAX}),
        json!({"amount": 1.5}),
        json!({"amount": "5"}),
        json!({"amount": null}),
        json!({}),
        json!([]),
        json!({"amount": 5, "rate": 0.123_45}),
        json!({"amount": 5, "rate": 1e18}),
        json!({"amount": 5, "tags": ["a", 1]}),
    ] {
        assert_eq!(called(&["clerk"], bad.clone()), "deny", "{bad}");
        assert_eq!(called(&["member"], bad.clone()), "ask large", "{bad}");
        assert_eq!(called(&["member", "intern"], bad.clone()), "deny intern", "{bad}");
    }
    // What the schema does not name is left out, and null is absent.
    assert_eq!(
        called(&["clerk"], json!({"amount": 5, "more": 1e300, "rate": null})),
        "allow small"
    );
}

#[test]
fn numbers_out_of_range_do_not_bypass_a_forbid() {
    for number in [
        "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e19", "-1e300",
        "5e-324", "10.5",
    ] {
        let sent = format!("{{\"amount\": {number}}}");
        let arguments: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(called(&["clerk"], arguments.clone()), "deny", "{sent}");
        assert_eq!(called(&["member"], arguments.clone()), "ask large", "{sent}");
        assert_eq!(called(&["member", "intern"], arguments), "deny intern", "{sent}");
    }
}

#[test]
fn numbers_are_decimals_and_lists_are_sets() {
    let read = policies(
        "@id(\"rate\") permit(principal, action == Action::\"call:pay\", resource)\n\
         when { context.arguments has rate &&\n\
                context.arguments.rate.lessThan(decimal(\"0.5\")) };\n\
         @id(\"tags\") permit(principal, action == Action::\"call:pay\", resource)\n\
         when { context.arguments has tags && context.arguments.tags.contains(\"ok\") };",
    );
    let call = |arguments: Value| said(&Ann(&[]).calls(&read, &pay(), arguments));
    assert_eq!(call(json!({"amount": 1, "rate": 0.4999})), "allow rate");
    assert_eq!(call(json!({"amount": 1, "rate": 0.5})), "deny");
    assert_eq!(call(json!({"amount": 1, "rate": 0})), "allow rate");
    assert_eq!(call(json!({"amount": 1, "tags": ["a", "ok"]})), "allow tags");
    assert_eq!(call(json!({"amount": 1, "tags": []})), "deny");
}

/// The same tool after its server changed the type of the amount.
fn changed() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"amount": {"type": "string"}}});
    tool("pay", schema)
}

#[test]
fn a_schema_change_under_a_forbid_denies_the_tool() {
    let read = paying();
    let small = json!({"amount": 5});
    assert_eq!(said(&Ann(&["clerk"]).calls(&read, &pay(), small.clone())), "allow small");
    let decision = Ann(&["member"]).calls(&read, &changed(), json!({"amount": "5"}));
    assert_eq!(said(&decision), "deny large", "what asked denies as well");
    let Verdict::Deny(why) = &decision.verdict else { panic!("{:?}", decision.verdict) };
    assert!(why.contains("does not fit"), "{why}");
    assert!(!Ann(&["member"]).sees(&read, &changed()), "it is denied, so no list shows it");
    // The first version is still the tool of another realm.
    assert_eq!(said(&Ann(&["clerk"]).calls(&read, &pay(), small)), "allow small");
}

#[test]
fn a_renamed_argument_does_not_void_a_forbid_that_tests_for_it() {
    let read = policies(
        "@id(\"f\") forbid(principal, action == Action::\"call:pay\", resource)\n\
         when { context.arguments has amount && context.arguments.amount > 10 };",
    );
    let ann = Ann(&["member"]);
    assert_eq!(said(&ann.calls(&read, &pay(), json!({"amount": 1}))), "allow role:member");
    let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}});
    let renamed = tool("pay", schema);
    assert_eq!(said(&ann.calls(&read, &renamed, json!({"sum": 1_000_000}))), "deny f");
    assert!(!read.check([&renamed]).is_empty());
}

#[test]
fn the_denial_of_an_unfit_policy_says_how_to_fix_it() {
    for effect in ["forbid", "permit"] {
        let read = policies(&format!(
            "@id(\"rates\") {effect}(principal, action == Action::\"call:pay\", resource)\n\
             when {{ context.arguments has rate && context.arguments.rate > 500 }};"
        ));
        let decision = Ann(&[]).calls(&read, &pay(), json!({"amount": 1, "rate": 600}));
        let Verdict::Deny(why) = &decision.verdict else { panic!("{:?}", decision.verdict) };
        let right = "context.arguments.rate.greaterThan(decimal(\"500.0\"))";
        assert!(why.contains("policy `rates` does not fit") && why.contains(right), "{why}");
        assert!(!read.misfits([&pay()]).is_empty(), "{effect}");
    }
}

#[test]
fn a_permit_that_does_not_fit_its_tools_schema_is_ignored() {
    let read = policies(
        "@id(\"small\") permit(principal, action == Action::\"call:pay\", resource)\n\
         when { context.arguments.amount <= 1000 };",
    );
    let call = |spec: &ToolSpec| said(&Ann(&[]).calls(&read, spec, json!({"amount": 5})));
    assert_eq!(call(&pay()), "allow small");
    assert_eq!(call(&changed()), "deny");
    assert!(!Ann(&[]).sees(&read, &changed()));
}

#[test]
fn policies_about_all_calls_apply_to_tools_with_an_action_of_their_own() {
    for scope in ["action == Action::\"call\"", "action in Action::\"call\"", "action"] {
        let read = policies(&format!(
            "@id(\"p\") permit(principal, action == Action::\"call:pay\", resource)\n\
             when {{ context.arguments.amount <= 1000 }};\n\
             @id(\"stop\") forbid(principal, {scope}, resource == Tool::\"pay\");"
        ));
        let call = said(&Ann(&[]).calls(&read, &pay(), json!({"amount": 5})));
        assert_eq!(call, "deny stop", "{scope}");
    }
}

#[test]
fn a_policy_may_read_the_arguments_of_several_tools() {
    let read = policies(
        "@id(\"f\") forbid(principal, action in [Action::\"call:pay\", Action::\"call:lend\"], \
         resource) when { context.arguments.amount > 10 };",
    );
    let schema = json!({"type": "object", "required": ["amount"],
        "properties": {"amount": {"type": "integer"}, "until": {"type": "string"}}});
    let pay = pay();
    let lend = tool("lend", schema);
    assert!(read.check([&pay, &lend]).is_empty());
    let call = |spec: &ToolSpec, amount: i64| {
        said(&Ann(&["member"]).calls(&read, spec, json!({"amount": amount})))
    };
    for spec in [&pay, &lend] {
        assert_eq!(call(spec, 10), "allow role:member");
        assert_eq!(call(spec, 11), "deny f");
    }
    // One of them changes; the other one is judged as before.
    let lend = tool("lend", json!({"type": "object"}));
    assert_eq!(call(&lend, 1), "deny f");
    assert_eq!(call(&pay, 10), "allow role:member");
}

#[test]
fn other_tools_have_no_action_of_their_own() {
    let read = paying();
    let other = tool("other", json!({}));
    assert_eq!(said(&Ann(&["member"]).calls(&read, &other, json!({}))), "allow role:member");
    let resource = Resource::Tool(&other);
    assert_eq!(said(&Ann(&["clerk"]).does(&read, Act::Call, resource)), "deny");
}
