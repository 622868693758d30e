//! The exit codes.

use super::head;
use crate::exit::Exit;

const ABOUT: &str = "\
How `waypost` ends, for scripts and agents. With `--json` a failure is also one JSON line on
standard error: `{\"error\", \"code\", \"exit\", \"hint\"}`.";

/// The page.
pub(super) fn page() -> String {
    let mut page = head("Exit codes", ABOUT);
    page.push_str("\n| code | meaning |\n|---|---|\n");
    for exit in Exit::ALL {
        page.push_str(&format!("| {} | {} |\n", exit.number(), exit.meaning()));
    }
    page
}
