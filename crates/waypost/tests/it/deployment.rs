//! What `docs/deploy` ships: the systemd unit passes systemd's own check where that is installed,
//! and both it and the Containerfile start commands that this binary takes.

use crate::process::{binary_folder, waypost};
use std::fs;
use std::process::Command;

const UNIT: &str = include_str!("../../../../docs/deploy/waypost.service");
const CONTAINERFILE: &str = include_str!("../../../../docs/deploy/Containerfile");
/// Where the unit has the binary.
const INSTALLED: &str = "/usr/local/bin/waypost";

/// Fails unless the binary knows the command and all its options.
fn is_taken(words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let mut words = words.to_vec();
    words.push("--help");
    waypost(folder.path(), &words).code(0);
}

#[test]
fn the_unit_uses_existing_commands_and_options() {
    let start = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words: Vec<&str> = start.split(' ').collect();
    assert_eq!(words[0], INSTALLED);
    is_taken(&words[1..]);
}

#[test]
fn systemd_accepts_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("waypost.service");
    // The check looks whether the program is there, and the user: neither is installed here.
    let binary = binary_folder().join("waypost");
    let text = UNIT.replace(INSTALLED, binary.to_str().unwrap());
    let text = text.replace("User=waypost\nGroup=waypost\n", "User=root\nGroup=root\n");
    fs::write(&unit, text).unwrap();
    let Ok(checked) =
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output()
    else {
        println!("systemd-analyze is not installed: the unit is not checked by it");
        return;
    };
    let told = String::from_utf8_lossy(&checked.stderr).into_owned();
    let ours: Vec<&str> = told.lines().filter(|line| line.contains("waypost.service")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
}

#[test]
fn the_container_uses_existing_commands_and_options() {
    let commands: Vec<Vec<String>> = CONTAINERFILE
        .lines()
        .filter_map(|line| line.split_once("CMD [").map(|(_, rest)| format!("[{rest}")))
        .map(|list| serde_json::from_str(&list).unwrap())
        .collect();
    assert_eq!(commands.len(), 2, "a health check and the server: {commands:?}");
    for command in commands {
        assert_eq!(command[0], "waypost");
        let words: Vec<&str> = command[1..].iter().map(String::as_str).collect();
        is_taken(&words);
    }
}
