//! A server under callgrind: nothing is counted until counting is switched on, and what was counted
//! is read from the file that callgrind writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::Result;
use crate::product::server::Launcher;

/// The total over all threads, in a file of callgrind's.
const TOTALS: &str = "totals: ";

/// Where the counts of one server go.
#[derive(Debug)]
pub struct Callgrind {
    folder: TempDir,
}

impl Callgrind {
    /// A new, empty folder for counts.
    pub fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    /// How a server is started so that its instructions can be counted. Threads get their turns in
    /// a fair order: otherwise one of them can keep all others waiting.
    pub fn launcher(&self) -> Launcher {
        let out = format!("--callgrind-out-file={}", self.file().display());
        let words = [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "--fair-sched=yes",
            // What it says of itself is not the server's log.
            "-q", &out,
        ];
        Launcher::under(words)
    }

    /// Counts from now on.
    pub fn begin(&self, pid: u32) -> Result<()> {
        control(pid, &["--instr=on"])
    }

    /// Counts no longer; how many instructions were run since the beginning.
    pub fn end(&self, pid: u32) -> Result<u64> {
        control(pid, &["--instr=off"])?;
        control(pid, &["--dump"])?;
        // The first dump has the name of the file with a number behind it.
        let dump = numbered(&self.file(), 1);
        let text = fs::read_to_string(&dump)
            .map_err(|error| format!("callgrind wrote no `{}`: {error}", dump.display()))?;
        total(&text)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("counts")
    }
}

fn numbered(file: &Path, number: usize) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

fn control(pid: u32, words: &[&str]) -> Result<()> {
    let output = Command::new("callgrind_control").args(words).arg(pid.to_string()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && !said.contains("Error") {
        return Ok(());
    }
    Err(format!("`callgrind_control {}` failed: {said}", words.join(" ")).into())
}

fn total(text: &str) -> Result<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(TOTALS));
    Ok(line.ok_or("callgrind's file has no totals")?.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read() {
        assert_eq!(total("events: Ir\n1 2\ntotals: 1234\n").ok(), Some(1234));
        assert!(total("events: Ir\n").is_err());
    }

    #[test]
    fn a_dump_has_a_number() {
        assert_eq!(numbered(Path::new("/t/counts"), 1), Path::new("/t/counts.1"));
    }
}
