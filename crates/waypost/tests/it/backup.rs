//! `waypost backup` and `waypost restore`, with a server that holds the folder and without one.

use crate::process::{Server, waypost};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A project with one session that waits for a person, and the folder around it.
fn project() -> (TempDir, PathBuf) {
    let around = tempfile::tempdir().unwrap();
    waypost(around.path(), &["init", "shop"]).code(0);
    let shop = around.path().join("shop");
    (around, shop)
}

/// A server of this project over what was restored.
fn over(shop: &Path, data: &Path) -> Server {
    Server::start(&[shop.to_str().unwrap(), "--data", data.to_str().unwrap()], &[])
}

fn waits(server: &Server) {
    let shown = server.json(&["session", "show", "kept"]).code(0).json();
    assert_eq!(shown["session"]["status"], "waiting", "{shown}");
}

#[test]
fn a_backup_of_a_served_project_becomes_another_server() {
    let (around, shop) = project();
    let server = Server::of_project(&shop);
    server.run(&["plan", "run", "hello/greet", "--session", "kept"]).code(3);
    let made = waypost(&shop, &["--json", "backup", "../copy"]).code(0).json();
    let beside = json!(["secret.key", "card-keys.pem"]);
    assert_eq!((&made["beside"], &made["leftOut"]), (&beside, &json!([])));
    // What is full is refused, and so is what lies inside the data.
    waypost(&shop, &["backup", "../copy"]).code(2).says("is not empty");
    waypost(&shop, &["backup", ".waypost/copy"]).code(2).says("lies inside");
    waypost(&shop, &["restore", "../copy"]).code(2).says("is not empty");
    waits(&server);
    assert_eq!(server.stop().0.code, Some(0));

    let data = around.path().join("data");
    let restored = waypost(&shop, &["restore", "../copy", "--data", "../data"]).code(0);
    assert_eq!(
        restored.stdout,
        format!("../data: 3 files, as of {}\n", made["takenAt"].as_str().unwrap())
    );
    let again = over(&shop, &data);
    waits(&again);
    let asks = again.json(&["inbox", "ls"]).code(0).json();
    let ask = asks["items"][0]["id"].as_str().unwrap().to_owned();
    again.run(&["inbox", "answer", &ask, "Ann"]).code(0);
}

#[test]
fn a_folder_that_nobody_holds_is_backed_up_by_the_command_itself() {
    let (around, shop) = project();
    let server = Server::of_project(&shop);
    server.run(&["plan", "run", "hello/greet", "--session", "kept"]).code(3);
    assert_eq!(server.stop().0.code, Some(0));
    let copy = around.path().join("copy");
    let made = waypost(&shop, &["backup", copy.to_str().unwrap()]).code(0).says("secret.key");
    assert!(made.stdout.contains(": 3 files, "), "{made:#?}");
    let data = around.path().join("data");
    waypost(&shop, &["restore", "../copy", "--data", data.to_str().unwrap()]).code(0);
    waits(&over(&shop, &data));
    // The first one continues as if nothing had been.
    waits(&Server::of_project(&shop));
}

#[test]
fn a_folder_without_data_or_backup_is_reported() {
    let (around, shop) = project();
    waypost(&shop, &["backup", "../copy"]).code(2).says("there is no database in it");
    assert!(!shop.join(".waypost").exists() && !around.path().join("copy").exists());
    fs::create_dir(around.path().join("half")).unwrap();
    waypost(&shop, &["restore", "../half"]).code(1).says("it has no `backup.json`");
    assert!(!shop.join(".waypost").exists());
}

#[test]
fn keys_that_work_again_are_listed_and_can_be_revoked() {
    let (_around, shop) = project();
    waypost(&shop, &["key", "create", "--name", "ci"]).code(0);
    waypost(&shop, &["backup", "../copy"]).code(0);
    let restored = waypost(&shop, &["restore", "../copy", "--data", "../one"]).code(0);
    let restored = restored.says("these API keys work again");
    assert!(restored.stderr.contains("  ci\n"), "{restored:#?}");
    let arguments = ["--json", "restore", "../copy", "--data", "../two", "--revoke-keys"];
    let revoked = waypost(&shop, &arguments).code(0).json();
    assert_eq!((&revoked["keys"][0]["name"], &revoked["revoked"]), (&json!("ci"), &json!(true)));
    // None of them works in what was made of it.
    waypost(&shop, &["backup", "../again", "--data", "../two"]).code(0);
    let last = waypost(&shop, &["--json", "restore", "../again", "--data", "../three"]).code(0);
    assert_eq!(last.json()["keys"], json!([]));
}
