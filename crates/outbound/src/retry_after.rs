//! `Retry-After`: how long a server wants us to wait.

use kernel::values::ids::Millis;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// Parses `Retry-After`: seconds, or a date. A date is relative to the answer's own `Date`, so that
/// no two clocks are compared; `now` is for answers without one.
pub fn wait_ms(headers: &HeaderMap, now: Millis) -> Option<u64> {
    let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let after = header(RETRY_AFTER)?.trim();
    if let Ok(seconds) = after.parse::<u64>() {
        return Some(seconds.saturating_mul(1_000));
    }
    let then = httpdate::parse_http_date(after).ok()?;
    let sent = header(DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    let sent = sent.unwrap_or_else(|| moment(now));
    u64::try_from(then.duration_since(sent).unwrap_or_default().as_millis()).ok()
}

fn moment(now: Millis) -> SystemTime {
    let since = Duration::from_millis(u64::try_from(now.0).unwrap_or_default());
    SystemTime::UNIX_EPOCH + since
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn wait(lines: &[(HeaderName, &'static str)]) -> Option<u64> {
        let lines = lines.iter().cloned();
        let headers = lines.map(|(name, value)| (name, HeaderValue::from_static(value)));
        wait_ms(&headers.collect(), Millis(1_763_164_800_000))
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[(RETRY_AFTER, " 2")]), Some(2_000));
        assert_eq!(wait(&[(RETRY_AFTER, "Sat, 15 Nov 2025 00:00:05 GMT")]), Some(5_000));
        assert_eq!(wait(&[(RETRY_AFTER, "Sat, 15 Nov 2025 00:00:00 GMT")]), Some(0));
        assert_eq!(wait(&[(RETRY_AFTER, "soon")]), None);
        assert_eq!(wait(&[(RETRY_AFTER, "-3")]), None);
    }

    #[test]
    fn a_date_counts_from_the_date_of_the_answer() {
        let after = (RETRY_AFTER, "Sun, 15 Nov 2015 15:06:50 GMT");
        assert_eq!(wait(&[after.clone(), (DATE, "Sun, 15 Nov 2015 15:06:35 GMT")]), Some(15_000));
        assert_eq!(wait(&[after, (DATE, "Sun, 15 Nov 2015 15:07:00 GMT")]), Some(0));
    }
}
