//! The exit codes, as the binary lists them.

use super::head;
use crate::process::waypost;

const ABOUT: &str = "\
How `waypost` ends, for scripts and agents. With `--json` a failure is also one JSON line on
standard error: `{\"error\", \"code\", \"exit\", \"hint\"}`.";

pub(super) fn page() -> String {
    let folder = tempfile::tempdir().unwrap();
    let codes = waypost(folder.path(), &["--json", "help", "exit-codes"]).code(0).json();
    let mut page = head("Exit codes", ABOUT);
    page.push_str("\n| code | meaning |\n|---|---|\n");
    for exit in codes["items"].as_array().unwrap() {
        let meaning = exit["meaning"].as_str().unwrap();
        page.push_str(&format!("| {} | {meaning} |\n", exit["code"]));
    }
    page
}
