//! Until when a request may look for records. SQLite asks as it works, on the thread of the
//! request; who evaluates asks, too.

use kernel::contracts::Clock;
use rusqlite::Connection;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// After how many steps SQLite asks again: a fraction of a millisecond.
const STEPS_PER_LOOK: i32 = 10_000;

thread_local! {
    static UNTIL: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// The time of one request.
pub(crate) struct Deadline {
    clock: Arc<dyn Clock>,
    until: Duration,
}

/// As long as this lives, SQLite ends statements of this thread whose time is over. Those that
/// write must not run meanwhile: what ends one of them ends the whole transaction.
pub(crate) struct Watched(());

impl Deadline {
    pub(crate) fn begin(clock: &Arc<dyn Clock>, timeout_ms: u64) -> Self {
        let until = clock.elapsed().saturating_add(Duration::from_millis(timeout_ms));
        Self { clock: clock.clone(), until }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.clock.elapsed() >= self.until
    }

    pub(crate) fn watched(&self) -> Watched {
        UNTIL.set(Some(self.until));
        Watched(())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        UNTIL.set(None);
    }
}

/// Has a connection end statements whose time is over.
pub(crate) fn watch(connection: &mut Connection, clock: &Arc<dyn Clock>) -> rusqlite::Result<()> {
    let clock = clock.clone();
    let is_over = move || UNTIL.get().is_some_and(|until| clock.elapsed() >= until);
    connection.progress_handler(STEPS_PER_LOOK, Some(is_over))
}
