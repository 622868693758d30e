//! The licences of all that is linked into the binary: which packages these are is what `cargo
//! tree` says, their licences are what `cargo metadata` says, and the texts are in their sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Failure};

/// How the names of files begin that hold a licence, in upper case.
const FILES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// The beginning of the list.
const HEAD: &str = "\
# Licences of dependencies

What is linked into `waypost`, and under which licence. The texts are in the folders beside this
file.

| package | version | licence |
|---|---|---|
";

/// A package of the binary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
}

/// What is known about a package.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    /// An expression of SPDX, or the name of a file.
    licence: Option<String>,
    /// Where its sources are.
    folder: PathBuf,
    /// Whether it is one of ours: those have the licence of the workspace.
    is_ours: bool,
}

/// Writes the list and all texts into a folder, and gives how many packages there are.
pub fn write(root: &Path, triple: &str, folder: &Path) -> Result<usize, Failure> {
    let tree = shell::output_of(
        "cargo tree",
        shell::cargo(root)
            .args(["tree", "--locked", "-p", "waypost", "--edges", "normal", "--prefix", "none"])
            .args(["--no-dedupe", "--format", "{p}", "--target", triple]),
    )?;
    let metadata = shell::output_of(
        "cargo metadata",
        shell::cargo(root).args(["metadata", "--locked", "--format-version", "1"]),
    )?;
    let known = known(&metadata);
    let mut list = String::from(HEAD);
    let mut count = 0;
    for package in linked(&tree) {
        let Package { name, version } = &package;
        let found = known.get(&package).ok_or_else(|| {
            Failure::new(format!("`cargo metadata` does not know `{name} {version}`"))
        })?;
        if found.is_ours {
            continue;
        }
        let licence = found.licence.as_deref().ok_or_else(|| {
            Failure::new(format!("`{name} {version}` has no licence; do not ship it"))
        })?;
        list.push_str(&format!("| {name} | {version} | {licence} |\n"));
        copy(&found.folder, &folder.join(format!("{name}-{version}")))?;
        count += 1;
    }
    let path = folder.join("README.md");
    fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))?;
    fs::write(&path, list).map_err(|error| unwritten(&path, &error))?;
    Ok(count)
}

/// Copies the texts of licences. A package without one has its licence in the list alone.
fn copy(from: &Path, into: &Path) -> Result<(), Failure> {
    let entries = fs::read_dir(from).map_err(|error| unread(from, &error))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let upper = name.to_string_lossy().to_uppercase();
        let is_text = FILES.iter().any(|begin| upper.starts_with(begin));
        if is_text && entry.path().is_file() {
            fs::create_dir_all(into).map_err(|error| unwritten(into, &error))?;
            let target = into.join(&name);
            fs::copy(entry.path(), &target).map_err(|error| unwritten(&target, &error))?;
        }
    }
    Ok(())
}

/// The packages of lines such as `axum v0.8.9` and `serde_derive v1.0.229 (proc-macro)`, each once.
fn linked(tree: &str) -> Vec<Package> {
    let package = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let version = words.next()?.strip_prefix('v')?;
        Some(Package { name: name.to_owned(), version: version.to_owned() })
    };
    let mut packages: Vec<Package> = tree.lines().filter_map(package).collect();
    packages.sort();
    packages.dedup();
    packages
}

/// What cargo knows about each package. Its JSON has no spaces, and a package begins with its name
/// and version; a dependency of one begins with its name and source.
fn known(metadata: &str) -> BTreeMap<Package, Known> {
    const BEGIN: &str = "{\"name\":\"";
    let mut starts: Vec<usize> = Vec::new();
    for (at, _) in metadata.match_indices(BEGIN) {
        let after = &metadata[at + BEGIN.len()..];
        let rest = after.split_once('"').map_or("", |(_, rest)| rest);
        if rest.starts_with(",\"version\":\"") {
            starts.push(at);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([metadata.len()]);
    let mut known = BTreeMap::new();
    for (start, end) in starts.iter().copied().zip(ends) {
        let text = &metadata[start..end];
        let read = |name: &str| shell::text_in(text, name);
        let (Some(name), Some(version)) = (read("name"), read("version")) else { continue };
        let Some(manifest) = read("manifest_path").map(PathBuf::from) else { continue };
        let folder = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
        // What has no source is in the workspace. Dependencies, which come later, have sources too.
        let head = text.split_once("\"dependencies\":").map_or(text, |(head, _)| head);
        let is_ours = head.contains("\"source\":null");
        let licence = read("license").or_else(|| read("license_file"));
        known.insert(Package { name, version }, Known { licence, folder, is_ours });
    }
    known
}

fn unread(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot read `{}`: {error}; run `cargo fetch`", path.display()))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write `{}`: {error}; check its rights", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package { name: name.to_owned(), version: version.to_owned() }
    }

    #[test]
    fn what_is_linked_is_listed_once() {
        let tree = "waypost v0.1.0 (/src/crates/waypost)\naxum v0.8.9\n\
                    serde_derive v1.0.229 (proc-macro)\naxum v0.8.9\n\n";
        let expected = [
            package("axum", "0.8.9"),
            package("serde_derive", "1.0.229"),
            package("waypost", "0.1.0"),
        ];
        assert_eq!(linked(tree), expected);
    }

    #[test]
    fn packages_are_found_in_what_cargo_says() {
        let metadata = concat!(
            r#"{"packages":[{"name":"axum","version":"0.8.9","id":"x","license":"MIT","#,
            r#""license_file":null,"description":"a","source":"registry","dependencies":["#,
            r#"{"name":"serde","source":null,"req":"^1"}],"targets":[],"#,
            r#""manifest_path":"/registry/axum-0.8.9/Cargo.toml"},"#,
            r#"{"name":"odd","version":"1.0.0","id":"y","license":null,"#,
            r#""license_file":"LICENSE.txt","source":"registry","dependencies":[],"#,
            r#""manifest_path":"/registry/odd-1.0.0/Cargo.toml"},"#,
            r#"{"name":"kernel","version":"0.1.0","id":"z","license":"Apache-2.0","#,
            r#""source":null,"dependencies":[],"manifest_path":"/src/crates/kernel/Cargo.toml"}],"#,
            r#""target_directory":"/t"}"#,
        );
        let known = known(metadata);
        assert_eq!(known.len(), 3, "{known:?}");
        let axum = &known[&package("axum", "0.8.9")];
        assert_eq!(axum.licence.as_deref(), Some("MIT"));
        assert_eq!(
            (axum.folder.as_path(), axum.is_ours),
            (Path::new("/registry/axum-0.8.9"), false)
        );
        assert_eq!(known[&package("odd", "1.0.0")].licence.as_deref(), Some("LICENSE.txt"));
        assert!(known[&package("kernel", "0.1.0")].is_ours);
    }
}
