//! `cargo xtask bench <name>`: runs one benchmark of `bench/` against the release binary. By
//! hand only, never in CI: a number from a shared machine is worth nothing.

use std::path::Path;

use crate::shell::{self, Failure};

/// Builds the release `waypost`, then runs the benchmark and hands it the rest of the arguments.
pub fn run(root: &Path, name: &str, arguments: &[&str]) -> Result<(), Failure> {
    let binary = shell::target_folder(root)?.join("release").join("waypost");
    shell::run(
        "cargo build --release",
        shell::cargo(root).args(["build", "--release", "--locked", "-p", "waypost"]),
    )?;
    shell::run(
        &format!("bench {name}"),
        shell::cargo(root)
            .args(["run", "--release", "--locked", "-p", "bench", "--", name])
            .args(arguments)
            .env("WAYPOST_BIN", binary),
    )
}
