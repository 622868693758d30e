//! Mistakes in policy files, each where it stands.

use super::{lines, mistakes, pay, policies};
use crate::decide::Policies;

const ANY: &str = "(principal, action, resource);";

/// The places of the mistakes, and their messages.
fn found(text: &str) -> Vec<(u32, u32, String)> {
    let all = mistakes(text);
    assert!(all.iter().all(|mistake| mistake.hint.is_some()), "{:?}", lines(&all));
    all.into_iter().map(|mistake| (mistake.line, mistake.column, mistake.message)).collect()
}

fn one(text: &str) -> (u32, u32, String) {
    let mut all = found(text);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn every_policy_that_cannot_be_read_is_reported() {
    let text = format!("permit{ANY}\nallow{ANY}\n\n  forbid(principal, action);\npermit{ANY}");
    let all = found(&text);
    let mut at: Vec<u32> = all.iter().map(|(line, _, _)| *line).collect();
    at.dedup();
    assert_eq!(at, [2, 4], "{all:?}");
}

#[test]
fn a_template_is_a_mistake() {
    let text = "permit(principal == ?principal, action, resource);";
    assert_eq!(one(text), (1, 1, "a template is not a policy".to_owned()));
}

#[test]
fn an_unknown_annotation_is_a_mistake_with_a_suggestion() {
    let text = format!("@id(\"x\")\n  @aks(\"why\")\nforbid{ANY}");
    assert_eq!(one(&text), (2, 3, "unknown annotation `@aks`".to_owned()));
    let text = format!("@id(\"x\")\n@descripton(\"why\")\nforbid{ANY}");
    let hint = mistakes(&text).remove(0).hint;
    assert_eq!(hint.as_deref(), Some("did you mean `description`?"));
}

#[test]
fn ask_is_valid_only_on_a_forbid_of_calls() {
    let permit = "@ask(\"why\")\npermit(principal, action == Action::\"call\", resource);";
    assert_eq!(one(permit), (1, 1, "`@ask` is on a `permit`".to_owned()));
    for action in
        ["action", "action == Action::\"run\"", "action in [Action::\"call\", Action::\"run\"]"]
    {
        let text = format!("@id(\"a\") @ask(\"why\") forbid(principal, {action}, resource);");
        assert_eq!(one(&text), (1, 10, "`@ask` needs the action `call`".to_owned()));
    }
    for action in ["== Action::\"call\"", "in Action::\"call\"", "== Action::\"call:pay\""] {
        policies(&format!("@ask(\"why\") forbid(principal, action {action}, resource);"));
    }
}

#[test]
fn answerers_are_valid_only_beside_an_ask() {
    assert_eq!(
        one(&format!("@other forbid{ANY}")),
        (1, 1, "`@other` is used without `@ask`".to_owned())
    );
    assert_eq!(
        one(&format!("@approvers(\"role:x\") permit{ANY}")),
        (1, 1, "`@approvers` is used without `@ask`".to_owned())
    );
    for bad in ["", "x", "role:", "role:a,", "team:a", "role:a; role:b"] {
        let text = format!(
            "@ask(\"why\") @approvers(\"{bad}\")\n\
             forbid(principal, action == Action::\"call\", resource);"
        );
        let is_refused = mistakes(&text).len() == 1;
        // The last one is the name of a role that has a semicolon in it.
        assert_eq!(is_refused, bad != "role:a; role:b", "{bad}");
    }
}

#[test]
fn policy_ids_are_unique() {
    let text = format!("@id(\"a\") permit{ANY}");
    let read = Policies::read([("a.cedar", text.as_str()), ("b.cedar", text.as_str())]);
    let all = read.err().unwrap();
    assert_eq!(
        lines(&all),
        ["b.cedar:1:1: error: two policies have the id `a`; hint: the other one is in a.cedar, \
         line 1; give each an id of its own"]
    );
    policies(&format!("permit{ANY} permit{ANY}\npermit{ANY}"));
}

#[test]
fn a_policy_that_violates_the_schema_is_a_mistake() {
    let unknown = "permit(principal, action == Action::\"raed\", resource);";
    assert_eq!(found_at(unknown), [1]);
    let attribute = "permit(principal, action == Action::\"read\", resource is Session)\n\
                     when { resource.ownr == principal };";
    assert_eq!(found_at(attribute), [2]);
    let unsafe_access = "permit(principal, action == Action::\"read\", resource is Session)\n\
                         when { resource.owner == principal };";
    assert_eq!(found_at(unsafe_access), [2]);
    policies(
        "permit(principal, action == Action::\"read\", resource is Session)\n\
         when { resource has owner && resource.owner == principal };",
    );
}

/// The lines of what is wrong.
fn found_at(text: &str) -> Vec<u32> {
    let all = mistakes(text);
    let errors = all.iter().filter(|mistake| mistake.is_error());
    let mut at: Vec<u32> = errors.map(|mistake| mistake.line).collect();
    at.dedup();
    at
}

#[test]
fn arguments_can_be_read_only_if_the_head_names_tools() {
    for head in [
        "principal, action, resource",
        "principal, action == Action::\"call\", resource",
        "principal, action in [Action::\"call\", Action::\"call:pay\"], resource",
        "principal, action == Action::\"cal:pay\", resource",
    ] {
        let text = format!("forbid({head}) when {{ context.arguments.amount > 1 }};");
        let (_, _, message) = one(&text);
        assert!(message.contains("does not name tools alone"), "{head}: {message}");
    }
    policies(
        "forbid(principal, action == Action::\"call:pay\", resource)\n\
         when { context.arguments.amount > 1 };",
    );
    let hidden = "forbid(principal, action, resource) when { action == Action::\"call:pay\" };";
    assert!(one(hidden).2.contains("is in a condition"));
}

#[test]
fn sessions_cannot_be_named_in_policies() {
    let text = "forbid(principal, action == Action::\"read\", resource == Session::\"a\");";
    assert_eq!(one(text), (1, 1, "policies know no name of a `Session`".to_owned()));
}

#[test]
fn a_policy_about_a_missing_tool_is_pending() {
    let read = policies(
        "permit(principal, action == Action::\"call:pay\", resource);\n\
         forbid(principal, action == Action::\"call:gone\", resource)\n\
         when { context.arguments.amount > 1 };",
    );
    let warned = read.check([&pay()]);
    assert_eq!(
        lines(&warned),
        ["a.cedar:2:1: warning: there is no tool `gone`; hint: the policy waits for it; \
             check the name if it should be there"]
    );
}

#[test]
fn a_policy_that_does_not_fit_its_tool_is_an_error() {
    let read = policies(
        "forbid(principal, action == Action::\"call:pay\", resource)\n\
         when { context.arguments.amuont > 1 };",
    );
    let wrong = read.check([&pay()]);
    assert!(!wrong.is_empty());
    assert!(wrong.iter().all(|mistake| mistake.is_error() && mistake.line == 2));
    assert!(wrong[0].message.contains("does not fit the tool `pay`"), "{}", wrong[0].message);
}

#[test]
fn comparing_a_decimal_with_an_integer_is_an_error_with_a_hint() {
    for (condition, right) in [
        ("context.arguments.rate > 500", "rate.greaterThan(decimal(\"500.0\"))"),
        ("context.arguments.rate <= 5", "rate.lessThanOrEqual(decimal(\"5.0\"))"),
        ("500 > context.arguments.rate", "rate.lessThan(decimal(\"500.0\"))"),
    ] {
        let read = policies(&format!(
            "forbid(principal, action == Action::\"call:pay\", resource)\n\
             when {{ context.arguments has rate && {condition} }};"
        ));
        let told = lines(&read.check([&pay()]));
        let is_told = |line: &String| line.contains("error") && line.contains(right);
        assert!(told.iter().any(is_told), "{condition}: {told:?}");
    }
    let read = policies(
        "forbid(principal, action == Action::\"call:pay\", resource)\n\
         when { context.arguments has rate && \
         context.arguments.rate.greaterThan(decimal(\"500.0\")) };",
    );
    assert!(read.check([&pay()]).is_empty());
}

#[test]
fn policies_are_listed_with_their_places() {
    let read = policies(
        "@id(\"a\") permit(principal, action, resource);\n\n\
         @ask(\"why\") forbid(principal, action == Action::\"call:pay\", resource);",
    );
    let listed: Vec<String> = read
        .listed()
        .into_iter()
        .map(|one| format!("{} {} {} {:?} {:?}", one.id, one.line, one.effect, one.why, one.tools))
        .collect();
    assert_eq!(listed, ["a 1 permit None {}", "a.cedar:3 3 ask Some(\"why\") {\"pay\"}"]);
}

#[test]
fn a_policy_nested_too_deep_is_a_mistake() {
    let policy = |expression: &str| {
        format!("permit(principal, action, resource)\nwhen {{ {expression} }};\n")
    };
    let many = 20_000;
    for expression in [
        format!("{}1 == 1{}", "(".repeat(many), ")".repeat(many)),
        format!("{}true", "true && ".repeat(many)),
        format!("context{} == 1", ".a".repeat(many)),
        format!("{}true", "if true then true else ".repeat(many)),
        format!("{}1{} == 1", "[".repeat(many), "]".repeat(many)),
    ] {
        let text = format!("permit(principal, action, resource);\n{}", policy(&expression));
        let (line, _, message) = one(&text);
        assert!(line == 2 && message.contains("the policy "), "{line}: {message}");
    }
    assert!(mistakes(&policy("((((1 + 2)))) == 3 && true")).is_empty());
}
