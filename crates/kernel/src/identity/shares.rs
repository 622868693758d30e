//! Shares: the part of a global limit that one realm and one caller may use, so that nobody uses up
//! what others need. The owner of the limit does the counting.

use crate::limits::Limits;

/// The limits that realms and callers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SharedLimit {
    /// Sessions that move at the same time.
    Runs,
    /// Turns of models at the same time.
    Turns,
    /// Calls of tools at the same time.
    Calls,
    /// Event streams that are open.
    Streams,
    /// MCP sessions that are open.
    McpSessions,
    /// Logins at upstream servers in a minute.
    Logins,
    /// Bytes that runs store.
    StoredBytes,
    /// Exports under way.
    Exports,
    /// Requests under way.
    Requests,
    /// Bytes of answers that wait to be read.
    UnsentBytes,
}

impl SharedLimit {
    pub const ALL: [Self; 10] = [
        Self::Runs,
        Self::Turns,
        Self::Calls,
        Self::Streams,
        Self::McpSessions,
        Self::Logins,
        Self::StoredBytes,
        Self::Exports,
        Self::Requests,
        Self::UnsentBytes,
    ];

    /// Its name in the settings.
    pub fn setting(self) -> &'static str {
        let (setting, _, _) = self.words();
        setting
    }

    /// What it counts, for programs.
    pub fn name(self) -> &'static str {
        let (_, name, _) = self.words();
        name
    }

    /// What it counts, for error messages.
    pub fn noun(self) -> &'static str {
        let (_, _, noun) = self.words();
        noun
    }

    /// Its name in the settings, what it counts for programs, and what it counts for people.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Runs => ("runs_active_max", "runs", "moving sessions"),
            Self::Turns => ("turns_active_max", "turns", "turns of models"),
            Self::Calls => ("calls_active_max", "calls", "calls"),
            Self::Streams => ("streams_max", "streams", "event streams"),
            Self::McpSessions => ("mcp_sessions_max", "sessions", "MCP sessions"),
            Self::Logins => ("logins_per_minute", "logins", "logins"),
            Self::StoredBytes => ("stored_bytes_max", "bytes", "stored bytes"),
            Self::Exports => ("exports_active_max", "exports", "exports"),
            Self::Requests => ("requests_active_max", "requests", "requests"),
            Self::UnsentBytes => ("answers_bytes_max", "unread-bytes", "unread bytes of answers"),
        }
    }

    /// The limit over all callers; as much as there can be where 0 sets none.
    pub fn whole(self, limits: &Limits) -> usize {
        match self {
            Self::Runs => limits.runs_active_max,
            Self::Turns => limits.turns_active_max,
            Self::Calls => limits.calls_active_max,
            Self::Streams => limits.streams_max,
            Self::McpSessions => limits.mcp_sessions_max,
            Self::Logins => usize::try_from(limits.logins_per_minute).unwrap_or(usize::MAX),
            Self::StoredBytes => match limits.stored_bytes_max {
                0 => usize::MAX,
                max => usize::try_from(max).unwrap_or(usize::MAX),
            },
            Self::Exports => limits.exports_active_max,
            Self::Requests => limits.requests_active_max,
            Self::UnsentBytes => limits.answers_bytes_max,
        }
    }
}

/// The share of a limit of one realm, and of one caller within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// All callers of the realm together.
    pub realm: usize,
    /// Each of them.
    pub caller: usize,
}

impl Portion {
    /// The parts of this limit: in a realm that has a limit of its own that much, in one that is
    /// alone the whole, else the usual part.
    pub fn of(
        limit: SharedLimit,
        limits: &Limits,
        own: Option<usize>,
        is_only_realm: bool,
    ) -> Self {
        let whole = limit.whole(limits);
        let part = |of: usize, percent: u32| percent_of(of, percent).max(1).min(whole);
        let realm = match own {
            // Only a limit that can be none is 0.
            Some(0) => whole,
            Some(own) => part(own, 100),
            None if is_only_realm => whole,
            None => part(whole, limits.realm_share_percent),
        };
        Self { realm, caller: part(realm, limits.caller_share_percent) }
    }
}

fn percent_of(whole: usize, percent: u32) -> usize {
    // The greatest limit is far from where this could saturate.
    whole.saturating_mul(usize::try_from(percent).unwrap_or(usize::MAX)) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn portion(limit: SharedLimit, own: Option<usize>, is_only_realm: bool) -> (usize, usize) {
        let Portion { realm, caller } = Portion::of(limit, &Limits::default(), own, is_only_realm);
        (realm, caller)
    }

    #[test]
    fn a_realm_has_half_and_a_caller_a_quarter_of_that() {
        assert_eq!(portion(SharedLimit::Runs, None, false), (2_048, 512));
        assert_eq!(portion(SharedLimit::Turns, None, false), (128, 32));
        assert_eq!(portion(SharedLimit::Runs, None, true), (4_096, 1_024), "the only realm");
    }

    #[test]
    fn a_realm_can_have_a_limit_of_its_own_within_the_whole() {
        assert_eq!(portion(SharedLimit::Turns, Some(8), false), (8, 2));
        assert_eq!(portion(SharedLimit::Turns, Some(8), true), (8, 2), "also the only one");
        assert_eq!(portion(SharedLimit::Turns, Some(999), false), (256, 64));
    }

    #[test]
    fn a_share_is_large_enough_to_be_used_and_never_more_than_the_whole() {
        let one = Limits { turns_active_max: 1, ..Limits::default() };
        let Portion { realm, caller } = Portion::of(SharedLimit::Turns, &one, None, false);
        assert_eq!((realm, caller), (1, 1));
        let whole = Limits { realm_share_percent: 100, caller_share_percent: 100, ..one };
        let all = Portion::of(SharedLimit::Calls, &whole, None, false);
        assert_eq!((all.realm, all.caller), (1_024, 1_024));
    }

    #[test]
    fn without_a_global_limit_realms_keep_their_own() {
        assert_eq!(portion(SharedLimit::StoredBytes, Some(1_000), false), (1_000, 250));
        let (realm, caller) = portion(SharedLimit::StoredBytes, Some(0), false);
        assert!(realm == usize::MAX && caller > usize::MAX / 1_000, "{caller}");
        let limits = Limits { stored_bytes_max: 800, ..Limits::default() };
        let of = |own| Portion::of(SharedLimit::StoredBytes, &limits, own, false);
        assert_eq!((of(None).realm, of(None).caller), (400, 100));
        assert_eq!((of(Some(0)).realm, of(Some(0)).caller), (800, 200));
    }

    #[test]
    fn every_shared_limit_can_be_set() {
        for limit in SharedLimit::ALL {
            assert!(Limits::NAMES.contains(&limit.setting()), "{limit:?}");
        }
    }
}
