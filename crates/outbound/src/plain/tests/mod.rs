//! One connection byte by byte, and how long one can rest.

mod bytewise;
mod exchanges;

use super::*;

#[test]
fn idle_connections_expire_even_if_the_clock_is_set_back() {
    let idle_ms = IDLE_MAX.as_millis() as i64;
    let since = Millis(10_000);
    for (later_ms, fresh) in
        [(0, true), (idle_ms - 1, true), (idle_ms, false), (i64::MAX, false), (-1, false)]
    {
        let now = Millis(since.0.saturating_add(later_ms));
        assert_eq!(is_fresh(since, now), fresh, "{later_ms}");
    }
}
