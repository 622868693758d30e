//! Raises the limit of open files of this process.

/// No more than this is asked for: Linux gives one process no more by default.
#[cfg(unix)]
const DESCRIPTORS_MAX: u64 = 1_048_576;

/// Raises the limit as far as the system lets us, and gives the one that holds then; none where
/// there is no limit, or no one knows it.
#[cfg(unix)]
pub(crate) fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    let wanted = raised_limit(current, limit.maximum);
    if wanted == current {
        return Some(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }) {
        Ok(()) => Some(wanted),
        Err(error) => {
            tracing::warn!(%error, current, wanted, "the limit of open files cannot be raised");
            Some(current)
        }
    }
}

/// The same where there is no such limit.
#[cfg(not(unix))]
pub(crate) fn raise() -> Option<u64> {
    None
}

/// The hard limit as far as it makes sense; never less than what holds now.
#[cfg(unix)]
fn raised_limit(current: u64, hard: Option<u64>) -> u64 {
    hard.map_or(DESCRIPTORS_MAX, |hard| hard.min(DESCRIPTORS_MAX)).max(current)
}

#[cfg(all(test, unix))]
mod tests {
    use super::raised_limit;

    #[test]
    fn the_limit_is_raised_and_never_lowered() {
        for (current, hard, expected) in [
            (1_024, Some(4_096), 4_096),
            (1_024, Some(1_024), 1_024),
            (1_024, None, 1_048_576),
            (1_024, Some(u64::MAX), 1_048_576),
            (2_000_000, Some(2_000_000), 2_000_000),
        ] {
            assert_eq!(raised_limit(current, hard), expected, "{current} {hard:?}");
        }
    }
}
