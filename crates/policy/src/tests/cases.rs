//! The tests beside the policies.

use super::{NOW, lines, pay, policies, said};
use crate::cases::{Cases, Setup};
use std::sync::Arc;

const POLICIES: &str = "@id(\"small\") permit(principal in Role::\"clerk\", \
     action == Action::\"call:pay\", resource) when { context.arguments.amount <= 1000 };\n\
     @id(\"asks\") @ask(\"why\") forbid(principal, action == Action::\"call:pay\", resource)\n\
     when { context.arguments.amount > 500 };";

fn failures(text: &str) -> Vec<String> {
    let cases = match Cases::read("tests.yaml", text) {
        Ok(cases) => cases,
        Err(mistakes) => return lines(&mistakes),
    };
    let tools = [Arc::new(pay())];
    let setup = Setup { tools: &tools, realm: "acme".into(), now: NOW, builtin: true };
    lines(&cases.run(&policies(POLICIES), &setup))
}

#[test]
fn passing_policy_tests_report_nothing() {
    let text = "
cases:
  - name: a small sum
    subject: ann
    roles: [clerk]
    act: call
    resource: {tool: pay}
    arguments: {amount: 5}
    expect: allow
    by: small
  - {subject: ann, roles: [clerk], act: call, resource: {tool: pay}, arguments: {amount: 600},
     expect: ask, by: [asks]}
  - {subject: ann, act: run, resource: inlinePlan, expect: deny}
  - {subject: ann, roles: [member], act: read, expect: allow,
     resource: {session: {owner: ann, plan: a}}}
  - {subject: ann, roles: [member], act: answer, expect: deny,
     resource: {ask: {kind: approve, session: {owner: bob}}}}
  - {subject: ann, roles: [admin], act: administer, resource: server, expect: allow}
  - {subject: ann, roles: [member], act: call, resource: {tool: described}, expect: allow}
tools:
  described: {inputSchema: {type: object}, reach: reads, tags: [x]}
";
    assert_eq!(failures(text), Vec::<String>::new());
    assert_eq!(Cases::read("tests.yaml", text).map(|cases| cases.len()), Ok(7));
}

#[test]
fn a_failing_policy_test_is_reported_with_its_place() {
    let text = "cases:
  - {name: too much, subject: ann, roles: [clerk], act: call, resource: {tool: pay},
     arguments: {amount: 2000}, expect: allow}
  - {subject: ann, roles: [clerk], act: call, resource: {tool: pay}, arguments: {amount: 5},
     expect: allow, by: asks}
  - {subject: ann, act: call, resource: {tool: gone}, expect: deny}
";
    assert_eq!(
        failures(text),
        [
            "tests.yaml:2:5: error: `too much`: expected allow, decided deny by no policy: \
             no role or policy permits `call` here",
            "tests.yaml:4:5: error: expected a decision by asks, decided by small",
            "tests.yaml:6:5: error: there is no tool `gone`; describe it in `tools`",
        ]
    );
}

#[test]
fn an_unreadable_tests_file_is_a_mistake() {
    assert!(failures("[]")[0].starts_with("tests.yaml:1:1: error: expected a map with `cases`"));
    assert!(failures("case: []\ncases: []")[0].contains("unknown key `case`"));
    let wrong = failures("cases:\n  - {subject: ann, act: dance, resource: server, expect: deny}");
    assert!(wrong[0].starts_with("tests.yaml:2:5: error: unknown variant `dance`"), "{wrong:?}");
    assert!(failures("cases: {}")[0].contains("`cases` is not a list"));
    assert!(failures("cases: []\ntools: []")[0].contains("`tools` is not a map"));
}

#[test]
fn a_single_policy_test_can_be_explained() {
    let described = "cases: []\ntools: {lend: {inputSchema: {type: object}}}";
    let cases = Cases::read("tests.yaml", described).unwrap();
    let tools = [Arc::new(pay())];
    let setup = Setup { tools: &tools, realm: "acme".into(), now: NOW, builtin: true };
    let read = policies(POLICIES);
    let explained = |case: &str| cases.explain(case, &read, &setup).map(|found| said(&found));
    let large = "{subject: ann, roles: [clerk], act: call, resource: {tool: pay}, \
                 arguments: {amount: 600}}";
    assert_eq!(explained(large), Ok("ask asks".to_owned()));
    let lend = "{subject: ann, roles: [member], act: call, resource: {tool: lend}}";
    assert_eq!(explained(lend), Ok("allow role:member".to_owned()));
    assert!(explained("{subject: ann}").is_err() && explained("[]").is_err());
}
