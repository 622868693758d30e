//! Texts that say who may do what: policies out of a small grammar, and files of principals and of
//! policy tests. Most are well formed; some nest deeply, or have bytes changed. The same random
//! numbers give the same texts everywhere.

use super::mangle::scratch;
use crate::sim::rng::Rng;

/// How deep expressions nest.
const DEPTH: u64 = 4;
/// How often something is nested or repeated that costs much.
const MANY: u64 = 20_000;

const EFFECTS: &[&str] = &[
    "permit",
    "permit",
    "forbid",
    "forbid",
    "@id(\"one\") permit",
    "@ask(\"why\") forbid",
    "@ask(\"why\") @other @approvers(\"role:boss, principal:eve\") forbid",
    "@rows(\"region:${region} && cost:>#5\") forbid",
    "@rows(\"((\") @hide(\"cost, \u{e9}[0]\") forbid",
    "@nothing permit",
    "@id(\"\") forbid",
    "@description(\"\u{e9}; \\\"\") permit",
];
const WHO: &[&str] = &[
    "principal",
    "principal",
    "principal == Subject::\"ann\"",
    "principal in Role::\"clerk\"",
    "principal is Subject",
    "principal == ?principal",
    "principal in Role::\"\u{1f980}\"",
];
const DONE: &[&str] = &[
    "action",
    "action == Action::\"call\"",
    "action == Action::\"call:pay\"",
    "action in [Action::\"call:pay\", Action::\"call:lend\"]",
    "action == Action::\"read\"",
    "action in [Action::\"read\", Action::\"save\"]",
    "action == Action::\"none\"",
    "action in [Action::\"run\", Action::\"talk\"]",
];
const THINGS: &[&str] = &[
    "resource",
    "resource",
    "resource == Tool::\"pay\"",
    "resource is Session",
    "resource is Tool",
    "resource is RecordType",
    "resource == RecordType::\"shop.Order\"",
    "resource in Plan::\"a\"",
    "resource == ?resource",
];
const TERMS: &[&str] = &[
    "true",
    "false",
    "1",
    "-1",
    "9223372036854775807",
    "9223372036854775808",
    "\"text\"",
    "context.now",
    "context.arguments.amount",
    "context.arguments.rate",
    "context.arguments",
    "context",
    "principal",
    "resource",
    "resource.tags",
    "resource.owner",
    "principal.none",
    "decimal(\"0.5\")",
    "decimal(\"0.55555\")",
    "datetime(\"2026-11-16\")",
    "ip(\"::1\")",
    "Role::\"clerk\"",
    "[1, \"a\", true]",
    "{\"a\": 1}",
    "context.arguments has amount",
];
const OPERATORS: &[&str] = &["&&", "||", "==", "!=", "<", ">=", "+", "-", "*", "in", "like", "has"];

const PRINCIPALS: &[&str] = &[
    "principals:\n  ann:\n    name: Ann Lee\n    realms: {default: [operator]}\n    \
     identities:\n      - {issuer: corp, sub: \"00u1\"}\n      - local\n  nightly:\n    \
     kind: service\n    realms: {\"acme-*\": [member, boss], \"*\": [viewer]}\n",
    "{\"principals\": {\"bob\": {\"realms\": {\"default\": [\"member\"]}, \"properties\": \
     {\"floor\": 7, \"tags\": [\"a\"], \"is\": true}, \"dataDomain\": {\"tenantId\": \"acme\"}, \
     \"defaultRealm\": \"default\", \"realmOverrides\": {\"integration\": \"default\"}}}}",
    "principals: {}\n",
];
const CASES: &[&str] = &[
    "tools:\n  pay:\n    inputSchema: {type: object, properties: {amount: {type: integer}}}\n\
     cases:\n  - {name: small, roles: [clerk], act: call, tool: pay, arguments: {amount: 5}, \
     expect: allow}\n",
    "cases: []\n",
];

fn one(rng: &mut Rng, words: &[&'static str]) -> &'static str {
    rng.pick(words).copied().unwrap_or_default()
}

/// A file of policies.
pub fn policies(rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..=rng.below(3) {
        let effect = one(rng, EFFECTS);
        let who = one(rng, WHO);
        let done = one(rng, DONE);
        let thing = one(rng, THINGS);
        text.push_str(&format!("{effect} ({who}, {done}, {thing})"));
        for _ in 0..rng.below(3) {
            let clause = if rng.chance(80) { "when" } else { "unless" };
            let expression = if rng.chance(3) { deep(rng) } else { expression(rng, DEPTH) };
            text.push_str(&format!("\n{clause} {{ {expression} }}"));
        }
        text.push_str(";\n");
    }
    if !rng.chance(20) {
        return text;
    }
    spoiled(rng, text.into_bytes(), EFFECTS)
}

fn expression(rng: &mut Rng, depth: u64) -> String {
    let Some(below) = depth.checked_sub(1) else { return one(rng, TERMS).to_owned() };
    match rng.below(8) {
        0..=2 => one(rng, TERMS).to_owned(),
        3 => format!("!({})", expression(rng, below)),
        4 => {
            let condition = expression(rng, below);
            let yes = expression(rng, below);
            format!("if {condition} then {yes} else {}", expression(rng, below))
        }
        5 => format!("({}).contains({})", expression(rng, below), expression(rng, below)),
        _ => {
            let left = expression(rng, below);
            let operator = one(rng, OPERATORS);
            format!("({left}) {operator} ({})", expression(rng, below))
        }
    }
}

/// What costs a reader much of its stack.
fn deep(rng: &mut Rng) -> String {
    let times = rng.below(MANY) as usize;
    match rng.below(5) {
        0 => format!("{}1 == 1{}", "(".repeat(times), ")".repeat(times)),
        1 => format!("{}true", "true && ".repeat(times)),
        2 => format!("context{} == 1", ".a".repeat(times)),
        3 => format!("{}true", "if true then true else ".repeat(times)),
        _ => format!("{}{} == []", "[".repeat(times), "]".repeat(times)),
    }
}

/// A file of principals.
pub fn principals(rng: &mut Rng) -> String {
    let bytes = one(rng, PRINCIPALS).as_bytes().to_vec();
    spoiled(rng, bytes, PRINCIPALS)
}

/// A file of policy tests.
pub fn cases(rng: &mut Rng) -> String {
    let bytes = one(rng, CASES).as_bytes().to_vec();
    spoiled(rng, bytes, CASES)
}

/// A text with some bytes changed, or as it is.
fn spoiled(rng: &mut Rng, mut bytes: Vec<u8>, others: &[&'static str]) -> String {
    for _ in 0..rng.below(4) {
        let other = one(rng, others);
        scratch(rng, &mut bytes, other.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::principal_reader::{KnownNames, read_text};
    use kernel::limits::Limits;

    #[test]
    fn the_same_numbers_give_the_same_texts() {
        let made = |seed: u64| {
            let rng = &mut Rng::new(seed);
            (policies(rng), principals(rng), cases(rng))
        };
        assert_eq!(made(3), made(3));
        assert_ne!(made(3), made(4));
    }

    /// What is refused at once shows nothing about what is read.
    #[test]
    fn generated_principals_can_be_read() {
        let names = KnownNames { issuers: None, has_policies: true };
        for text in PRINCIPALS {
            let read = read_text(text, "principals.yaml", names, &Limits::default());
            assert!(read.is_ok(), "{text}: {read:?}");
        }
    }
}
