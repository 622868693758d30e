//! The policies of the records example, without a server.

use crate::process::waypost;
use serde_json::{Value, json};
use std::path::Path;

const RECORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/records");

fn told(folder: &Path, arguments: &[&str]) -> Value {
    let all: Vec<&str> =
        ["--json", "policy"].iter().chain(arguments).copied().chain(["--dir", RECORDS]).collect();
    waypost(folder, &all).code(0).json()
}

#[test]
fn the_policies_of_the_records_example_pass_their_tests() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(told(folder.path(), &["validate"])["valid"], json!(true));
    let tested = told(folder.path(), &["test"]);
    assert_eq!((&tested["passed"], &tested["failed"]), (&json!(9), &json!([])), "{tested}");
    let question = "{subject: ann, realm: shop, roles: [member, seller], act: read, \
        resource: {recordType: shop.Order}}";
    let explained = told(folder.path(), &["explain", question]);
    assert_eq!(explained["verdict"], json!("allow"), "{explained}");
    assert!(explained.to_string().contains("salesRep:${ownerId}"), "{explained}");
}
