//! Reads lines of a child with a maximum length and a rate limit. Unread output applies
//! backpressure, so that a child that floods is slowed down.

use kernel::contracts::Clock;
use kernel::values::ids::Millis;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A line without its end.
    Whole(Vec<u8>),
    /// The beginning of one that is longer than allowed; the rest is still to be read.
    TooLong(Vec<u8>),
    /// There is no more.
    End,
}

/// The next line, which may be so long.
pub(super) async fn next(
    input: &mut (impl AsyncBufRead + Unpin),
    bytes_max: usize,
) -> io::Result<Read> {
    let mut line = Vec::new();
    loop {
        let read = input.fill_buf().await?;
        if read.is_empty() {
            return Ok(if line.is_empty() { Read::End } else { Read::Whole(line) });
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(read.len());
        let room = bytes_max.saturating_sub(line.len());
        line.extend_from_slice(&read[..taken.min(room)]);
        if taken > room {
            input.consume(room);
            return Ok(Read::TooLong(line));
        }
        input.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Read::Whole(line));
        }
    }
}

/// Reads the rest of a line that is too long, and gives it bit by bit; whether it ends within so
/// many bytes.
pub(super) async fn rest(
    input: &mut (impl AsyncBufRead + Unpin),
    bytes_max: usize,
    mut take: impl FnMut(&[u8]),
) -> io::Result<bool> {
    let mut room = bytes_max;
    loop {
        let read = input.fill_buf().await?;
        let end = read.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(read.len());
        let is_over = end.is_some() || read.is_empty();
        if taken > room {
            return Ok(false);
        }
        take(&read[..taken]);
        room -= taken;
        input.consume(taken + usize::from(end.is_some()));
        if is_over {
            return Ok(true);
        }
    }
}

/// So much in a time.
pub(super) struct Budget {
    clock: Arc<dyn Clock>,
    max: u64,
    span_ms: u64,
    left: u64,
    until: Millis,
}

impl Budget {
    /// So much in each span of time from now on.
    pub(super) fn new(clock: Arc<dyn Clock>, max: u64, span_ms: u64) -> Self {
        let until = clock.now().plus_ms(span_ms);
        Self { clock, max, span_ms, left: max, until }
    }

    /// Spends from what is left in this span; whether anything was.
    pub(super) fn spend(&mut self, cost: u64) -> bool {
        let now = self.clock.now();
        let next = now.plus_ms(self.span_ms);
        // A clock that was set back would make this span last long.
        if now >= self.until || self.until > next {
            self.left = self.max;
            self.until = next;
        }
        let enough = self.left > 0;
        self.left = self.left.saturating_sub(cost);
        enough
    }

    /// Spends; where nothing is left, only once the next span has begun.
    pub(super) async fn spend_in_time(&mut self, cost: u64) {
        if !self.spend(cost) {
            self.clock.sleep_until(self.until).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use futures::future::BoxFuture;
    use std::sync::atomic::{AtomicI64, Ordering};
    use tokio::io::BufReader;

    fn read(text: &[u8], bytes_max: usize) -> Vec<Read> {
        // A small buffer, so that lines come in pieces.
        let mut input = BufReader::with_capacity(3, text);
        let mut all = Vec::new();
        loop {
            match block_on(next(&mut input, bytes_max)).unwrap() {
                Read::End => return all,
                read => all.push(read),
            }
        }
    }

    fn whole(text: &str) -> Read {
        Read::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_read_one_by_one() {
        let expected = ["ab", "", "exact", "cd\r", "last"].map(whole);
        assert_eq!(read(b"ab\n\nexact\ncd\r\nlast", 5), expected);
        assert!(read(b"", 5).is_empty());
    }

    #[test]
    fn an_oversized_line_is_reported_before_its_end() {
        let long = |text: &str| Read::TooLong(text.as_bytes().to_vec());
        assert_eq!(read(b"longer\nab", 5), [long("longe"), whole("r"), whole("ab")]);
    }

    #[test]
    fn the_rest_of_an_oversized_line_is_skipped() {
        let mut input = BufReader::with_capacity(3, b"0123456789\nab\nunended".as_slice());
        let mut passed = Vec::new();
        block_on(next(&mut input, 4)).unwrap();
        let ended = block_on(rest(&mut input, 6, |part| passed.extend_from_slice(part)));
        assert!(ended.unwrap());
        assert_eq!(passed, b"456789");
        assert_eq!(block_on(next(&mut input, 4)).unwrap(), whole("ab"));
        assert!(!block_on(rest(&mut input, 4, |_| {})).unwrap(), "it is longer than that");
        assert!(block_on(rest(&mut input, 9, |_| {})).unwrap(), "the end is an end of line, too");
    }

    /// Continues by a millisecond with every look.
    struct Ticks(AtomicI64);

    impl Clock for Ticks {
        fn now(&self) -> Millis {
            Millis(self.0.fetch_add(1, Ordering::Relaxed))
        }

        fn elapsed(&self) -> std::time::Duration {
            std::time::Duration::from_millis(self.now().0.unsigned_abs())
        }

        fn sleep_until(&self, then: Millis) -> BoxFuture<'static, ()> {
            self.0.store(then.0, Ordering::Relaxed);
            Box::pin(std::future::ready(()))
        }
    }

    #[test]
    fn the_line_budget_is_per_time_window() {
        let clock = Arc::new(Ticks(AtomicI64::new(0)));
        let mut budget = Budget::new(clock.clone(), 3, 1_000);
        let spent: Vec<bool> = [1, 1, 5, 1].into_iter().map(|cost| budget.spend(cost)).collect();
        assert_eq!(spent, [true, true, true, false]);
        block_on(budget.spend_in_time(1));
        assert!(clock.0.load(Ordering::Relaxed) >= 1_000, "it did not wait");
        assert!(budget.spend(1), "the next span has a budget of its own");
        clock.0.store(-3_600_000, Ordering::Relaxed);
        budget.left = 0;
        assert!(budget.spend(1), "a clock that was set back ends the span");
    }
}
