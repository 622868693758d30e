//! Rule: a folder of sources is one subject, and a subject has a limit.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Finding, Rule};
use super::tree::File;

/// So many files and folders a folder of sources has at most.
pub const ENTRIES_MAX: usize = 20;

/// A folder of sources with too many entries.
#[derive(Debug, PartialEq, Eq)]
pub struct CrowdedFolder {
    /// From the workspace root, with forward slashes.
    pub path: String,
    /// How many files and folders it has.
    pub entries: usize,
}

/// Finds folders of sources that have too many files and folders.
pub fn check(files: &[File]) -> Vec<Finding> {
    let folders = crowded(files.iter().map(|file| file.path.as_str())).into_iter();
    folders
        .map(|CrowdedFolder { path, entries }| Finding {
            path,
            line: 1,
            rule: Rule::Folders,
            wrong: format!("`{entries}` entries, more than `{ENTRIES_MAX}`"),
            remedy: "find the subject that some of them share and give it a folder",
        })
        .collect()
}

/// The folders of sources, `src` and all below it, that have too many files and folders.
pub fn crowded<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<CrowdedFolder> {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in paths {
        let Some((before, _)) = path.split_once("/src/") else { continue };
        let source_folder = before.len() + "/src".len();
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at >= source_folder) {
            let entry = path[at + 1..].split('/').next().unwrap_or_default();
            folders.entry(&path[..at]).or_default().insert(entry);
        }
    }
    let sizes = folders
        .into_iter()
        .map(|(path, entries)| CrowdedFolder { path: path.to_owned(), entries: entries.len() });
    sizes.filter(|folder| folder.entries > ENTRIES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowded_folder_of_sources_is_found() {
        let files = |paths: &[String]| -> Vec<File> {
            paths.iter().map(|path| File { path: path.clone(), text: String::new() }).collect()
        };
        let mut paths: Vec<String> =
            (0..ENTRIES_MAX).map(|n| format!("crates/a/src/b/c{n}.rs")).collect();
        assert!(check(&files(&paths)).is_empty());
        paths.extend(["crates/a/src/b/d/e.rs".to_owned(), "crates/a/src/b/d/f.rs".to_owned()]);
        paths.extend((0..=ENTRIES_MAX).map(|n| format!("docs/{n}.md")));
        let found: Vec<String> = check(&files(&paths)).iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/a/src/b:1: folders: `21` entries, more than `20`; find the subject that some \
              of them share and give it a folder"
            ]
        );
    }
}
