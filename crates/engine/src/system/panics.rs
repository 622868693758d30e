//! Panics of what the engine calls. One is always a mistake of ours or of a tool, and it must cost
//! no more than the call or the session that it happened in.

use super::clock::panic_text;
use futures::future::poll_fn;
use kernel::planted::{Switch, is_on};
use kernel::tool::call::{CallProgress, Reach, ToolError};
use kernel::values::fault::Fault;
use kernel::values::ids::ToolName;
use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// How much of a panic's message is kept.
const MESSAGE_CHARS_MAX: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PanicMessage(pub(crate) String);

impl PanicMessage {
    fn of(payload: &(dyn Any + Send)) -> Self {
        Self(panic_text(payload).chars().take(MESSAGE_CHARS_MAX).collect())
    }
}

/// The future's result. What a panic leaves half changed must not be used afterwards. The future is
/// pinned by the caller: those that are caught are large, and moving them costs more than they do.
pub(crate) async fn caught<T>(
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Result<T, PanicMessage> {
    poll_fn(|context| match caught_now(|| future.as_mut().poll(context)) {
        Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

/// The same for what does not wait.
pub(crate) fn caught_now<T>(work: impl FnOnce() -> T) -> Result<T, PanicMessage> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| PanicMessage::of(payload.as_ref()))
}

/// A panic is a mistake in the tool or in Waypost; after it no one knows how far a write got.
pub(crate) fn panic_error(tool: &ToolName, reach: Reach, panicked: &PanicMessage) -> ToolError {
    let how = match reach {
        Reach::Reads => CallProgress::Failed,
        _ if is_on(Switch::PanickedWriteRepeated) => CallProgress::NotSent,
        Reach::Writes | Reach::Runs => CallProgress::Unknown,
    };
    ToolError::new(how, panic_fault(tool, "it was called", panicked))
}

pub(crate) fn panic_fault(tool: &ToolName, when: &str, PanicMessage(said): &PanicMessage) -> Fault {
    tracing::error!(%tool, panic = said, "a tool panicked");
    Fault::new("Panicked", format!("`{tool}` panicked when {when}: {said}"))
        .hint("this is a defect: look at the server's log and report it")
}
