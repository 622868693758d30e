//! One delivery attempt: its timeout, its row in the delivery log, and the time of the next
//! attempt.

use super::window::Attempts;
use crate::observe::sinks::Outbox;
use crate::shared::Shared;
use crate::system::clock::timeout;
use kernel::contracts::cloud::CloudEvent;
use kernel::contracts::sink::{DeliveryReceipt, DeliveryRow, DeliveryStatus, SinkError};
use kernel::limits::Limits;
use kernel::values::ids::Millis;

/// How soon a store that failed is asked again.
pub(super) const STORE_RETRY_MS: u64 = 1_000;

/// Hands events over, within the time that a delivery has.
pub(super) async fn deliver(
    shared: &Shared,
    outbox: &Outbox,
    events: &[CloudEvent],
) -> Result<DeliveryReceipt, SinkError> {
    let ms = shared.limits.delivery_timeout_ms;
    let handed = timeout(shared.clock.as_ref(), ms, outbox.sink.deliver(events)).await;
    handed.unwrap_or_else(|| Err(SinkError::new(format!("was not done within {ms} ms"))))
}

/// The tries of an event that the log tells of. Which of them spoke against it is not in there.
pub(super) fn logged(row: &DeliveryRow) -> Attempts {
    Attempts { attempts: row.attempts, first_at: row.first_at, last_at: row.last_at, against: 0 }
}

/// The tries of an event with the one that just ended.
pub(super) fn once_more(before: Option<Attempts>, began: Millis, ended: Millis) -> Attempts {
    let before =
        before.unwrap_or(Attempts { attempts: 0, first_at: began, last_at: ended, against: 0 });
    Attempts { attempts: before.attempts.saturating_add(1), last_at: ended, ..before }
}

/// The log row of a delivered event.
pub(super) fn delivered(
    sink: &str,
    event: &CloudEvent,
    tried: Attempts,
    handed: DeliveryReceipt,
) -> DeliveryRow {
    let code = handed.status;
    DeliveryRow { code, ..row(sink, event, DeliveryStatus::Delivered, tried) }
}

/// When an event that was not taken is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryTime {
    /// Then.
    At(Millis),
    /// When the sink, which rests, continues.
    Resumed,
    /// Never: it has failed.
    Never,
}

/// The log row of a failed attempt, with the time of the next one.
pub(super) fn failed(
    sink: &str,
    event: &CloudEvent,
    tried: Attempts,
    error: &SinkError,
    again: RetryTime,
) -> DeliveryRow {
    let (status, next_at) = match again {
        RetryTime::At(then) => (DeliveryStatus::Retrying, Some(then)),
        RetryTime::Resumed => (DeliveryStatus::Retrying, None),
        RetryTime::Never => (DeliveryStatus::Failed, None),
    };
    DeliveryRow {
        next_at,
        code: error.status,
        error: Some(error.message.clone()),
        ..row(sink, event, status, tried)
    }
}

fn row(sink: &str, event: &CloudEvent, status: DeliveryStatus, tried: Attempts) -> DeliveryRow {
    DeliveryRow {
        sink: sink.to_owned(),
        event: event.id.clone(),
        kind: event.kind.clone(),
        session: event.session,
        seq: event.seq,
        status,
        attempts: tried.attempts,
        first_at: tried.first_at,
        last_at: tried.last_at,
        next_at: None,
        code: None,
        error: None,
    }
}

/// How long to wait before what failed so often is tried again. Some of it is chance, so that those
/// who failed together do not come back together.
pub(super) fn wait_ms(limits: &Limits, attempts: u32, error: &SinkError, chance: u128) -> u64 {
    let doublings = attempts.saturating_sub(1).min(32);
    let max = limits.delivery_backoff_ms_max;
    let wait = limits.delivery_backoff_ms.saturating_mul(1 << doublings).min(max);
    let half = wait / 2;
    let wait = wait - half + (chance % (u128::from(half) + 1)) as u64;
    wait.max(error.retry_after_ms.unwrap_or(0)).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(retry_after_ms: Option<u64>) -> SinkError {
        SinkError { retry_after_ms, ..SinkError::new("no".to_owned()) }
    }

    #[test]
    fn delivery_waits_double_to_a_limit_with_jitter() {
        let limits = Limits::default();
        let most = |attempts| wait_ms(&limits, attempts, &error(None), 1_000_000 - 1);
        assert!(most(1) >= 500 && most(1) <= 1_000);
        for chance in [0, 1, 500, 12_345, u128::MAX] {
            let wait = wait_ms(&limits, 4, &error(None), chance);
            assert!((4_000..=8_000).contains(&wait), "{wait}");
            let wait = wait_ms(&limits, 200, &error(None), chance);
            assert!((150_000..=300_000).contains(&wait), "{wait}");
        }
        assert_ne!(wait_ms(&limits, 4, &error(None), 1), wait_ms(&limits, 4, &error(None), 2));
    }

    #[test]
    fn delivery_attempts_add_up_and_keep_their_start() {
        let first = once_more(None, Millis(3), Millis(5));
        assert_eq!((first.attempts, first.first_at, first.last_at), (1, Millis(3), Millis(5)));
        let second = once_more(Some(Attempts { against: 1, ..first }), Millis(7), Millis(9));
        assert_eq!((second.attempts, second.first_at, second.last_at), (2, Millis(3), Millis(9)));
        assert_eq!(second.against, 1);
    }

    #[test]
    fn a_receivers_retry_after_is_used_up_to_the_limit() {
        let limits = Limits::default();
        assert_eq!(wait_ms(&limits, 1, &error(Some(60_000)), 0), 60_000);
        assert_eq!(wait_ms(&limits, 1, &error(Some(9_999_999)), 0), 300_000);
        assert!(wait_ms(&limits, 6, &error(Some(1)), 0) >= 16_000);
    }
}
