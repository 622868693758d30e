//! Contracts of the environment: time, randomness, tasks, and crash marks that outlive the process.
//! A seeded simulation implements all of them.

use crate::values::ids::{Millis, SessionId};
use futures::future::BoxFuture;
use std::time::Duration;

/// Time.
pub trait Clock: Send + Sync {
    /// Now, as people tell time. It jumps when someone sets the clock.
    fn now(&self) -> Millis;
    /// How much time has passed since a moment that stays the same as long as the process lives.
    /// Only differences mean something. It never goes back and never jumps, and time for which the
    /// machine was suspended counts, where the system tells.
    fn elapsed(&self) -> Duration;
    /// Waits until then.
    fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()>;
    /// Waits for so many milliseconds from now.
    fn sleep_ms(&self, ms: u64) -> BoxFuture<'static, ()> {
        self.sleep_until(self.now().plus_ms(ms))
    }
}

/// A session that may have ended a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    pub session: SessionId,
    /// How often its runs had been claimed by then: a claim since has counted it already. None
    /// where that is not known; then it counts.
    pub claims: Option<u32>,
}

/// Notes which sessions a process is working on, where the next process finds it: a session that
/// is still noted when a process begins is one that the process before died of. Only sessions that
/// were recovered, or ended a process before, and have made no progress since are noted.
pub trait CrashMarks: Send + Sync {
    /// Work on a session begins whose runs were claimed so often; gives what ends it, if it could
    /// be noted.
    fn begin(&self, session: SessionId, claims: u32) -> Option<usize>;
    /// That work is interrupted or done.
    fn end(&self, mark: usize);
    /// The sessions that the process before was working on when it died, each until it is settled.
    fn suspects(&self) -> Vec<Suspect>;
    /// What this session did is on record: it is no longer a suspect.
    fn settle(&self, session: SessionId);
}

/// Local time.
pub trait Zones: Send + Sync {
    /// That moment in words, as a clock in this time zone shows it; none where no one knows the
    /// zone.
    fn local(&self, now: Millis, zone: &str) -> Option<String>;
    /// The zone of those who name none: an IANA name.
    fn default_zone(&self) -> String;
}

/// Randomness.
pub trait Entropy: Send + Sync {
    /// 128 random bits.
    fn bits(&self) -> u128;
}

/// Tasks.
pub trait Spawn: Send + Sync {
    /// Runs a future that never blocks.
    fn task(&self, name: &'static str, future: BoxFuture<'static, ()>);
    /// Runs a future that blocks while it works: production gives it a thread of its own, a
    /// simulation steps it like any other.
    fn thread(&self, name: &'static str, future: BoxFuture<'static, ()>);
    /// The same as `task`, for a future that the process cannot do without: production logs its
    /// panic and ends the process, since a restart is safe and a process without it is not. That
    /// it returns is no failure.
    fn critical_task(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.task(name, future);
    }
    /// The same as `thread`, for a future that the process cannot do without.
    fn critical_thread(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.thread(name, future);
    }
    /// How many tasks run at the same time.
    fn workers(&self) -> usize {
        1
    }
}
