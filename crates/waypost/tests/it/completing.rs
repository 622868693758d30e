//! What a shell is offered while someone types: our own words, and names of the server.

use crate::process::waypost_with;
use crate::talk;
use std::path::Path;

/// What bash is offered for the last of these words.
fn offered(folder: &Path, words: &[&str]) -> Vec<String> {
    let index = words.len().to_string();
    let variables = [
        ("WAYPOST_COMPLETE", "bash"),
        ("_CLAP_COMPLETE_INDEX", index.as_str()),
        ("_CLAP_IFS", "\n"),
    ];
    let all = [&["--", "waypost"][..], words].concat();
    let ended = waypost_with(folder, &all, &variables).code(0);
    ended.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_is_told_the_names_on_the_server() {
    let (folder, server) = talk::served();
    let here = folder.path();
    server.run(&["run", "add 2 and 3", "--thread", "sum"]).code(3);
    assert_eq!(offered(here, &["pl"]), ["plan"]);
    assert_eq!(offered(here, &["agent", "show", "ad"]), ["adder"]);
    assert!(offered(here, &["chat", ""]).contains(&"adder".to_owned()));
    assert_eq!(offered(here, &["session", "show", "su"]), ["sum"]);
    let asks = offered(here, &["inbox", "approve", "ask_"]);
    assert!(asks.len() == 1 && asks[0].starts_with("ask_"), "{asks:?}");
    drop(server);
    // Without a server our own words are left.
    assert_eq!(offered(here, &["agent", "sh"]), ["show"]);
    assert_eq!(offered(here, &["agent", "show", "ad"]), Vec::<String>::new());
}
