//! `cargo xtask bench <name>`: runs one benchmark of `bench/` against the binary that it builds. By
//! hand only, never in CI: a number from a shared machine is worth nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::provision::{self, Program};
use crate::shell::{self, Failure};
use crate::steps::interpreters;

/// The profile that users build, and with which two builds are compared.
const RELEASE: &str = "release";
/// The profile of packages and of published figures.
const DIST: &str = "dist";

/// The benchmark that counts instructions.
const COUNTS: &str = "counts";
/// What counts them, and the Debian package that brings it.
const COUNTER: &[Program] = &[("valgrind", &["valgrind"]), ("callgrind_control", &["valgrind"])];

/// Builds `waypost`, then runs the benchmark and hands it the rest of the arguments. FastMCP is not
/// installed for a benchmark; one that is there already is measured too.
pub fn run(root: &Path, name: &str, arguments: &[&str]) -> Result<(), Failure> {
    let Asked { profile, against, rest } = Asked::read(arguments)?;
    if name == COUNTS {
        provision::ensure(COUNTER)?;
    }
    let target = shell::target_folder(root)?;
    let binary = target.join(profile).join("waypost");
    // Before the build: it would overwrite a binary that is the same one.
    let against = against.map(|path| other(Path::new(path), &binary)).transpose()?;
    shell::run(
        &format!("cargo build --profile {profile}"),
        shell::cargo(root).args(["build", "--profile", profile, "--locked", "-p", "waypost"]),
    )?;
    let grpc = if name == "a2a" { Some(build_grpc(root, &target, profile)?) } else { None };
    // Instructions are those of the server alone, however fast its client is.
    let of_client = if name == COUNTS { "dev" } else { profile };
    let mut bench = shell::cargo(root);
    bench.args(["run", "--profile", of_client, "--locked", "-p", "bench", "--", name]).args(rest);
    if let Some(against) = against {
        bench.arg("--against").arg(against);
    }
    bench
        .env("WAYPOST_BIN", binary)
        .env("FASTMCP_PYTHON", interpreters::python_of(&target, "fastmcp"))
        .env("FASTMCP_PROXY", interpreters::upstreams_folder(root).join("fastmcp/proxy.py"));
    if let Some(grpc) = grpc {
        bench.env("WAYPOST_BENCH_GRPC", grpc);
    }
    shell::run(&format!("bench {name}"), &mut bench)
}

/// Builds the bare gRPC server and its client, which are no part of the workspace, and says where
/// the program is.
fn build_grpc(root: &Path, target: &Path, profile: &str) -> Result<PathBuf, Failure> {
    let folder = target.join("bench-grpc");
    shell::run(
        "cargo build of bench/grpc",
        shell::cargo(&root.join("bench/grpc"))
            .args(["build", "--profile", profile, "--locked"])
            .env("CARGO_TARGET_DIR", &folder),
    )?;
    Ok(folder.join(profile).join("bench-grpc"))
}

/// The arguments after the benchmark's name.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'a> {
    /// How both the server and the benchmark are built.
    profile: &'static str,
    /// Another build of the server, as it was typed.
    against: Option<&'a str>,
    /// What the benchmark reads itself.
    rest: Vec<&'a str>,
}

impl<'a> Asked<'a> {
    fn read(arguments: &[&'a str]) -> Result<Self, Failure> {
        let mut asked = Self { profile: RELEASE, against: None, rest: Vec::new() };
        let mut arguments = arguments.iter().copied();
        while let Some(argument) = arguments.next() {
            match argument {
                "--dist" => asked.profile = DIST,
                "--against" => {
                    let path = arguments.next();
                    asked.against = Some(path.ok_or_else(|| {
                        Failure::new("`--against` needs a value: another build of `waypost`")
                    })?);
                }
                _ => asked.rest.push(argument),
            }
        }
        Ok(asked)
    }
}

/// The other build's whole path: the benchmark runs in the workspace, not where this was typed.
fn other(path: &Path, built: &Path) -> Result<PathBuf, Failure> {
    let shown = path.display();
    let found = fs::canonicalize(path).ok().filter(|found| found.is_file());
    let found = found.ok_or_else(|| {
        Failure::new(format!("no binary `{shown}`; name another build of `waypost`"))
    })?;
    if fs::canonicalize(built).is_ok_and(|built| built == found) {
        return Err(Failure::new(format!(
            "`{shown}` is the binary that this command builds; copy it elsewhere before you change \
             the code, and name the copy"
        )));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told<T>(outcome: Result<T, Failure>) -> String {
        outcome.err().map(|failure| failure.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_benchmark_gets_what_is_not_for_the_build() {
        let asked = Asked::read(&["--seconds", "3", "--dist", "--against", "old", "--pairs", "7"]);
        let expected = Asked {
            profile: "dist",
            against: Some("old"),
            rest: vec!["--seconds", "3", "--pairs", "7"],
        };
        assert_eq!(asked.ok(), Some(expected));
    }

    #[test]
    fn a_release_build_alone_is_the_default() {
        let expected = Asked { profile: "release", against: None, rest: vec!["--seconds", "3"] };
        assert_eq!(Asked::read(&["--seconds", "3"]).ok(), Some(expected));
    }

    #[test]
    fn against_nothing_is_refused() {
        assert_eq!(
            told(Asked::read(&["--against"])),
            "`--against` needs a value: another build of `waypost`"
        );
        assert_eq!(
            told(other(Path::new("no-such-build"), Path::new("waypost"))),
            "no binary `no-such-build`; name another build of `waypost`"
        );
    }

    #[test]
    fn the_build_that_is_about_to_be_replaced_is_refused() {
        let this = std::env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
        assert_eq!(other(&this, Path::new("not-built-yet")).ok(), Some(this.clone()));
        let message = told(other(&this, &this));
        assert!(message.contains("is the binary that this command builds"), "{message}");
    }
}
