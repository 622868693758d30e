//! The files of the workspace, read once: what git tracks or would track. Without git (a copy of
//! the tree in a container) the folders are walked instead.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::source::Source;
use crate::shell::{self, Failure};

/// Every text file of the workspace.
pub struct Tree {
    /// In the order of their paths.
    pub files: Vec<File>,
}

/// One text file.
pub struct File {
    /// From the workspace root, with forward slashes.
    pub path: String,
    /// Its whole content.
    pub text: String,
}

/// Where our crates live; the rules about Rust hold here.
const CRATE_FOLDERS: &[&str] = &["crates/", "bench/", "xtask/"];

/// What a walk leaves out: made by programs, not by us.
const UNTRACKED_FOLDERS: &[&str] = &[".git", ".waypost", "node_modules", "target"];

impl Tree {
    /// Reads all files; those that are no UTF-8 text are left out.
    pub fn read(root: &Path) -> Result<Self, Failure> {
        let mut paths = match tracked(root) {
            Some(paths) => paths,
            None => walked(root)?,
        };
        paths.sort();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let full = root.join(&path);
            // Tracked but deleted, a link to a folder, a submodule: nothing to read.
            if !full.is_file() {
                continue;
            }
            let bytes = fs::read(&full).map_err(|error| unreadable(&full, &error))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File { path, text });
            }
        }
        Ok(Self { files })
    }

    /// The Rust sources of our crates.
    pub fn sources(&self) -> Vec<Source> {
        self.files
            .iter()
            .filter(|file| is_ours(&file.path) && file.path.ends_with(".rs"))
            .map(|file| Source::parse(&file.path, &file.text))
            .collect()
    }

    /// The manifests of our crates; the workspace's own is not one of them.
    pub fn manifests(&self) -> Vec<&File> {
        self.files
            .iter()
            .filter(|file| is_ours(&file.path) && file.path.ends_with("/Cargo.toml"))
            .collect()
    }
}

fn is_ours(path: &str) -> bool {
    CRATE_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

/// New files count before they are added, so that tidy says the same before and after a commit.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listing = shell::output_of("git ls-files", &mut git).ok()?;
    let paths: Vec<String> =
        listing.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    // A copy inside a foreign repository that ignores it lists nothing: that is no answer.
    paths.iter().any(|path| path == "Cargo.toml").then_some(paths)
}

fn walked(root: &Path) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| unreadable(&folder, &error))?;
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if !UNTRACKED_FOLDERS.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if let Ok(inside) = path.strip_prefix(root) {
                paths.push(inside.to_string_lossy().into_owned());
            }
        }
    }
    Ok(paths)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not read `{}`: {error}; check its permissions", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> File {
        File { path: path.to_owned(), text: String::new() }
    }

    #[test]
    fn only_our_crates_have_sources_and_manifests() {
        let tree = Tree {
            files: vec![
                file("Cargo.toml"),
                file("crates/kernel/Cargo.toml"),
                file("crates/kernel/src/lib.rs"),
                file("docs/example.rs"),
                file("xtask/src/main.rs"),
            ],
        };
        let sources: Vec<String> = tree.sources().into_iter().map(|source| source.path).collect();
        assert_eq!(sources, ["crates/kernel/src/lib.rs", "xtask/src/main.rs"]);
        let manifests: Vec<&str> =
            tree.manifests().into_iter().map(|file| file.path.as_str()).collect();
        assert_eq!(manifests, ["crates/kernel/Cargo.toml"]);
    }

    #[test]
    fn a_walk_finds_this_file_too() {
        let paths = walked(&shell::workspace_root()).unwrap_or_default();
        assert!(paths.iter().any(|path| path == "xtask/src/tidy/tree.rs"), "{paths:?}");
    }
}
