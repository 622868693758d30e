//! Principals are read as they are written, and mistakes are reported with their line.

use super::*;
use serde_json::json;

const WHOLE: &str = "\
# Who is known here.
principals:
  ann:
    name: Ann Lee
    realms: {acme: [operator], \"acme-*\": [viewer]}
    defaultRealm: acme
    realmOverrides: {integration: acme-eu}
    dataDomain: {tenantId: acme.com, dataSegment: 3}
    properties: {floor: 7, remote: true, teams: [a, b]}
    identities:
      - {issuer: corp, sub: \"00u:1\"}
      - local
  nightly:
    kind: service
    realms: {acme: [member]}
";

fn read(text: &str) -> CheckResult<Vec<Arc<Principal>>> {
    read_beside(text, false)
}

/// The same, in a project that has policies or none.
fn read_beside(text: &str, has_policies: bool) -> CheckResult<Vec<Arc<Principal>>> {
    let issuers = [Arc::<str>::from("corp")];
    let names = KnownNames { issuers: Some(&issuers), has_policies };
    read_text(text, "principals.yaml", names, &Limits::default())
}

/// What is wrong with this text, one line each.
fn wrong(text: &str) -> String {
    let found = read(text).unwrap_err();
    found.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn all_members_of_a_principal_are_read() {
    let (all, warnings) = read(WHOLE).unwrap();
    assert_eq!(warnings, []);
    let [ann, nightly] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&*ann.id, ann.kind, ann.name.as_str()), ("ann", PrincipalKind::User, "Ann Lee"));
    let grants: Grants =
        serde_json::from_value(json!({"acme": ["operator"], "acme-*": ["viewer"]})).unwrap();
    assert_eq!(ann.realms, grants);
    assert_eq!(ann.default_realm, Some("acme".into()));
    assert_eq!(ann.realm_overrides["integration"], "acme-eu".into());
    let domain = json!({"tenantId": "acme.com", "dataSegment": 3});
    assert_eq!(json!(ann.data_domain), domain);
    assert_eq!(json!(ann.properties), json!({"floor": 7, "remote": true, "teams": ["a", "b"]}));
    let identities: Vec<&str> = ann.identities.iter().map(|identity| &**identity).collect();
    assert_eq!(identities, ["corp:00u:1", "local"]);
    assert_eq!((&*nightly.id, nightly.kind), ("nightly", PrincipalKind::Service));
}

#[test]
fn an_empty_list_of_principals_is_valid_and_a_missing_one_is_not() {
    for none in ["principals: {}", "principals:\n", "{\"principals\": {}}"] {
        assert_eq!(read(none).unwrap(), (Vec::new(), Vec::new()), "{none}");
    }
    assert!(wrong("# nothing\n").contains("holds no principals"));
    assert!(wrong("people: {}").contains("`principals` is missing"));
    assert!(wrong("- ann\n").contains("expected a map for a file of principals"));
}

#[test]
fn mistakes_are_told_with_their_line_and_all_at_once() {
    let text = "\
principals:
  corp:ann:
    realms: {acme: [member]}
  bob:
    realms: {\"a*b\": [viewr], default: [member]}
    kind: person
    defaultRealm: acme
    identities: [{issuer: crop, sub: x}, {sub: y}]
  Bob:
    properties: {x: 1.5}
";
    let found = wrong(text);
    for told in [
        "principals.yaml:2:3: error: `corp:ann` is not the id of a principal",
        "principals.yaml:5:14: error: `a*b` has a `*` that is not at its end",
        "principals.yaml:5:22: error: there is no role `viewr`; hint: did you mean `viewer`?",
        "principals.yaml:6:11: error: `kind` cannot be `person`",
        "principals.yaml:7:19: error: `acme` is not one of the principal's realms",
        "there is no issuer `crop`; hint: did you mean `corp`?",
        "`issuer` is missing",
        "principals.yaml:9:3: error: `Bob` and `bob` differ in upper and lower case only",
        "the principal has neither `realms` nor `identities`",
        "expected a text, a whole number, true or false, or a list of texts, found a number",
    ] {
        assert!(found.contains(told), "{told}\n--\n{found}");
    }
}

#[test]
fn an_identity_belongs_to_one_principal() {
    let identity = "identities: [{issuer: corp, sub: x}]";
    let found = wrong(&format!("principals:\n  a: {{{identity}}}\n  b: {{{identity}}}\n"));
    assert!(found.contains("principals.yaml:3:6: error: the identity `corp:x` belongs to `a`"));
    let twice = "identities: [local, local]";
    let found = wrong(&format!("principals: {{a: {{{twice}}}}}"));
    assert!(found.contains("`local` is listed twice"), "{found}");
    for none in ["ann@acme.com", "\"corp:\""] {
        let found = wrong(&format!("principals: {{a: {{identities: [{none}]}}}}"));
        assert!(found.contains("expected `local`, or an issuer and a `sub`"), "{found}");
    }
    let both = "identities: [\"corp:x\", {issuer: corp, sub: x}]";
    let found = wrong(&format!("principals: {{a: {{{both}}}}}"));
    assert!(found.contains("`corp:x` is listed twice"), "{found}");
}

#[test]
fn a_role_known_only_to_policies_gets_a_warning() {
    let (all, warnings) = read("principals: {a: {realms: {acme: [auditor]}}}").unwrap();
    assert!(all[0].realms.roles_in(&"acme".into()).0.contains("auditor"));
    assert!(warnings[0].to_string().contains("warning: `auditor` is not a built-in role"));
    assert!(wrong("principals: {a: {realms: {acme: [\"a b\"]}}}").contains("no role `a b`"));
}

#[test]
fn beside_policies_every_plain_name_can_be_a_role() {
    let roles = |roles: &str| {
        let text = format!("principals: {{a: {{realms: {{acme: [{roles}]}}}}}}");
        read_beside(&text, true)
    };
    let (all, warnings) = roles("clerk, member, reviewer").unwrap();
    assert_eq!(all[0].realms.roles_in(&"acme".into()).0.len(), 3);
    let told: Vec<String> = warnings.iter().map(Mistake::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("`reviewer` is not a built-in role; hint: did you mean `viewer`?"));
    assert!(roles("\"a b\"").is_err());
}

#[test]
fn a_value_is_read_like_an_entry_of_the_file() {
    let identity = json!({"issuer": "corp", "sub": "1"});
    let value = json!({"realms": {"acme": ["member"]}, "identities": [identity]});
    let corp = [Arc::<str>::from("corp")];
    let names = KnownNames { issuers: Some(&corp), has_policies: false };
    let (read, _) = read_value("ann", &value, names).unwrap();
    assert_eq!((&*read.id, read.identities.len()), ("ann", 1));
    let told = |id: &str, value: Value| {
        let names = KnownNames { issuers: Some(&[]), has_policies: false };
        let found = read_value(id, &value, names).unwrap_err();
        (found[0].pointer.clone(), found[0].message.clone())
    };
    let expected = ("/identities/0".to_owned(), "there is no issuer `corp`".to_owned());
    assert_eq!(told("ann", value), expected);
    assert!(told("local", json!({"realms": {}})).1.contains("meaning of its own"));
    assert_eq!(told("ann", json!({"realms": {"acme": "member"}})).0, "/realms/acme");
    assert!(told("ann", json!(7)).1.contains("a map for a principal"));
}

#[test]
fn names_that_look_like_members_of_json_pointers_are_found() {
    let found = wrong("principals:\n  \"a/b\": {realms: {\"A\": []}}\n");
    assert!(found.contains("principals.yaml:2:3: error: `a/b` is not the id"), "{found}");
    assert!(found.contains("`A` is not the name of a realm"), "{found}");
}
