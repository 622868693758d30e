//! The commands, one file each.

pub(crate) mod init;
pub(crate) mod up;
pub(crate) mod plan;
pub(crate) mod session;
pub(crate) mod inbox;
pub(crate) mod tool;
pub(crate) mod events;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod docs_reference;

/// The longest time that a server waits for a run.
const WAIT_SECONDS_MAX: u64 = 300;
/// Whoever needs more than this reads pages.
const LIST_ITEMS_MAX: usize = 10_000;

/// Reads `--wait`.
fn wait(text: &str) -> Result<u64, String> {
    text.parse::<u64>()
        .ok()
        .filter(|seconds| *seconds <= WAIT_SECONDS_MAX)
        .ok_or_else(|| format!("expected seconds from 0 to {WAIT_SECONDS_MAX}"))
}

/// Reads `--limit`.
fn limit(text: &str) -> Result<usize, String> {
    text.parse::<usize>()
        .ok()
        .filter(|items| (1..=LIST_ITEMS_MAX).contains(items))
        .ok_or_else(|| format!("expected a number from 1 to {LIST_ITEMS_MAX}"))
}
