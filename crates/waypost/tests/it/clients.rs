//! Servers that are taken out of the settings, and clients that learn where the server is.

use crate::process::waypost;
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_server_is_added_and_taken_out_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("waypost.toml");
    let before = "# mine\n[server]\nport = 8421\n";
    fs::write(&file, before).unwrap();
    waypost(folder.path(), &["mcp", "add", "notes", "http://127.0.0.1:9000/mcp"]).code(0);
    waypost(folder.path(), &["mcp", "add", "files", "--env", "A=b", "--", "files-mcp"]).code(0);
    let both = fs::read_to_string(&file).unwrap();
    let tried = waypost(folder.path(), &["mcp", "rm", "notes", "--dry-run"]).code(0);
    assert!(tried.stdout.contains("would remove `[mcp.servers.notes]`"), "{tried:#?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), both);

    waypost(folder.path(), &["mcp", "rm", "nots"]).code(1).says("did you mean `notes`?");
    waypost(folder.path(), &["mcp", "rm", "notes"]).code(0);
    let one = fs::read_to_string(&file).unwrap();
    assert!(one.starts_with(before) && !one.contains("notes") && one.contains("files"), "{one}");
    waypost(folder.path(), &["mcp", "remove", "files"]).code(0);
    let none = fs::read_to_string(&file).unwrap();
    assert_eq!(none.trim_end(), before.trim_end());

    fs::write(&file, "mcp.servers = {odd = {url = \"http://127.0.0.1:1/mcp\"}}\n").unwrap();
    waypost(folder.path(), &["mcp", "rm", "odd"]).code(2).says("waypost.toml:1");
}

#[test]
fn a_client_entry_names_the_server_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".cursor/mcp.json");
    let install = ["mcp", "install", "cursor", "--server", "http://127.0.0.1:8420"];
    let tried = waypost(folder.path(), &[&install[..], &["--dry-run"]].concat()).code(0);
    assert!(tried.stdout.contains("+    \"waypost\": {"), "{tried:#?}");
    assert!(!file.exists(), "nothing was written");

    fs::create_dir(folder.path().join(".cursor")).unwrap();
    fs::write(&file, r#"{"mcpServers": {"other": {"url": "http://127.0.0.1:1/mcp"}}}"#).unwrap();
    waypost(folder.path(), &install).code(0).says("written to");
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let ours = json!({"url": "http://127.0.0.1:8420/mcp"});
    assert_eq!(written["mcpServers"]["waypost"], ours);
    assert_eq!(written["mcpServers"]["other"]["url"], "http://127.0.0.1:1/mcp");
    waypost(folder.path(), &install).code(0).says("has it already");

    fs::write(&file, "// mine\n{}").unwrap();
    waypost(folder.path(), &install).code(2).says("waypost mcp snippet cursor");
    assert_eq!(fs::read_to_string(&file).unwrap(), "// mine\n{}");
}
