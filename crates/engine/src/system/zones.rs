//! Local time where no one brings a table of time zones: UTC only.

use kernel::contracts::Zones;
use kernel::values::ids::Millis;

/// Knows one time zone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Utc;

/// Its name.
const UTC: &str = "UTC";
const DAY_MS: i64 = 86_400_000;
/// 1970 began on a Thursday.
const DAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

impl Zones for Utc {
    fn local(&self, now: Millis, zone: &str) -> Option<String> {
        if zone != UTC {
            return None;
        }
        let day = DAYS.get(usize::try_from(now.0.div_euclid(DAY_MS).rem_euclid(7)).ok()?)?;
        let written = now.rfc3339();
        let (date, time) = written.split_once('T')?;
        let minutes = time.get(..5)?;
        Some(format!("{day}, {date} {minutes}"))
    }

    fn default_zone(&self) -> String {
        UTC.to_owned()
    }
}

/// The time zone of the user and the local time in it. An invalid or missing zone of their own
/// falls back to the default.
pub(crate) fn local_time(zones: &dyn Zones, now: Millis, own: Option<&str>) -> (String, String) {
    if let Some(own) = own
        && let Some(local) = zones.local(now, own)
    {
        return (own.to_owned(), local);
    }
    let zone = zones.default_zone();
    match zones.local(now, &zone) {
        Some(local) => (zone, local),
        None => (UTC.to_owned(), now.rfc3339()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_a_clock_shows_it() {
        assert_eq!(Utc.local(Millis(0), "UTC").as_deref(), Some("Thursday, 1970-01-01 00:00"));
        let leap = Millis(1_709_210_096_789);
        assert_eq!(Utc.local(leap, "UTC").as_deref(), Some("Thursday, 2024-02-29 12:34"));
        assert_eq!(Utc.local(Millis(-1), "UTC").as_deref(), Some("Wednesday, 1969-12-31 23:59"));
        assert_eq!(Utc.local(leap, "Europe/Berlin"), None);
        let there = local_time(&Utc, leap, Some("Europe/Berlin"));
        assert_eq!(there, ("UTC".to_owned(), "Thursday, 2024-02-29 12:34".to_owned()));
    }
}
