//! Why a call that was admitted cannot start now: it comes too soon after the others, no place is
//! free for it, or the server stops.

use super::{RATE_LIMITED, TOO_MANY_CALLS};
use crate::catalog::registry::ListedTool;
use crate::refusal::{Quota, TryLater};
use crate::shares::ShareExhausted;
use kernel::tool::call::ToolError;
use kernel::values::fault::Fault;
use kernel::values::ids::ToolName;
use std::num::NonZeroU32;

/// When to come back where no one knows when a place will be free.
const PLACE_RETRY_MS: u64 = 1_000;

/// Why a call cannot start.
pub(super) struct StartError {
    pub(super) error: Box<ToolError>,
    /// When it may, if that is all that is wrong.
    pub(super) later: Option<Box<TryLater>>,
}

/// Why a call may not begin now, and when it may.
pub(crate) struct StartDelay {
    pub(crate) fault: Fault,
    pub(crate) later: Box<TryLater>,
}

impl StartError {
    /// Nothing is wrong but that it comes too soon.
    pub(super) fn until(error: ToolError, later: TryLater) -> Self {
        Self { error: Box::new(error), later: Some(Box::new(later)) }
    }

    /// The same for who has sent nothing yet.
    pub(super) fn not_now(self) -> StartDelay {
        let unknown = || Box::new(TryLater::after(PLACE_RETRY_MS));
        StartDelay { fault: self.error.fault, later: self.later.unwrap_or_else(unknown) }
    }
}

impl From<ToolError> for StartError {
    fn from(error: ToolError) -> Self {
        Self { error: Box::new(error), later: None }
    }
}

/// It would be more than its tool takes in a minute.
pub(super) fn too_soon(tool: &ToolName, per_minute: NonZeroU32, retry_ms: u64) -> StartError {
    let message = format!(
        "`{tool}` may be called {per_minute} times a minute, and was; the next call may come in \
         {retry_ms} ms"
    );
    let error = ToolError::not_sent(RATE_LIMITED, message)
        .hint("nothing was sent: come back then, or raise `per_minute` in [tools.limits]")
        .passing();
    let quota = Quota { of: "calls", max: per_minute.get().into(), window_s: Some(60) };
    StartError::until(error, TryLater { quota: Some(quota), ..TryLater::after(retry_ms) })
}

/// It found no place among the calls of its tool.
pub(super) fn crowded(listed: &ListedTool, timeout_ms: u64) -> StartError {
    let places = listed.limits.concurrency.map_or(0, NonZeroU32::get);
    let tool = &listed.tool.spec().name;
    let message = format!(
        "`{tool}` may run {places} times at the same time, and no place was free for \
         {timeout_ms} ms"
    );
    let error = ToolError::not_sent(TOO_MANY_CALLS, message)
        .hint("nothing was sent: come back later, or raise `concurrency` in [tools.limits]")
        .passing();
    StartError::until(error, TryLater::after(PLACE_RETRY_MS))
}

/// Its caller has as many calls as it may, or all places of its realm are taken.
pub(super) fn over_share(full: &ShareExhausted) -> StartError {
    let error = ToolError::not_sent(TOO_MANY_CALLS, full.message()).hint(full.hint()).passing();
    let quota = Some(full.quota());
    StartError::until(error, TryLater { quota, ..TryLater::after(PLACE_RETRY_MS) })
}

/// The server stops.
pub(super) fn stopping() -> ToolError {
    ToolError::not_sent("Stopping", "the server is stopping")
}
