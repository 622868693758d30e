//! The limits that an operator can set, each with its name, its default and the values that it can
//! have; and fixed ones, which are members so that a test can reach them with little data. A limit
//! that neither operators nor tests change is a constant beside the code that keeps to it.
//!
//! The least value is the smallest with which the server still works: 0 only where the limit says
//! what 0 means. The greatest one keeps queues, buffers and waits at sizes that the process can
//! serve; no channel or semaphore can be built with more.

use std::fmt;
use std::ops::RangeInclusive;

const MIB: u64 = 1024 * 1024;
pub const GIB: u64 = 1024 * MIB;
pub const HOUR_MS: u64 = 60 * 60 * 1_000;
pub const DAY_MS: u64 = 24 * HOUR_MS;
const YEAR_MS: u64 = 365 * DAY_MS;

/// A table of limits. An endpoint has one of its own for what only it limits.
#[macro_export]
macro_rules! limits {
    (
        $(#[doc = $doc:literal])* pub struct $table:ident;
        settable {
            $($(#[doc = $about:literal])* $name:ident: $kind:ty = $default:expr, $range:expr;)*
        }
        fixed {
            $($(#[doc = $note:literal])* $fixed:ident: $fixed_kind:ty = $value:expr;)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $table {
            $($(#[doc = $about])* pub $name: $kind,)*
            $($(#[doc = $note])* #[serde(skip)] pub $fixed: $fixed_kind,)*
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($name: $default,)* $($fixed: $value,)* }
            }
        }

        impl $table {
            /// The names of all limits that can be set, for "did you mean".
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// What each of them bounds, in the order of the names.
            const MEANINGS: &'static [&'static str] = &[$(concat!($($about),*)),*];

            /// The values that each of them can have, in the order of the names.
            const RANGES: &'static [::std::ops::RangeInclusive<u64>] = &[$($range),*];

            /// The value of each of them by its name, in the order of the names.
            pub fn values(&self) -> impl Iterator<Item = (&'static str, u64)> {
                let values = [$($crate::limits::Wide::wide(self.$name)),*];
                Self::NAMES.iter().copied().zip(values)
            }

            /// The values that a limit can have; any for a name that is no limit's.
            pub fn range(name: &str) -> ::std::ops::RangeInclusive<u64> {
                let place = Self::NAMES.iter().position(|known| *known == name);
                place.and_then(|place| Self::RANGES.get(place).cloned()).unwrap_or(0..=u64::MAX)
            }

            /// What each limit bounds, by its name, in the order of the names.
            pub fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
                let meanings = Self::MEANINGS.iter().map(|about| about.trim());
                Self::NAMES.iter().copied().zip(meanings)
            }

            /// Whether this limit can have this value; else what is wrong with it.
            pub fn check_one(
                name: &'static str,
                value: u64,
            ) -> Option<$crate::limits::OutOfRange> {
                $crate::limits::OutOfRange::of(name, value, &Self::range(name))
            }

            /// The limits whose values they cannot have by themselves.
            pub fn out_of_range(&self) -> Vec<$crate::limits::OutOfRange> {
                self.values().filter_map(|(name, value)| Self::check_one(name, value)).collect()
            }

            /// Reads the value of the limit of this name, if it is one of these.
            pub fn read<'de, A: ::serde::de::MapAccess<'de>>(
                &mut self,
                name: &str,
                values: &mut A,
            ) -> Result<bool, A::Error> {
                match name {
                    $(stringify!($name) => self.$name = values.next_value()?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

/// The types of limits, as one type that holds the values of all.
pub trait Wide {
    fn wide(self) -> u64;
}

impl Wide for u32 {
    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Wide for u64 {
    fn wide(self) -> u64 {
        self
    }
}

impl Wide for usize {
    fn wide(self) -> u64 {
        u64::try_from(self).unwrap_or(u64::MAX)
    }
}

/// Pairs of limits: the first must not be larger than the second.
const ORDERED: &[(&str, &str)] = &[
    ("run_wait_ms", "run_wait_ms_max"),
    ("body_bytes_max", "bodies_bytes_max"),
    ("delivery_backoff_ms", "delivery_backoff_ms_max"),
    ("upstream_backoff_ms", "upstream_backoff_ms_max"),
];

/// A limit whose value it cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfRange {
    /// The limit.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// The least value that it can have.
    pub min: u64,
    /// The greatest value that it can have.
    pub max: u64,
    /// The limit whose value is the greatest one, where another limit bounds it.
    pub bounded_by: Option<&'static str>,
}

impl OutOfRange {
    /// Such a limit, if it cannot have this value by itself.
    pub fn of(name: &'static str, value: u64, range: &RangeInclusive<u64>) -> Option<Self> {
        let min = *range.start();
        let max = *range.end();
        (!range.contains(&value)).then_some(Self { name, value, min, max, bounded_by: None })
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        let Self { name, min, max, bounded_by, .. } = self;
        match bounded_by {
            Some(other) => format!("lower `{name}`, or raise `{other}`"),
            None => format!("write a whole number from {min} to {max}"),
        }
    }
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, min, max, bounded_by } = self;
        match bounded_by {
            Some(other) => write!(f, "`{name}` = {value} is more than `{other}` = {max}"),
            None => write!(f, "`{name}` = {value} is out of range: it can be {min} to {max}"),
        }
    }
}

impl Limits {
    /// The limits whose values they cannot have, by themselves or beside another limit.
    pub fn check(&self) -> Vec<OutOfRange> {
        let mut found = self.out_of_range();
        let pair = |name: &str| self.values().find(|(known, _)| *known == name);
        for (less, more) in ORDERED {
            let (Some((name, value)), Some((other, max))) = (pair(less), pair(more)) else {
                continue;
            };
            if value > max {
                let min = *Self::range(name).start();
                found.push(OutOfRange { name, value, min, max, bounded_by: Some(other) });
            }
        }
        found
    }
}

limits! {
    /// The named limits; `[limits]` in `waypost.toml` sets those that are not fixed, and those of
    /// endpoints.
    pub struct Limits;
    settable {
        /// A value larger than this goes to a blob; only its reference stays in the journal.
        context_inline_bytes_max: usize = 16 * 1024, 64..=16 * MIB;
        /// A larger blob is not read as a value: its URI stands for it everywhere.
        blob_value_bytes_max: u64 = 128 * MIB, MIB..=16 * GIB;
        /// How many nodes of JSON the pointers of one step visit, compare and copy, 64 bytes of
        /// text being one.
        pointer_nodes_max: usize = 2_000_000, 1_000..=1_000_000_000;
        /// How often one step may be entered by jumps in one frame.
        step_visits_max: u32 = 1_000, 1..=1_000_000;
        /// How many items a loop takes.
        loop_items_max: usize = 100_000, 1..=1_000_000;
        /// How many iterations of one loop run at the same time.
        loop_concurrency_max: u32 = 64, 1..=10_000;
        /// How many calls one run makes before a person is asked whether it may make as many again.
        run_calls_max: u64 = 250_000, 1..=100_000_000;
        /// How many events one run records before a person is asked whether it may record as many
        /// again.
        run_events_max: u64 = 2_000_000, 10..=1_000_000_000;
        /// About how many bytes of journal and blobs one run stores before a person is asked
        /// whether it may store as many again.
        run_bytes_max: u64 = 2 * GIB, MIB..=1024 * GIB;
        /// How many steps a plan has, inner ones included.
        plan_steps_max: usize = 2_000, 1..=100_000;
        /// The size of a plan's text.
        plan_bytes_max: usize = 1024 * 1024, 1..=64 * MIB;
        /// How many times the recovery of a run may end the process, or panic, before a person is
        /// asked.
        recover_attempts_max: u32 = 2, 1..=1_000;
        /// How long a rule may wait before it tries a failed step again.
        rule_wait_ms_max: u64 = HOUR_MS, 1..=DAY_MS;
        /// How often a rule waits for a call that is refused unsent since the calls before it
        /// failed; such waits use up no try. 0 waits for none.
        refused_waits_max: u32 = 60, 0..=10_000;
        /// How many corrections one failed step gets before it is a person's; 0 allows none.
        step_corrections_max: u32 = 3, 0..=100;
        /// How many corrections one run gets; 0 allows none.
        run_corrections_max: u32 = 10, 0..=10_000;
        /// How many proposals and drafts one run asks models for about failed steps; 0 allows none.
        run_proposals_max: u32 = 10, 0..=10_000;
        /// How long one correction may take, what it asks people included.
        correction_ms_max: u64 = 300_000, 1..=DAY_MS;
        /// How long a cancelled call has to end by itself; 0 gives it no time.
        cancel_grace_ms: u64 = 2_000, 0..=HOUR_MS;
        /// How long a stop waits for what is under way; 0 waits for nothing.
        stop_wait_ms: u64 = 3_000, 0..=HOUR_MS;
        /// How long one tool call may take.
        call_timeout_ms: u64 = 30_000, 1..=DAY_MS;
        /// The size of a tool's output.
        call_output_bytes_max: usize = 8 * 1024 * 1024, 1..=GIB;
        /// The size of an output that a tool puts into a blob piece by piece.
        blob_bytes_max: u64 = GIB, 1..=1024 * GIB;
        /// How long one turn of a model may take, where the model's entry says nothing.
        turn_timeout_ms: u64 = 120_000, 1..=DAY_MS;
        /// How often one turn is tried before a person is asked.
        turn_attempts_max: u32 = 4, 1..=1_000;
        /// How many tools a model is shown that writes a plan, those that fit its goal best.
        draft_tools_max: usize = 60, 1..=1_000;
        /// How many times a model gets the mistakes of its plan back to correct them; 0 gives it no
        /// second try.
        draft_rounds_max: u32 = 3, 0..=20;
        /// How many turns of models run at the same time.
        turns_active_max: usize = 256, 1..=100_000;
        /// How many pieces of a turn wait for a listener; one that is slower loses some.
        turn_deltas_max: usize = 256, 1..=65_536;
        /// After how many passing failures in a row the calls of an upstream are refused, for each
        /// realm by itself; 0 refuses none.
        breaker_failures: u32 = 10, 0..=1_000_000;
        /// How long such calls are refused before one of them tries again.
        breaker_open_ms: u64 = 10_000, 1..=HOUR_MS;
        /// How many calls run at the same time, over all sessions.
        calls_active_max: usize = 1_024, 1..=100_000;
        /// How many sessions move at the same time.
        runs_active_max: usize = 4_096, 1..=1_000_000;
        /// Which part of `runs_active_max`, `turns_active_max`, `calls_active_max`, `streams_max`,
        /// `mcp_sessions_max`, `logins_per_minute`, `stored_bytes_max`, `exports_active_max`,
        /// `requests_active_max` and `answers_bytes_max` one realm may use, in percent, where
        /// credentials are required and there are several realms.
        realm_share_percent: u32 = 50, 1..=100;
        /// Which part of what its realm may use one caller may use, in percent, where credentials
        /// are required.
        caller_share_percent: u32 = 25, 1..=100;
        /// About how many bytes of journal and blobs all runs store that are kept, and records;
        /// beyond that no run starts and no record is saved. 0 sets no limit.
        stored_bytes_max: u64 = 0, 0..=1024 * 1024 * GIB;
        /// How many commands wait for one session.
        session_queue_max: usize = 64, 1..=65_536;
        /// How many requests wait for one case of a pipeline.
        case_queue_max: usize = 256, 1..=65_536;
        /// How many runs of one context are active at the same time.
        context_runs_max: usize = 8, 1..=1_000;
        /// How many appends wait for the store's writer.
        append_queue_max: usize = 16_384, 1..=1_000_000;
        /// How long `/sessions/{id}/execute-plan` and `/resume` wait for the run; 0 does not wait.
        execute_wait_ms: u64 = 60_000, 0..=DAY_MS;
        /// How long `/api/v1` waits for a run unless `?wait=` says otherwise; 0 does not wait.
        run_wait_ms: u64 = 30_000, 0..=DAY_MS;
        /// The longest `?wait=`.
        run_wait_ms_max: u64 = 300_000, 1..=DAY_MS;
        /// The size of a request's body.
        body_bytes_max: usize = 4 * 1024 * 1024, 1..=GIB;
        /// The size of all requests' bodies that are being read or worked on, together.
        bodies_bytes_max: usize = 64 * 1024 * 1024, 1..=64 * GIB;
        /// How many requests are under way at the same time, until their answers are read; event
        /// streams do not count.
        requests_active_max: usize = 4_096, 1..=1_000_000;
        /// The size of all answers that wait to be read, together.
        answers_bytes_max: usize = 64 * 1024 * 1024, 1..=64 * GIB;
        /// How many sessions are exported at the same time.
        exports_active_max: usize = 32, 1..=10_000;
        /// How deep a request's JSON nests.
        body_depth_max: usize = 64, 1..=127;
        /// Sessions that are over and unused for so long are removed; 0 keeps them.
        session_ttl_ms: u64 = 0, 0..=100 * YEAR_MS;
        /// How long a blob stays that nothing names any more, or nothing yet.
        blob_grace_ms: u64 = 24 * 60 * 60 * 1_000, 60_000..=YEAR_MS;
        /// How long one delivery to a sink may take, whatever the sink itself allows.
        delivery_timeout_ms: u64 = 120_000, 1..=DAY_MS;
        /// How often one event is tried that a sink refuses, or does not take while it takes
        /// others.
        delivery_attempts_max: u32 = 12, 1..=10_000_000;
        /// How long to wait before a failed delivery is tried again: twice as long each time.
        delivery_backoff_ms: u64 = 1_000, 1..=DAY_MS;
        /// The longest of these waits, and the longest that a receiver may ask for.
        delivery_backoff_ms_max: u64 = 300_000, 1..=DAY_MS;
        /// How many deliveries the log keeps of each sink; failed ones go last.
        deliveries_kept_max: usize = 10_000, 1..=10_000_000;
        /// How many event streams are open at the same time.
        streams_max: usize = 1_024, 1..=100_000;
        /// How many logins at upstream servers are begun in a minute, and how many people come back
        /// from one that is not under way.
        logins_per_minute: u32 = 60, 1..=100_000;
        /// How many traces of our own begin in a second, where no sampler is named; 0 records none.
        traces_per_second_max: u32 = 100, 0..=1_000_000;
        /// How many bytes each content of a span has, where content is wanted; the rest is cut off.
        span_content_bytes_max: usize = 8 * 1024, 1..=16 * MIB;
        /// How long an MCP call is waited for where the client takes no tasks.
        mcp_call_wait_ms: u64 = 300_000, 1..=DAY_MS;
        /// How many MCP sessions are open at the same time.
        mcp_sessions_max: usize = 1_024, 1..=1_000_000;
        /// How long an MCP client may take to answer what is asked of it.
        mcp_ask_wait_ms: u64 = 300_000, 1..=DAY_MS;
        /// How long an upstream server may take for a connection, a handshake, or a page of a list.
        upstream_connect_timeout_ms: u64 = 10_000, 1..=HOUR_MS;
        /// How long an upstream's process may take to start, until it answers for the first time.
        upstream_start_timeout_ms: u64 = 120_000, 1..=HOUR_MS;
        /// The first wait before an upstream is tried again; it doubles with every failure.
        upstream_backoff_ms: u64 = 500, 1..=DAY_MS;
        /// The longest of these waits.
        upstream_backoff_ms_max: u64 = 60_000, 1..=DAY_MS;
        /// How often an upstream is listed that says neither for how long its lists hold nor when
        /// they change.
        upstream_list_interval_ms: u64 = 300_000, 1_000..=YEAR_MS;
        /// The size of an OpenAPI or Swagger document.
        upstream_document_bytes_max: usize = 64 * 1024 * 1024, 1..=GIB;
        /// How many records one page has.
        find_rows_max: usize = 1_000, 1..=100_000;
        /// The size of the records of one page; it ends earlier, with a cursor.
        find_bytes_max: usize = 1024 * 1024, 1_024..=64 * MIB;
        /// How many records a page leaves out before it begins; 0 lets it leave out none. A cursor
        /// leads further.
        find_skip_max: usize = 100_000, 0..=500_000;
        /// How long one query of records may take before it is interrupted.
        query_timeout_ms: u64 = 5_000, 1..=HOUR_MS;
        /// How many groups one count of records has.
        groups_max: usize = 1_000, 1..=1_000_000;
        /// How many records one call deletes.
        delete_many_max: usize = 2_000, 1..=1_000_000;
        /// The size of a record.
        record_bytes_max: usize = 1024 * 1024, 1_024..=64 * MIB;
        /// How many records one query embeds in those that it finds.
        expand_records_max: usize = 10_000, 1..=10_000_000;
    }
    fixed {
        /// How many keys a context may hold.
        context_keys_max: usize = 1_000;
        /// How many frames of one run live at the same time.
        frames_max: usize = 1_024;
        /// How deep plans call plans.
        plan_depth_max: usize = 16;
        /// How many branches a parallel step has.
        branches_max: usize = 64;
        /// How often recovery looks for sessions that should move.
        recover_interval_ms: u64 = 1_000;
        /// How many sessions one recovery pass claims.
        recover_batch_max: usize = 256;
        /// The size of an event that a step publishes.
        event_bytes_max: usize = 64 * 1024;
        /// How often one call in a run may want something before it does what it is called for.
        /// What is left of what it wanted before does not count.
        call_wants_max: u32 = 16;
        /// The first delay before Waypost checks whether a login for a thread has completed, or
        /// whether a call that continues elsewhere still waits for an answer. It doubles each time.
        authorize_poll_ms: u64 = 2_000;
        /// The longest of these waits.
        authorize_poll_ms_max: u64 = 30_000;
        /// How long to wait before a failed turn is tried again: twice as long each time.
        turn_backoff_ms: u64 = 500;
        /// How many tools one turn may call.
        turn_calls_max: usize = 64;
        /// How many earlier requests of a case its agent reads.
        case_requests_read_max: u32 = 20;
        /// How many unknown reasons of one pipeline are counted, each by itself.
        tally_reasons_max: usize = 1_000;
        /// How many characters of a reason are kept where reasons are counted.
        tally_reason_chars_max: usize = 200;
        /// A snapshot is written only when the journal's tail is larger than this; 0 sets no floor.
        snapshot_floor_bytes: usize = 64 * 1024;
        /// The size of a page when the caller names none.
        page_items_default: usize = 50;
        /// The largest page.
        page_items_max: usize = 200;
        /// The length of an id that a client chooses.
        client_id_chars_max: usize = 255;
        /// How many events a session may have to be forked or exported.
        export_events_max: usize = 5_000_000;
        /// How many sessions one slice of a removal takes, or blobs.
        prune_batch_max: usize = 64;
        /// How many events that one sink has not taken yet are in memory.
        outbox_window_max: usize = 1_024;
        /// The size of the journal's rows that they are made of.
        outbox_window_bytes_max: usize = 16 * 1024 * 1024;
        /// How many events one sink is read ahead: so many may be sent twice after a crash.
        outbox_ahead_max: usize = 65_536;
        /// How long a removal waits for sinks that have not passed a session's events; 0 does not.
        unsent_wait_ms: u64 = 5_000;
        /// How many items one answer to an MCP list has; more are paged, which many clients ignore.
        mcp_list_items_max: usize = 1_000;
        /// How long an MCP call that could be a task is waited for before it becomes one; 0 makes
        /// it one at once.
        mcp_task_after_ms: u64 = 1_000;
        /// How long an MCP client may take to answer what a call asks for.
        mcp_state_ttl_ms: u64 = 3_600_000;
        /// How many characters of a call's arguments an MCP form shows; a longer call is decided
        /// elsewhere.
        mcp_shown_chars_max: usize = 4_000;
        /// An MCP session that is unused for so long is over.
        mcp_session_idle_ms: u64 = 1_800_000;
        /// An answer that takes longer than this becomes a stream, where the client takes one.
        mcp_quiet_ms: u64 = 5_000;
        /// How long an upstream's process has to end by itself once its standard input is closed; 0
        /// gives it no time.
        upstream_stop_ms: u64 = 2_000;
        /// How many calls of one upstream server wait for an answer that it asked us for; of more,
        /// the oldest is cancelled.
        upstream_pending_max: usize = 256;
    }
}

impl Limits {
    /// The limits under which a plan is read that was admitted before: none.
    pub fn unbounded_plans() -> Self {
        Self {
            plan_steps_max: usize::MAX,
            branches_max: usize::MAX,
            loop_concurrency_max: u32::MAX,
            client_id_chars_max: usize::MAX,
            rule_wait_ms_max: u64::MAX,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The defaults with another value of one limit.
    fn with(name: &str, value: u64) -> Limits {
        let mut limits = json!(Limits::default());
        limits[name] = json!(value);
        serde_json::from_value(limits).unwrap()
    }

    #[test]
    fn every_default_is_in_its_range() {
        assert_eq!(Limits::default().check(), Vec::<OutOfRange>::new());
        assert_eq!(Limits::RANGES.len(), Limits::NAMES.len());
        assert_eq!(Limits::MEANINGS.len(), Limits::NAMES.len());
    }

    #[test]
    fn every_limit_refuses_what_is_below_and_above_its_range() {
        for name in Limits::NAMES.iter().copied() {
            let (min, max) = Limits::range(name).into_inner();
            assert!(min < max, "{name}");
            let alone = |value: u64| {
                let found = with(name, value).check();
                found.into_iter().find(|found| found.bounded_by.is_none())
            };
            let refused = |value: u64| OutOfRange { name, value, min, max, bounded_by: None };
            assert_eq!(alone(min), None, "{name}");
            assert_eq!(alone(max), None, "{name}");
            assert_eq!(alone(max + 1), Some(refused(max + 1)), "{name}");
            if min > 0 {
                assert_eq!(alone(0), Some(refused(0)), "{name}");
                assert_eq!(alone(min - 1), Some(refused(min - 1)), "{name}");
            }
        }
    }

    #[test]
    fn zero_is_valid_only_for_limits_that_document_it() {
        for (name, about) in Limits::meanings() {
            let says = about.contains(" 0 ");
            assert_eq!(*Limits::range(name).start() == 0, says, "{name}: {about}");
        }
    }

    #[test]
    fn a_fixed_limit_is_neither_written_nor_read() {
        let limits = Limits { frames_max: 3, ..Limits::default() };
        let written = json!(limits);
        let keys: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys.len(), Limits::NAMES.len());
        assert!(Limits::NAMES.iter().all(|name| keys.contains(name)));
        let back: Limits = serde_json::from_value(written).unwrap();
        assert_eq!(back, Limits::default());
        let refused = serde_json::from_value::<Limits>(json!({"frames_max": 1})).unwrap_err();
        assert!(refused.to_string().contains("unknown field"), "{refused}");
    }

    #[test]
    fn no_limit_exceeds_the_limit_that_bounds_it() {
        for (less, more) in ORDERED {
            let max = json!(Limits::default())[*more].as_u64().unwrap();
            let name = *less;
            let value = max + 1;
            let min = *Limits::range(name).start();
            let found = OutOfRange { name, value, min, max, bounded_by: Some(*more) };
            assert_eq!(with(name, max).check(), Vec::<OutOfRange>::new());
            assert_eq!(with(name, value).check(), [found]);
        }
        let told = with("run_wait_ms", 300_001).check();
        assert_eq!(
            told[0].to_string(),
            "`run_wait_ms` = 300001 is more than `run_wait_ms_max` = 300000"
        );
        assert_eq!(told[0].hint(), "lower `run_wait_ms`, or raise `run_wait_ms_max`");
        let told = with("session_queue_max", 0).check();
        assert_eq!(
            told[0].to_string(),
            "`session_queue_max` = 0 is out of range: it can be 1 to 65536"
        );
        assert_eq!(told[0].hint(), "write a whole number from 1 to 65536");
    }
}
