//! Programs that chores call, and the Debian packages that bring them. On Debian as root what is
//! missing is installed; elsewhere the failure names it.

use std::path::Path;
use std::process::Command;

use crate::shell::{self, Failure};

/// A program on the search path, and the Debian packages that bring it.
pub type Program = (&'static str, &'static [&'static str]);

/// Installs those that are missing. Packages of programs that are there are left alone: Debian's
/// `npm` does not go with a Node from elsewhere.
pub fn ensure(programs: &[Program]) -> Result<(), Failure> {
    let missing = missing(programs);
    if missing.is_empty() {
        let names: Vec<&str> = programs.iter().map(|(program, _)| *program).collect();
        println!("   present: {}", names.join(", "));
        return Ok(());
    }
    if !is_debian() || !is_root() {
        return Err(failure(&missing));
    }
    shell::run("apt-get update", Command::new("apt-get").arg("update"))?;
    shell::run(
        "apt-get install",
        Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends"])
            .args(packages(&missing))
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    match self::missing(programs) {
        missing if missing.is_empty() => Ok(()),
        missing => Err(failure(&missing)),
    }
}

fn missing(programs: &[Program]) -> Vec<Program> {
    programs.iter().copied().filter(|(program, _)| !shell::is_installed(program)).collect()
}

fn packages(missing: &[Program]) -> Vec<&'static str> {
    missing.iter().flat_map(|(_, packages)| packages.iter().copied()).collect()
}

fn failure(missing: &[Program]) -> Failure {
    let programs: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
    Failure::new(format!(
        "missing programs: `{}`; install the packages `{}` (or your system's names for them)",
        programs.join("`, `"),
        packages(missing).join("`, `")
    ))
}

fn is_debian() -> bool {
    Path::new("/etc/debian_version").exists() && shell::is_installed("apt-get")
}

fn is_root() -> bool {
    shell::output_of("id", Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRESENT: Program = ("sh", &["dash"]);
    const ABSENT: Program = ("no-such-program-anywhere", &["no-such-package", "nor-this"]);

    #[test]
    fn what_is_there_needs_nothing() {
        assert!(ensure(&[PRESENT]).is_ok());
        assert!(missing(&[PRESENT]).is_empty());
    }

    #[test]
    fn a_missing_program_says_what_to_install() {
        let message = failure(&missing(&[PRESENT, ABSENT])).to_string();
        assert_eq!(
            message,
            "missing programs: `no-such-program-anywhere`; install the packages \
             `no-such-package`, `nor-this` (or your system's names for them)"
        );
    }
}
