//! Ends the process when one piece of work takes too long: endless work can be ended in no other
//! way, and a test that waited for it would never name it.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(100);
/// As a test that failed.
const EXIT: i32 = 101;

type UnderWay = Mutex<Option<(Instant, String)>>;

/// Watches one piece of work at a time, until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    under_way: Arc<UnderWay>,
}

impl Watchdog {
    /// Ends the process when something takes longer than this.
    pub fn new(limit: Duration) -> Self {
        let under_way: Arc<UnderWay> = Arc::default();
        let watched = Arc::downgrade(&under_way);
        thread::spawn(move || {
            while let Some(under_way) = watched.upgrade() {
                end_if_late(&under_way, limit);
                drop(under_way);
                thread::sleep(POLL);
            }
        });
        Self { under_way }
    }

    /// Begins to watch something, until what this returns is dropped.
    pub fn begin(&self, name: String) -> Watched<'_> {
        let begun = Instant::now();
        *locked(&self.under_way) = Some((begun, name));
        Watched { under_way: &self.under_way, begun }
    }
}

/// Something that is being watched.
#[derive(Debug)]
pub struct Watched<'a> {
    under_way: &'a UnderWay,
    begun: Instant,
}

impl Watched<'_> {
    /// How long it has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        *locked(self.under_way) = None;
    }
}

fn end_if_late(under_way: &UnderWay, limit: Duration) {
    if let Some((begun, name)) = &*locked(under_way)
        && begun.elapsed() > limit
    {
        // Past the test runner's capture, which ends with the process.
        let _ = writeln!(std::io::stderr(), "`{name}` did not end within {limit:?}");
        std::process::exit(EXIT);
    }
}

fn locked(under_way: &UnderWay) -> MutexGuard<'_, Option<(Instant, String)>> {
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}
