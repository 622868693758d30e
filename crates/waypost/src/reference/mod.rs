//! The reference, written from the code: what `docs/reference` holds is what this release does.

mod cli;
mod events;
mod exit_codes;
mod limits;
mod builtin;

use clap::Command;

/// Every page of the reference, by the name of its file.
pub(crate) fn pages(command: Command) -> Vec<(&'static str, String)> {
    vec![
        ("cli.md", cli::page(command)),
        ("events.md", events::page()),
        ("exit-codes.md", exit_codes::page()),
        ("limits.md", limits::page()),
        ("tools.md", builtin::page()),
    ]
}

/// What stands at the top of every page.
fn head(title: &str, about: &str) -> String {
    format!(
        "# {title}\n\n\
         <!-- Written by `waypost docs-reference docs/reference`; a test compares it. -->\n\n\
         {about}\n"
    )
}
