//! `[inbox] notify`: a command hears of every new ask.

use crate::process::{Server, waypost};
use serde_json::Value;
use std::fs;
use std::time::Duration;
use testkit::harness::wait_for;

const NOTIFY: &str = r#"
[inbox]
notify = ["sh", "-c", "cat > told.new && mv told.new told.json && echo \"$1\" > id.txt", "sh", "{id}"]
"#;

#[test]
fn a_notify_command_runs_for_a_new_ask() {
    let around = tempfile::tempdir().unwrap();
    waypost(around.path(), &["init", "shop"]).code(0);
    let shop = around.path().join("shop");
    let settings = fs::read_to_string(shop.join("waypost.toml")).unwrap();
    fs::write(shop.join("waypost.toml"), format!("{settings}{NOTIFY}")).unwrap();
    let server = Server::of_project(&shop);
    server.run(&["plan", "run", "hello/greet", "--session", "ada"]).code(3);
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    let id = asks["items"][0]["id"].as_str().unwrap().to_owned();
    let told = wait_for("the command to hear of the ask", Duration::from_secs(60), || {
        let named = fs::read_to_string(shop.join("id.txt")).ok()?;
        let told = fs::read_to_string(shop.join("told.json")).ok()?;
        named.contains(&id).then(|| serde_json::from_str::<Value>(&told).unwrap())
    });
    assert_eq!(told["id"], id.as_str());
    assert_eq!(told["title"], asks["items"][0]["title"]);
    assert_eq!(told["session"], "ada");
}
