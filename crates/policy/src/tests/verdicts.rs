//! Verdicts: what permits, what forbids, what asks, and by which policies.

use super::{Ann, pay, policies, said};
use crate::decide::Policies;
use kernel::contracts::policy::{Answerer, Context, Obligation, Resource, SessionFacts, Trigger};
use kernel::tool::call::Verdict;
use kernel::values::caller::Act;
use kernel::values::datum::{Origin, Source, Sources};
use serde_json::json;

fn session(owner: Option<&str>) -> Resource<'_> {
    let space = "session";
    let plan = Some("invoices");
    Resource::Session(SessionFacts { owner, space, plan, agent: None, pipeline: None, id: None })
}

#[test]
fn without_a_permit_everything_is_denied() {
    let none = policies("");
    assert_eq!(said(&Ann(&[]).does(&none, Act::Read, Resource::Server)), "deny");
    assert_eq!(said(&Ann(&["auditor"]).does(&none, Act::Run, Resource::Plan("a"))), "deny");
}

#[test]
fn built_in_roles_permit_beside_the_files() {
    let read = policies("@id(\"all\") permit(principal, action == Action::\"run\", resource);");
    let run = |roles: &[&str]| said(&Ann(roles).does(&read, Act::Run, Resource::Plan("a")));
    assert_eq!(run(&["member"]), "allow role:member all");
    assert_eq!(run(&[]), "allow all");
    assert_eq!(
        said(&Ann(&["viewer"]).does(&read, Act::Read, Resource::Server)),
        "allow role:viewer"
    );
}

#[test]
fn a_forbid_overrides_every_permit() {
    let read = policies(
        "@id(\"p\") permit(principal in Role::\"clerk\", action, resource);\n\
         @id(\"f\") forbid(principal, action == Action::\"run\", resource == Plan::\"a\");",
    );
    let run = |roles: &[&str], plan| said(&Ann(roles).does(&read, Act::Run, Resource::Plan(plan)));
    assert_eq!(run(&["clerk", "admin"], "a"), "deny f");
    assert_eq!(run(&["clerk"], "b"), "allow p");
    assert_eq!(run(&["other"], "b"), "deny");
}

#[test]
fn policies_can_read_resource_attributes() {
    let read = policies(
        "@id(\"own\") permit(principal, action == Action::\"read\", resource is Session)\n\
         when { resource has owner && resource.owner == principal };\n\
         @id(\"plan\") permit(principal, action == Action::\"cancel\", resource is Session)\n\
         when { resource has plan && resource.plan == Plan::\"invoices\" };\n\
         @id(\"ask\") permit(principal, action == Action::\"answer\", resource is Ask)\n\
         when { resource.kind == \"approve\" && resource.session.space == \"session\" };\n\
         @id(\"tool\") permit(principal, action == Action::\"read\", resource is Tool)\n\
         when { resource.reach == \"writes\" && resource.tags.contains(\"money\") };\n\
         @id(\"inline\") forbid(principal, action == Action::\"run\", resource is Plan)\n\
         when { resource.inline };\n\
         @id(\"here\")\n\
         permit(principal, action == Action::\"define\", resource in Realm::\"acme\");\n\
         @id(\"there\")\n\
         permit(principal, action == Action::\"operate\", resource in Realm::\"x\");\n\
         @id(\"as\")\n\
         permit(principal, action == Action::\"impersonate\", resource == Principal::\"bob\");",
    );
    let ann = Ann(&[]);
    assert_eq!(said(&ann.does(&read, Act::Read, session(Some("ann")))), "allow own");
    assert_eq!(said(&ann.does(&read, Act::Read, session(Some("bob")))), "deny");
    assert_eq!(said(&ann.does(&read, Act::Read, session(None))), "deny");
    assert_eq!(said(&ann.does(&read, Act::Cancel, session(None))), "allow plan");
    let Resource::Session(session) = session(None) else { unreachable!() };
    let ask = |kind| said(&ann.does(&read, Act::Answer, Resource::Ask { kind, session }));
    assert_eq!((ask("approve"), ask("fix")), ("allow ask".to_owned(), "deny".to_owned()));
    assert_eq!(said(&ann.does(&read, Act::Read, Resource::Tool(&pay()))), "allow tool");
    let admin = Ann(&["admin"]);
    assert_eq!(said(&admin.does(&read, Act::Run, Resource::InlinePlan)), "deny inline");
    assert_eq!(said(&admin.does(&read, Act::Run, Resource::Plan("a"))), "allow role:admin");
    let definition = Resource::Definition { kind: "plan", name: "a", defined_by: None };
    assert_eq!(said(&ann.does(&read, Act::Define, definition)), "allow here");
    assert_eq!(said(&ann.does(&read, Act::Operate, Resource::Server)), "deny");
    let acts_as = |id: &str| said(&ann.does(&read, Act::Impersonate, Resource::Principal(id)));
    assert_eq!((acts_as("bob"), acts_as("eve")), ("allow as".to_owned(), "deny".to_owned()));
}

