//! Why a line to a child process ended, and what that means for a request.

use super::super::line::{PeerError, PeerErrorKind};
use kernel::tool::call::CallProgress;

/// Why there will be no more messages.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    kind: PeerErrorKind,
    message: String,
    hint: Option<&'static str>,
}

impl Ending {
    /// We let go of it.
    pub(super) fn closed() -> Self {
        Self { kind: PeerErrorKind::Closed, message: "its process was stopped".into(), hint: None }
    }

    /// The process ended; `how` says with which code.
    pub(super) fn exited(how: &str) -> Self {
        Self::by_itself(format!("its process ended {how}"))
    }

    /// It lives but will never say anything again.
    pub(super) fn mute() -> Self {
        Self::by_itself("its process closed its standard output".into())
    }

    /// It lives but will never hear anything again.
    pub(super) fn deaf() -> Self {
        Self::by_itself("its process closed its standard input".into())
    }

    /// A line that is too long.
    pub(super) fn too_long(bytes_max: usize) -> Self {
        let message = format!(
            "its process wrote a message of more than {bytes_max} bytes and was stopped for it"
        );
        let hint = "ask it for less, or raise `call_output_bytes_max` in `[limits]`";
        Self { kind: PeerErrorKind::TooLarge, message, hint: Some(hint) }
    }

    /// Too many lines that are not messages.
    pub(super) fn garbage(lines: u32) -> Self {
        let message = format!(
            "its process wrote {lines} lines to its standard output that are no messages, and was \
             stopped for it"
        );
        let hint = "is the command an MCP server, and does it log to its standard error?";
        Self { kind: PeerErrorKind::NotMcp, message, hint: Some(hint) }
    }

    /// The error of a request that got this far.
    pub(super) fn error(&self, how: CallProgress) -> PeerError {
        // Who comes after the end meets a closed line, whatever ended it: another must be made.
        let kind = if how == CallProgress::NotSent { PeerErrorKind::Closed } else { self.kind };
        let hint = self.hint.map(str::to_owned);
        PeerError { hint, ..PeerError::new(how, kind, self.message.clone()) }
    }

    fn by_itself(message: String) -> Self {
        Self { kind: PeerErrorKind::Closed, message, hint: None }
    }
}
