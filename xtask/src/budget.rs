//! `cargo xtask budget`: what a clean dev build of the binary costs in processor time. Wall time
//! depends on the machine's cores; CPU-seconds are what a newcomer's laptop has to pay.

use std::fs;
use std::path::Path;
use std::process::{self, Command};

use crate::processes;
use crate::shell::{self, Failure};

/// The promise: a clean dev build stays below this.
const BUDGET_CPU_SECONDS: f64 = 518.0;

/// What Linux has used for decades, if `getconf` is not there to ask.
const TICKS_PER_SECOND_DEFAULT: f64 = 100.0;

/// Builds into a fresh folder, measures, removes the folder; over budget is a failure.
pub fn run(root: &Path) -> Result<(), Failure> {
    let folder = shell::target_folder(root)?.join(format!("budget-{}", process::id()));
    let ticks_before = processes::children_cpu_ticks()?;
    let built = shell::run(
        "cargo build",
        shell::cargo(root)
            .args(["build", "--locked", "-p", "waypost"])
            .env("CARGO_TARGET_DIR", &folder),
    );
    let ticks_after = processes::children_cpu_ticks();
    let removed = fs::remove_dir_all(&folder);
    built?;
    removed.map_err(|error| {
        Failure::new(format!("could not remove `{}`: {error}; remove it", folder.display()))
    })?;
    let ticks = ticks_after?.saturating_sub(ticks_before);
    report(ticks as f64 / ticks_per_second())
}

fn report(cpu_seconds: f64) -> Result<(), Failure> {
    println!("clean dev build: {cpu_seconds:.0} CPU-seconds (budget {BUDGET_CPU_SECONDS:.0})");
    if cpu_seconds <= BUDGET_CPU_SECONDS {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the build costs `{cpu_seconds:.0}` CPU-seconds, more than `{BUDGET_CPU_SECONDS:.0}`; \
         look for a heavy dependency with `cargo build --timings`"
    )))
}

fn ticks_per_second() -> f64 {
    shell::output_of("getconf", Command::new("getconf").arg("CLK_TCK"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(TICKS_PER_SECOND_DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_budget_is_a_failure() {
        assert!(report(BUDGET_CPU_SECONDS).is_ok());
        assert!(report(BUDGET_CPU_SECONDS + 1.0).is_err());
    }

    #[test]
    fn a_second_has_ticks() {
        assert!(ticks_per_second() >= 1.0);
    }
}