const ASKS: &str = "@id(\"p\") permit(principal, action in Action::\"call\", resource);\n\
     @id(\"one\") @ask(\"it writes\") @approvers(\"role:boss, principal:eve\") @other\n\
     forbid(principal, action == Action::\"call\", resource)\n\
     when { resource.reach == \"writes\" };\n\
     @id(\"two\") @ask(\"money\") @approvers(\"role:cfo\") @other\n\
     forbid(principal, action in Action::\"call\", resource == Tool::\"pay\");";

#[test]
fn an_ask_applies_only_where_something_permits() {
    let read = policies(ASKS);
    let decision = Ann(&[]).calls(&read, &pay(), json!({"amount": 1}));
    assert_eq!(said(&decision), "ask one two");
    assert_eq!(decision.verdict, Verdict::Ask("it writes; money".to_owned()));
    let role = |name: &str| Answerer::Role(name.into());
    assert_eq!(
        decision.obligations,
        [
            Obligation::Answerers(vec![role("boss"), Answerer::Principal("eve".into())]),
            Obligation::Other,
            Obligation::Answerers(vec![role("cfo")]),
        ]
    );
    let unpermitted = policies(&ASKS.replacen("permit", "forbid", 1));
    assert_eq!(said(&Ann(&["admin"]).calls(&unpermitted, &pay(), json!({}))), "deny p");
    let nothing: String = ASKS.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap();
    let nothing = policies(&nothing);
    assert_eq!(said(&Ann(&[]).calls(&nothing, &pay(), json!({}))), "deny");
}

#[test]
fn a_failing_forbid_applies_and_a_failing_permit_does_not() {
    // Whole numbers of 64 bits overflow: Cedar cannot evaluate this, whatever is asked.
    let fails = "when { 9223372036854775807 + 1 == 1 }";
    let text = |head: &str| {
        format!(
            "@id(\"p\") permit(principal, action, resource);\n\
             @id(\"x\") {head}(principal, action == Action::\"call\", resource) {fails};"
        )
    };
    let call = |head: &str| said(&Ann(&[]).calls(&policies(&text(head)), &pay(), json!({})));
    assert_eq!(call("forbid"), "deny x");
    assert_eq!(call("@ask(\"why\") forbid"), "ask x");
    assert_eq!(call("permit"), "allow p");
    let alone = policies(&format!("permit(principal, action, resource) {fails};"));
    assert_eq!(said(&Ann(&[]).does(&alone, Act::Read, Resource::Server)), "deny");
}

#[test]
fn only_applicable_policies_are_evaluated() {
    // Evaluated, this one would hold: it fails.
    let fails = "when { 9223372036854775807 + 1 == 1 }";
    let read = policies(&format!(
        "forbid(principal, action == Action::\"call\", resource == Tool::\"other\") {fails};\n\
         forbid(principal, action == Action::\"call:other\", resource) {fails};\n\
         forbid(principal, action == Action::\"run\", resource) {fails};\n\
         forbid(principal, action == Action::\"read\", resource is Plan) {fails};"
    ));
    assert_eq!(said(&Ann(&["member"]).calls(&read, &pay(), json!({}))), "allow role:member");
    assert_eq!(
        said(&Ann(&["viewer"]).does(&read, Act::Read, Resource::Server)),
        "allow role:viewer"
    );
}

