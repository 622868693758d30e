//! The limits of A2A that an operator can set. They stand in `[limits]` beside all others.

use kernel::limits;
use kernel::limits::{DAY_MS, GIB, HOUR_MS};
use upstreams::HOPS_MAX;

limits! {
    /// What an endpoint of A2A takes, keeps open and posts.
    pub struct A2aLimits;
    settable {
        /// How many parts a message of A2A has.
        a2a_parts_max: usize = 100, 1..=10_000;
        /// The size of a message of A2A, its files included.
        a2a_message_bytes_max: usize = 3 * 1024 * 1024, 1_024..=GIB;
        /// How long a request of A2A waits for its task; 0 waits until the task ends or asks.
        a2a_wait_ms_max: u64 = 0, 0..=DAY_MS;
        /// How many messages of its history a task of A2A shows, the newest ones.
        a2a_history_max: usize = 1_000, 1..=100_000;
        /// How many streams of A2A are open at the same time, of the event streams that may be.
        a2a_streams_max: usize = 512, 1..=100_000;
        /// Through how many agents a message of A2A may come: a circle of them ends there.
        a2a_hops_max: u32 = HOPS_MAX, 1..=64;
        /// How many webhooks one task of A2A has.
        push_configs_max: usize = 10, 1..=1_000;
        /// How many times in a row a webhook of A2A is tried before it gets nothing more.
        push_attempts_max: u32 = 24, 1..=1_000_000;
        /// How long the receiver of a webhook of A2A may take to answer.
        push_timeout_ms: u64 = 15_000, 1..=HOUR_MS;
        /// The size of one notification of A2A; an update that is larger is left out.
        push_body_bytes_max: usize = 4 * 1024 * 1024, 1_024..=GIB;
    }
    fixed {}
}
