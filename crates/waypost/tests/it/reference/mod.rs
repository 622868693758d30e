//! `docs/reference` holds what this release does: its pages are made here, from the binary and from
//! the code, and compared with those that are kept. `UPDATE_EXPECT=1` writes them anew.

mod cli;
mod events;
mod exit_codes;
mod limits;
mod builtin;
mod keys;

use std::fs;
use std::path::Path;

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

/// What stands at the top of every page.
fn head(title: &str, about: &str) -> String {
    format!(
        "# {title}\n\n\
         <!-- Written by `crates/waypost/tests/it/reference` with `UPDATE_EXPECT=1`. -->\n\n\
         {about}\n"
    )
}

/// Every page, by the name of its file.
fn pages() -> [(&'static str, String); 8] {
    [
        ("cli.md", cli::page()),
        ("events.md", events::page()),
        ("exit-codes.md", exit_codes::page()),
        ("keys-agent.md", keys::agent()),
        ("keys-pipeline.md", keys::pipeline()),
        ("keys-plan.md", keys::plan()),
        ("limits.md", limits::page()),
        ("tools.md", builtin::page()),
    ]
}

#[test]
fn the_reference_matches_this_release() {
    let bless = std::env::var_os("UPDATE_EXPECT").is_some();
    for (page, text) in pages() {
        let path = Path::new(REFERENCE).join(page);
        if bless {
            fs::create_dir_all(REFERENCE).unwrap();
            fs::write(&path, text).unwrap();
            continue;
        }
        let kept = fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("docs/reference/{page}: {error}; `UPDATE_EXPECT=1` writes it")
        });
        assert_eq!(text, kept, "docs/reference/{page}: `UPDATE_EXPECT=1` writes it anew");
    }
}
