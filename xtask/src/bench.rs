//! `cargo xtask bench <name>`: runs one benchmark of `bench/` against the release binary. By
//! hand only, never in CI: a number from a shared machine is worth nothing.

use std::path::Path;

use crate::interpreters;
use crate::shell::{self, Failure};

/// Builds the release `waypost`, then runs the benchmark and hands it the rest of the arguments.
/// FastMCP is not installed for a benchmark; one that is there already is measured too.
pub fn run(root: &Path, name: &str, arguments: &[&str]) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    let binary = target.join("release").join("waypost");
    shell::run(
        "cargo build --release",
        shell::cargo(root).args(["build", "--release", "--locked", "-p", "waypost"]),
    )?;
    shell::run(
        &format!("bench {name}"),
        shell::cargo(root)
            .args(["run", "--release", "--locked", "-p", "bench", "--", name])
            .args(arguments)
            .env("WAYPOST_BIN", binary)
            .env("FASTMCP_PYTHON", interpreters::python_of(&target, "fastmcp"))
            .env("FASTMCP_PROXY", interpreters::upstreams_folder(root).join("fastmcp/proxy.py")),
    )
}
