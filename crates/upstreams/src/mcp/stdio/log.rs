//! Output of a child that is not a message, as lines of our log: standard error at level debug,
//! because many servers print a banner there, and other text on standard output at level info.
//! Credentials are redacted, and the rate is limited so that our own lines are not lost. The last
//! lines of standard error are kept for when the child ends.

use super::lines::{Budget, Read, next};
use kernel::contracts::Clock;
use outbound::redaction::Redactor;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, BufReader};

/// A longer line is shown in pieces.
const LINE_BYTES_MAX: usize = 2_000;
/// How many lines of one child are shown in a second; the others are counted.
const SHOWN_MAX: u64 = 200;
const SHOWN_SPAN_MS: u64 = 1_000;
/// How many are read in a tenth of a second; after that the child waits.
const READ_MAX: u64 = 1_000;
const READ_SPAN_MS: u64 = 100;

/// How many lines of its standard error are kept of a child, and how much of each.
const KEPT_MAX: usize = 5;
const KEPT_BYTES_MAX: usize = 300;

/// The last lines that a child wrote to its standard error.
#[derive(Default)]
pub(super) struct LastWords(Mutex<VecDeque<String>>);

impl LastWords {
    fn keep(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= KEPT_MAX {
            lines.pop_front();
        }
        lines.push_back(line[..line.floor_char_boundary(KEPT_BYTES_MAX)].to_owned());
    }

    /// All of them, if there are any.
    pub(super) fn told(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join(" / "))
    }
}

/// The log of one stream of one child.
pub(super) struct Log {
    upstream: Arc<str>,
    stream: &'static str,
    hidden: Arc<Redactor>,
    budget: Budget,
    left_out: u64,
    /// Where the last lines are kept, of its standard error.
    last: Option<Arc<LastWords>>,
}

impl Log {
    /// For this stream of the upstream of this name; what is hidden is not shown.
    pub(super) fn new(
        upstream: &Arc<str>,
        stream: &'static str,
        hidden: Arc<Redactor>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let budget = Budget::new(clock, SHOWN_MAX, SHOWN_SPAN_MS);
        Self { upstream: upstream.clone(), stream, hidden, budget, left_out: 0, last: None }
    }

    /// The same for its standard error, whose last lines are kept here.
    pub(super) fn keeping(mut self, last: Arc<LastWords>) -> Self {
        self.last = Some(last);
        self
    }

    pub(super) fn line(&mut self, bytes: &[u8]) {
        let text = shown(bytes, &self.hidden);
        if text.is_empty() {
            return;
        }
        if let Some(last) = &self.last {
            last.keep(&text);
        }
        if !self.budget.spend(1) {
            self.left_out += 1;
            return;
        }
        self.tell_left_out();
        match self.last {
            Some(_) => {
                tracing::debug!(upstream = %self.upstream, stream = self.stream, "{text}");
            }
            None => tracing::info!(upstream = %self.upstream, stream = self.stream, "{text}"),
        }
    }

    fn tell_left_out(&mut self) {
        let lines = std::mem::take(&mut self.left_out);
        if lines > 0 {
            tracing::info!(
                upstream = %self.upstream,
                stream = self.stream,
                lines,
                "lines were left out: too many at once"
            );
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.tell_left_out();
    }
}

/// Logs a stream to its end.
pub(super) async fn copy(stream: impl AsyncRead + Unpin, mut log: Log, clock: Arc<dyn Clock>) {
    let mut input = BufReader::new(stream);
    let mut budget = Budget::new(clock, READ_MAX, READ_SPAN_MS);
    while let Ok(Read::Whole(line) | Read::TooLong(line)) = next(&mut input, LINE_BYTES_MAX).await {
        log.line(&line);
        budget.spend_in_time(1).await;
    }
}

/// As it is shown: nothing in it can move a terminal's cursor or look like another line.
fn shown(bytes: &[u8], hidden: &Redactor) -> String {
    let part = &bytes[..bytes.len().min(2 * LINE_BYTES_MAX)];
    let text = String::from_utf8_lossy(part);
    // Before it is cut to its length: half a credential is one, too.
    let text = hidden.masked(&text);
    let text = &text[..text.floor_char_boundary(LINE_BYTES_MAX)];
    let plain = |char: char| if char.is_control() { ' ' } else { char };
    let text: String = text.chars().map(plain).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_has_no_line_breaks_or_control_characters() {
        let shown = |bytes: &[u8]| shown(bytes, &Redactor::default());
        assert_eq!(shown(b"  ready\r"), "ready");
        assert_eq!(shown(b"\x1b[2Jgone\x07 a\nb"), "[2Jgone  a b");
        assert_eq!(shown(b"\xff"), "\u{fffd}");
        assert_eq!(shown(&vec![b'x'; 3 * LINE_BYTES_MAX]).len(), LINE_BYTES_MAX);
    }

    #[test]
    fn a_log_line_shows_no_part_of_a_credential() {
        let hidden = Redactor::default().credentials(["s3cret-token"]);
        assert_eq!(shown(b"sent s3cret-token", &hidden), "sent ***");
        let long = format!("{}s3cret-token", "x".repeat(LINE_BYTES_MAX - 4));
        let shown = shown(long.as_bytes(), &hidden);
        assert_eq!(&shown[LINE_BYTES_MAX - 5..], "x***");
    }
}
