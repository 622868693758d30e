//! Waits of the stories: each has a limit and names what it waited for.

use crate::exit::{Exit, Failure, Result};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

/// A wait for one thing.
#[derive(Debug)]
pub(super) struct WaitDeadline<'a> {
    what: &'a str,
    deadline: Instant,
}

impl<'a> WaitDeadline<'a> {
    /// Waits for this from now on.
    pub(super) fn begin(what: &'a str) -> Self {
        Self { what, deadline: Instant::now() + LIMIT }
    }

    /// A moment until the next look; a failure once the time is up.
    pub(super) async fn next(&self) -> Result<()> {
        if Instant::now() >= self.deadline {
            let what = format!("the demo waited {} seconds for {}", LIMIT.as_secs(), self.what);
            return Err(Failure::new(Exit::Timeout, "demo", what));
        }
        sleep(LOOK).await;
        Ok(())
    }
}

/// Looks until something is there.
pub(super) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let waiting = WaitDeadline::begin(what);
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        waiting.next().await?;
    }
}
