//! What `/proc` tells about processes: which of our servers still run, and how much processor
//! time our finished children took. Linux only, like the tests that need it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use crate::shell::Failure;

/// Programs that a process test starts and must also end.
const WATCHED: &[&str] = &["waypost", "fixture"];

/// Deep enough for any real chain of parents; a bound, because `/proc` changes while we read it.
const ANCESTORS_MAX: usize = 64;

// Positions in `/proc/<pid>/stat`, counted from the field after the program's name.
const PARENT_FIELD: usize = 1;
const CHILDREN_USER_FIELD: usize = 13;
const CHILDREN_SYSTEM_FIELD: usize = 14;

/// Running programs of ours whose executable lies in the target folder, by process id.
pub fn servers_in(target: &Path) -> BTreeMap<u32, PathBuf> {
    // `/proc/<pid>/exe` shows real paths, so a target folder behind a link must be resolved too.
    let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf());
    let spared = ourselves_and_ancestors();
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let executable = fs::read_link(entry.path().join("exe")).ok()?;
            let watched = executable.starts_with(&target) && is_watched(&executable);
            (watched && !spared.contains(&pid)).then_some((pid, executable))
        })
        .collect()
}

/// Processor time of all our children that have ended, in clock ticks.
pub fn children_cpu_ticks() -> Result<u64, Failure> {
    let fields = stat_fields("self").unwrap_or_default();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<u64>().ok());
    match (ticks(CHILDREN_USER_FIELD), ticks(CHILDREN_SYSTEM_FIELD)) {
        (Some(user), Some(system)) => Ok(user + system),
        _ => Err(Failure::new("`/proc/self/stat` is not readable; measure on a Linux machine")),
    }
}

fn is_watched(executable: &Path) -> bool {
    let name = executable.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // The kernel adds this when a newer build has replaced the file under a running process.
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    WATCHED.contains(&name)
}

fn ourselves_and_ancestors() -> Vec<u32> {
    let mut chain = vec![process::id()];
    while let Some(parent) = chain.last().and_then(|pid| parent_of(*pid)) {
        if parent == 0 || chain.len() >= ANCESTORS_MAX {
            break;
        }
        chain.push(parent);
    }
    chain
}

fn parent_of(pid: u32) -> Option<u32> {
    stat_fields(&pid.to_string())?.get(PARENT_FIELD)?.parse().ok()
}

fn stat_fields(pid: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in parentheses and may hold spaces and parentheses itself.
    let (_, after_name) = text.rsplit_once(')')?;
    Some(after_name.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_servers_are_watched() {
        assert!(is_watched(Path::new("/t/debug/waypost")));
        assert!(is_watched(Path::new("/t/debug/fixture (deleted)")));
        assert!(!is_watched(Path::new("/t/debug/deps/waypost-0123")));
        assert!(!is_watched(Path::new("/t/debug/xtask")));
    }

    #[test]
    fn the_chain_begins_with_us_and_reaches_a_parent() {
        let chain = ourselves_and_ancestors();
        assert_eq!(chain.first(), Some(&process::id()));
        assert!(chain.len() > 1, "{chain:?}");
    }

    #[test]
    fn the_time_of_children_is_readable() {
        assert!(children_cpu_ticks().is_ok());
    }
}
