//! `waypost policy` over the example of two teams: all of it without a server.

use crate::process::waypost;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const TEAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/two-teams");
const LARGE: &str = "{subject: ann, realm: sales, roles: [member], act: call, \
    resource: {tool: \"math::add\"}, arguments: {a: 600, b: 1}}";

/// What a command prints as JSON, which ends with this code.
fn told(folder: &Path, arguments: &[&str], code: i32) -> Value {
    let all: Vec<&str> = ["--json", "policy"].iter().chain(arguments).copied().collect();
    waypost(folder, &all).code(code).json()
}

#[test]
fn the_policies_of_two_teams_pass_their_tests() {
    let folder = tempfile::tempdir().unwrap();
    let of_teams = |words: &[&str]| -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--dir", TEAMS]).collect();
        told(folder.path(), &words, 0)
    };
    assert_eq!(of_teams(&["validate"]), json!({"valid": true, "mistakes": []}));
    let tested = of_teams(&["test"]);
    assert_eq!((&tested["passed"], &tested["failed"]), (&json!(8), &json!([])), "{tested}");
    let shown = of_teams(&["show"]);
    let ids: Vec<&str> =
        shown["policies"].as_array().unwrap().iter().filter_map(|one| one["id"].as_str()).collect();
    let expected =
        ["too-much", "large-sums", "support-books-nothing-large", "no-plans-of-ones-own"];
    assert_eq!(ids, expected);
    let explained = of_teams(&["explain", LARGE]);
    assert_eq!(
        (&explained["verdict"], &explained["policies"]),
        (&json!("ask"), &json!(["large-sums"]))
    );
    let answerers = json!({"lists": [["role:lead"]], "other": true});
    assert_eq!(explained["answerers"], answerers, "{explained}");
}

#[test]
fn mistakes_and_failed_cases_end_with_a_code() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("waypost.toml"), "").unwrap();
    let policies = folder.path().join("policies");
    fs::create_dir(&policies).unwrap();
    fs::write(policies.join("a.cedar"), "permit(principal, action, resource);\n").unwrap();
    let case = "cases:\n  - {subject: ann, act: run, resource: {plan: a}, expect: deny}\n";
    fs::write(policies.join("tests.yaml"), case).unwrap();
    let tested = told(folder.path(), &["test"], 1);
    assert_eq!((&tested["passed"], &tested["failed"][0]["line"]), (&json!(0), &json!(2)));
    fs::write(policies.join("a.cedar"), "permit(principal, actions, resource);\n").unwrap();
    let validated = told(folder.path(), &["validate"], 1);
    assert_eq!(validated["valid"], json!(false));
    assert_eq!(validated["mistakes"][0]["file"], json!("policies/a.cedar"), "{validated}");
}

#[test]
fn a_server_whose_tools_nobody_lists_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let server = |open: bool| {
        let url = "http://127.0.0.1:1/rpc";
        let tools = if open { "open = true" } else { "tools = [\"read\"]" };
        format!("[providers.files]\ntype = \"rpc\"\nbase_url = \"{url}\"\n{tools}\n")
    };
    let settings = folder.path().join("waypost.toml");
    fs::write(&settings, server(true)).unwrap();
    let validated = told(folder.path(), &["validate"], 0);
    let message = validated["mistakes"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("server `files` is open"), "{validated}");
    fs::write(&settings, server(false)).unwrap();
    let validated = told(folder.path(), &["validate"], 0);
    assert_eq!(validated, json!({"valid": true, "mistakes": []}));
}

#[test]
fn policies_are_compared_with_the_types_of_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let policy = |query: &str| {
        let text = format!(
            "@id(\"own-region\") @rows(\"{query}\") @hide(\"cost\")\n\
             forbid(principal, action, resource == RecordType::\"shop.Order\");\n"
        );
        write("policies/a.cedar", &text);
    };
    write("waypost.toml", "");
    let order = "namespace: shop\nfields:\n  region: {type: string}\n  cost: {type: number}\n";
    write("entities/Order.yaml", order);
    policy("region:${region}");
    let validated = told(folder.path(), &["validate"], 0);
    assert_eq!(validated, json!({"valid": true, "mistakes": []}));
    let case = "{subject: ann, roles: [member], act: read, resource: {recordType: shop.Order}}";
    let explained = told(folder.path(), &["explain", case], 0);
    assert_eq!(explained["policies"], json!(["role:member", "own-region"]), "{explained}");
    let rows = json!([{"query": "region:${region}", "policy": "own-region"}]);
    let hidden = json!([{"fields": ["cost"], "policy": "own-region"}]);
    assert_eq!((&explained["rows"], &explained["hidden"]), (&rows, &hidden));
    policy("regoin:x");
    let validated = told(folder.path(), &["validate"], 1);
    let mistake = &validated["mistakes"][0];
    assert_eq!((&mistake["line"], &mistake["column"]), (&json!(1), &json!(26)), "{validated}");
    assert_eq!(mistake["hint"], json!("did you mean `region`?"), "{validated}");
    policy("region:x");
    write("entities/Order.yaml", "fields: 7\n");
    let validated = told(folder.path(), &["validate"], 0);
    let message = validated["mistakes"][0]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("the types of records have mistakes"), "{validated}");
}
