//! `docs/reference` is what the binary writes. `UPDATE_EXPECT=1` writes it anew.

use crate::process::waypost;
use std::fs;
use std::path::Path;

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

#[test]
fn the_reference_is_what_the_binary_writes() {
    let folder = tempfile::tempdir().unwrap();
    let written = waypost(folder.path(), &["docs-reference", "new"]).code(0).stdout;
    let pages: Vec<&str> = written.lines().filter_map(|path| path.strip_prefix("new/")).collect();
    assert_eq!(pages, ["cli.md", "events.md", "exit-codes.md", "limits.md", "tools.md"]);
    let bless = std::env::var_os("UPDATE_EXPECT").is_some();
    for page in pages {
        let text = fs::read_to_string(folder.path().join("new").join(page)).unwrap();
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