#[test]
fn policies_can_read_the_trigger_and_the_time() {
    let read = policies(
        "@id(\"run\") permit(principal, action == Action::\"call\", resource)\n\
         when { context.trigger == \"run\" };\n\
         @id(\"day\") permit(principal, action == Action::\"read\", resource)\n\
         when { context.now < datetime(\"2026-11-17\") };\n\
         @id(\"late\") permit(principal, action == Action::\"operate\", resource)\n\
         when { context.now > datetime(\"2026-11-17\") };",
    );
    let spec = pay();
    let ann = Ann(&[]);
    let of_run = Context { trigger: Trigger::Run, ..Context::default() };
    let tool = Resource::Tool(&spec);
    assert_eq!(said(&ann.asks(&read, Act::Call, tool, of_run)), "allow run");
    assert_eq!(said(&ann.does(&read, Act::Call, tool)), "deny");
    assert_eq!(said(&ann.does(&read, Act::Read, Resource::Server)), "allow day");
    assert_eq!(said(&ann.does(&read, Act::Operate, Resource::Server)), "deny");
    assert!(read.read_time());
}

#[test]
fn policies_can_read_argument_sources_where_known() {
    let read = policies(
        "@id(\"all\") permit(principal, action == Action::\"call\", resource);\n\
         @id(\"model\") forbid(principal, action == Action::\"call\", resource)\n\
         when { context has sources && context.sources.contains(\"turn\") };",
    );
    let only_input = policies(
        "@id(\"input\") permit(principal, action == Action::\"call:pay\", resource)\n\
         when { context has sources && context.sources == [\"input\"] };\n\
         @id(\"any\") permit(principal, action == Action::\"read\", resource)\n\
         when { context has sources };",
    );
    let spec = pay();
    let ann = Ann(&[]);
    let arguments = json!({"amount": 1});
    let tool = Resource::Tool(&spec);
    let called = |policies: &Policies, origins: &[Origin]| {
        let source = |from: &Origin| Source { from: from.clone(), path: "$.x".to_owned() };
        let of_amount: Vec<Source> = origins.iter().map(source).collect();
        let known = (!of_amount.is_empty()).then(|| ("/amount".to_owned(), of_amount));
        let sources: Sources = known.into_iter().collect();
        let arguments = Some(&arguments);
        let sources = Some(&sources);
        let context = Context { arguments, sources, trigger: Trigger::Run };
        said(&ann.asks(policies, Act::Call, tool, context))
    };
    let input = Origin::Input;
    let turn = Origin::Turn(1);
    assert_eq!(called(&read, std::slice::from_ref(&input)), "allow all");
    assert_eq!(called(&read, &[input.clone(), turn.clone()]), "deny model");
    assert_eq!(called(&read, &[]), "allow all");
    assert_eq!(said(&ann.does(&read, Act::Call, tool)), "allow all");

    assert_eq!(called(&only_input, std::slice::from_ref(&input)), "allow input");
    assert_eq!(called(&only_input, &[input, turn]), "deny");
    assert_eq!(called(&only_input, &[]), "deny", "nobody knows where they came from");
    assert!(ann.sees(&only_input, &spec), "some call is permitted");
    assert_eq!(said(&ann.does(&only_input, Act::Read, Resource::Server)), "deny", "no call");
}

#[test]
fn the_policy_version_depends_on_texts_and_not_their_order() {
    let a = ("a", "permit(principal, action, resource);");
    let b = ("b", "");
    let version = |files: [(&str, &str); 2]| {
        Policies::read(files).map(|(read, _)| read.version().clone()).unwrap()
    };
    assert_eq!(version([a, b]), version([b, a]));
    assert_ne!(version([a, b]), version([("a", ""), ("b", a.1)]));
}

#[test]
fn an_inbox_shows_whom_roles_and_the_heads_of_permits_name() {
    let read = policies(
        "permit(principal in Role::\"lead\", action == Action::\"answer\", resource);\n\
         permit(principal == Subject::\"eve\", action, resource);\n\
         permit(principal in Role::\"admin\", action, resource);\n\
         permit(principal in Role::\"clerk\", action == Action::\"read\", resource);\n\
         forbid(principal in Role::\"intern\", action == Action::\"answer\", resource);",
    );
    assert_eq!(
        read.answerers(true),
        ["owner", "role:approver", "role:operator", "role:admin", "role:lead", "principal:eve"]
    );
    assert_eq!(
        read.answerers(false),
        ["owner", "role:admin", "role:lead", "principal:eve"],
        "an administrator answers what its own runs ask as well"
    );
}
