//! `waypost config`: which settings hold, and where each comes from.

use crate::process::{waypost, waypost_with, write};

const SETTINGS: &str = "[server]\nport = 9000\n\n[limits]\nbody_depth_max = 8\n";

#[test]
fn every_value_is_shown_with_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", SETTINGS)]);
    let shown = waypost(folder.path(), &["config", "show", "--origin"]).code(0).stdout;
    let line = |key: &str| -> Vec<String> {
        let found = shown.lines().find(|line| line.split_whitespace().next() == Some(key));
        found.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(line("server.port"), ["server.port", "9000", "waypost.toml:2"]);
    assert_eq!(line("limits.body_depth_max"), ["limits.body_depth_max", "8", "waypost.toml:5"]);
    assert_eq!(line("server.host"), ["server.host", "\"127.0.0.1\"", "default"]);
    assert_eq!(line("admin.key"), ["admin.key", "\"unset\"", "default"]);
    let plain = waypost(folder.path(), &["config", "show"]).code(0).stdout;
    assert!(!plain.contains("waypost.toml"), "{plain}");
}

#[test]
fn the_environment_goes_first_and_secrets_stay_secret() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", SETTINGS)]);
    let variables = [("WAYPOST_PORT", "9001"), ("WAYPOST_ADMIN_KEY", "hunter2")];
    let ended = waypost_with(folder.path(), &["--json", "config", "show"], &variables).code(0);
    assert!(!ended.stdout.contains("hunter2"), "{ended:#?}");
    let shown = ended.json();
    let setting = |key: &str| {
        let all = shown["settings"].as_array().unwrap();
        all.iter().find(|setting| setting["key"] == key).unwrap().clone()
    };
    assert_eq!(setting("server.port")["value"], 9001);
    assert_eq!(setting("server.port")["origin"], "environment WAYPOST_PORT");
    assert_eq!(setting("admin.key")["value"], "set");
    assert_eq!(shown["there"], true);
}

#[test]
fn the_file_is_found_from_below_and_its_mistakes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", "[server]\nprot = 1\n"), ("deep/er/x", "")]);
    waypost(folder.path(), &["config", "show"])
        .code(2)
        .says("waypost.toml:2:1")
        .says("did you mean `port`?");
    write(folder.path(), &[("waypost.toml", "")]);
    let path = waypost(&folder.path().join("deep/er"), &["config", "path"]).code(0).stdout;
    assert!(path.ends_with("/waypost.toml\n") && !path.contains("deep"), "{path}");
    let empty = tempfile::tempdir().unwrap();
    waypost(empty.path(), &["config", "path"]).code(0).says("the defaults hold");
    waypost(empty.path(), &["config", "show", "nowhere"]).code(2).says("nowhere");
}
