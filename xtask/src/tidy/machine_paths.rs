//! Rule: no file knows the machine it was written on. A path that exists only there breaks for
//! everyone else, and tells more about us than it should.

use super::finding::{Finding, Rule};
use super::lexer::is_word;
use super::tree::File;

/// Top folders of the machines we work on. Kept apart from their slashes: this file is checked too.
const FOLDERS: &[&str] = &["work", "root", "farm"];

/// What may stand before a slash inside a longer path or an address, beside names.
const PATH_CHARACTERS: &str = "/-.~)}]>$%";

/// Finds absolute paths into those folders, in any text file.
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for folder in FOLDERS {
            let path = format!("/{folder}/");
            if line.match_indices(&path).any(|(at, _)| is_start(&line[..at])) {
                findings.push(Finding {
                    path: file.path.clone(),
                    line: index + 1,
                    rule: Rule::MachinePath,
                    wrong: format!("`{path}` is a folder of one machine"),
                    remedy: "write the path from the workspace root",
                });
            }
        }
    }
    findings
}

/// True when a slash after this text begins a path of its own.
fn is_start(before: &str) -> bool {
    let inside_path = before.ends_with(|c: char| is_word(c) || PATH_CHARACTERS.contains(c));
    !inside_path || before.ends_with("file://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let file = File { path: "docs/guide.md".to_owned(), text: text.replace('|', "/") };
        check(&file).iter().map(|finding| finding.line).collect()
    }

    // The slashes of the samples are bars: this file is checked too.
    #[test]
    fn machine_paths_are_found() {
        assert_eq!(lines("a\nsee |root|.cargo\n"), [2]);
        assert_eq!(lines("\"|work|main\""), [1]);
        assert_eq!(lines("PATH=a:|farm|bin"), [1]);
        assert_eq!(lines("file:|||root|x"), [1]);
    }

    #[test]
    fn other_paths_are_left_alone() {
        assert!(lines("docs|work|a, .|work|b, $HOME|work|c, ~|work|d").is_empty());
        assert!(lines("https:||example.org|work|e https:||work|f").is_empty());
        assert!(lines("|home|work").is_empty());
    }
}
