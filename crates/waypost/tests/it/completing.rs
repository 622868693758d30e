//! What a shell is offered while someone types: our own words, and names of the server.

use crate::process::waypost_with;
use crate::talk;
use std::path::Path;
use std::time::Duration;
use testkit::harness::wait_for;

const LIMIT: Duration = Duration::from_secs(120);

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

/// The same, once one of them begins so: nothing is offered while the server does not answer soon.
fn offered_once(folder: &Path, words: &[&str], begin: &str) -> Vec<String> {
    let what = format!("`{begin}` to be offered after `waypost {}`", words.join(" "));
    wait_for(&what, LIMIT, || {
        let all = offered(folder, words);
        all.iter().any(|one| one.starts_with(begin)).then_some(all)
    })
}

#[test]
fn a_shell_completes_names_of_the_server() {
    let (folder, server) = talk::served();
    let here = folder.path();
    server.run(&["run", "add 2 and 3", "--thread", "sum"]).code(3);
    assert_eq!(offered(here, &["pl"]), ["plan"]);
    assert_eq!(offered_once(here, &["agent", "show", "ad"], "adder"), ["adder"]);
    assert!(offered_once(here, &["chat", ""], "adder").contains(&"adder".to_owned()));
    assert_eq!(offered_once(here, &["session", "show", "su"], "sum"), ["sum"]);
    let asks = offered_once(here, &["inbox", "approve", "ask_"], "ask_");
    assert_eq!(asks.len(), 1, "{asks:?}");
    drop(server);
    // Without a server our own words are left.
    assert_eq!(offered(here, &["agent", "sh"]), ["show"]);
    assert_eq!(offered(here, &["agent", "show", "ad"]), Vec::<String>::new());
}
