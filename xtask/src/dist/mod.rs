//! `cargo xtask dist`: a package to hand out. A stripped binary, its manual pages and completions,
//! the licences of its dependencies, and checksums, in a folder and an archive of it.

mod target;
mod licences;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, Failure};
use target::Target;

/// The shells, and what their files are called.
const COMPLETIONS: [(&str, &str); 6] = [
    ("bash", "waypost.bash"),
    ("zsh", "_waypost"),
    ("fish", "waypost.fish"),
    ("powershell", "_waypost.ps1"),
    ("elvish", "waypost.elv"),
    ("nushell", "waypost.nu"),
];

/// Files of the workspace that go along, by path and name.
const FILES: [(&str, &str); 4] = [
    ("LICENSE", "LICENSE"),
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("docs/deploy/waypost.service", "waypost.service"),
];

const BINARY: &str = "waypost";
const SUMS: &str = "SHA256SUMS";

/// Builds the package, and says where it is and how its binary is linked.
pub fn run(root: &Path) -> Result<(), Failure> {
    let target = target::choose()?;
    println!("   {}: {}", target.triple, target.linkage);
    let built = build(root, &target)?;
    let told = shell::output_of(BINARY, Command::new(&built).arg("--version"))?;
    let version = version(&told)?;
    let name = format!("waypost-{version}-{}", target.triple);
    let packages = shell::target_folder(root)?.join("packages");
    let folder = packages.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| unwritten(&folder, &error))?;
    }
    made(&folder)?;
    copy(&built, &folder.join(BINARY))?;
    for (path, name) in FILES {
        copy(&root.join(path), &folder.join(name))?;
    }
    documents(&built, &folder)?;
    let licences = licences::write(root, &target.triple, &folder.join("licences"))?;
    written(&folder.join("LINKAGE"), &format!("{}\n", target.linkage))?;
    written(&folder.join(SUMS), &sums(&folder)?)?;
    let archive = archived(&packages, &name)?;
    println!("   {licences} packages with their licences");
    println!("   {}", folder.display());
    println!("   {}", archive.display());
    Ok(())
}

/// The binary: with whole-program optimisation, and stripped, as the profile says.
fn build(root: &Path, target: &Target) -> Result<PathBuf, Failure> {
    let mut cargo = shell::cargo(root);
    cargo.args(["build", "--locked", "--profile", "dist", "-p", "waypost"]);
    shell::run("cargo build", cargo.args(["--target", &target.triple]))?;
    Ok(shell::target_folder(root)?.join(&target.triple).join("dist").join(BINARY))
}

/// `0.1.0` of `waypost 0.1.0`.
fn version(told: &str) -> Result<&str, Failure> {
    told.split_whitespace().nth(1).ok_or_else(|| {
        Failure::new(format!("`waypost --version` says no version: `{}`", told.trim()))
    })
}

/// What the binary writes about itself.
fn documents(binary: &Path, folder: &Path) -> Result<(), Failure> {
    let pages = folder.join("man/man1");
    let mut man = Command::new(binary);
    shell::output_of("waypost man", man.args(["--quiet", "man", "--dir"]).arg(&pages))?;
    let completions = folder.join("completions");
    made(&completions)?;
    for (name, file) in COMPLETIONS {
        let mut command = Command::new(binary);
        let script = shell::output_of("waypost completions", command.args(["completions", name]))?;
        written(&completions.join(file), &script)?;
    }
    Ok(())
}

/// The checksum of every file of a folder, as `sha256sum --check` reads them.
fn sums(folder: &Path) -> Result<String, Failure> {
    let mut files = Vec::new();
    collect(folder, Path::new(""), &mut files)?;
    files.sort();
    let mut command = Command::new("sha256sum");
    shell::output_of("sha256sum", command.current_dir(folder).arg("--").args(&files))
}

fn collect(root: &Path, inside: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let folder = root.join(inside);
    let entries = fs::read_dir(&folder).map_err(|error| unwritten(&folder, &error))?;
    for entry in entries.flatten() {
        let path = inside.join(entry.file_name());
        if entry.path().is_dir() {
            collect(root, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// An archive of a package's folder, and its checksum beside it.
fn archived(packages: &Path, name: &str) -> Result<PathBuf, Failure> {
    let file = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    // The same files make the same archive, on any machine.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-czf", &file, name]);
    shell::run("tar", tar.current_dir(packages))?;
    let mut command = Command::new("sha256sum");
    let sum = shell::output_of("sha256sum", command.current_dir(packages).args(["--", &file]))?;
    written(&packages.join(format!("{file}.sha256")), &sum)?;
    Ok(packages.join(file))
}

fn made(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))
}

fn copy(from: &Path, into: &Path) -> Result<(), Failure> {
    fs::copy(from, into).map(drop).map_err(|error| unwritten(into, &error))
}

fn written(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write `{}`: {error}; check its rights", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_second_word() {
        assert_eq!(version("waypost 0.1.0\n").ok(), Some("0.1.0"));
        assert!(version("waypost").is_err());
    }

    #[test]
    fn every_file_of_a_package_has_a_checksum() -> Result<(), Failure> {
        let folder = std::env::temp_dir().join(format!("waypost-sums-{}", std::process::id()));
        made(&folder.join("man/man1"))?;
        written(&folder.join("waypost"), "binary")?;
        written(&folder.join("man/man1/waypost.1"), "page")?;
        let sums = sums(&folder)?;
        assert!(fs::remove_dir_all(&folder).is_ok());
        let names: Vec<&str> =
            sums.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(names, ["man/man1/waypost.1", "waypost"]);
        assert!(sums.lines().all(|line| line.split(' ').next().is_some_and(|sum| sum.len() == 64)));
        Ok(())
    }

    /// The level of the crate that is linked counts for the whole program, and `strip` is not
    /// inherited by a crate that has settings of its own.
    #[test]
    fn the_crate_that_is_linked_is_stripped_and_fully_optimised_for_packages() {
        let path = shell::workspace_root().join("Cargo.toml");
        let manifest = fs::read_to_string(path).unwrap_or_default();
        let has = |profile: &str, setting: &str| {
            let begins = format!("[profile.{profile}.package.waypost]");
            let own = manifest.split(&begins).nth(1).unwrap_or_default();
            own.lines()
                .skip(1)
                .take_while(|line| !line.starts_with('['))
                .any(|line| line == setting)
        };
        assert!(has("dist", "opt-level = 3") && has("dist", "strip = true"));
        assert!(has("release", "strip = true"));
    }

    #[test]
    fn what_goes_along_is_there() {
        let root = shell::workspace_root();
        for (path, _) in FILES {
            assert!(root.join(path).is_file(), "no `{path}`");
        }
    }
}
